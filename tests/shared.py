"""Real files that tests use where they are: data sets and models.

Both lie in the shared folder, `HUMMOCK_SHARED` (default `../shared`). Models that are not there are looked for where
`make model` puts them, `HUMMOCK_MODELS` (default `.demo/models`). Without a real model the toy one stands in.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from hummock import models
from hummock.models.files import write_record

_ROOT = Path(__file__).parents[1]
_SHARED = Path(os.environ.get("HUMMOCK_SHARED") or _ROOT.parent / "shared")
FETCHED = Path(os.environ.get("HUMMOCK_MODELS") or _ROOT / ".demo" / "models")
"""Where `make model` puts real models."""

MINILM = "all-MiniLM-L6-v2"
BGE_ZH = "bge-small-zh-v1.5"
_FOLDERS = {MINILM: "models/all-minilm-l6-v2-int8", BGE_ZH: "models/bge-small-zh-v1.5-tokenizer"}


def find_shared(path: str) -> Path | None:
    """A file or folder of the shared folder, if it is there."""
    found = _SHARED / path
    return found if found.exists() else None


def find_tokenizer(model: str) -> Path | None:
    """The tokenizer file of MINILM or BGE_ZH, if it is there."""
    return _find(model, "tokenizer.json")


def install_minilm(models_dir: Path) -> bool:
    """Puts the real MINILM into a directory of models; False where there is none."""
    graph = _find(MINILM, "model.onnx")
    if graph is None:
        return False
    if graph.is_relative_to(_SHARED):
        # It was converted elsewhere.
        (models_dir / MINILM).mkdir(parents=True)
        for file in models.REGISTRY[MINILM].files:
            shutil.copyfile(graph.parent / file.name, models_dir / MINILM / file.name)
        write_record(models.REGISTRY[MINILM], models_dir / MINILM)
    else:
        # It was converted on this machine: the record alongside it says what it is.
        shutil.copytree(graph.parent, models_dir / MINILM)
    models.pull(models.REGISTRY[MINILM], models_dir)
    return True


def places() -> list[str]:
    """Sources of real files in this run, for its head."""
    graph = _find(MINILM, "model.onnx")
    return [
        f"shared folder: {_SHARED if _SHARED.is_dir() else 'none; HUMMOCK_SHARED names one'}",
        f"model: {graph.parent if graph else 'the toy one, which knows no meaning; `make model` fetches a real one'}",
    ]


def _find(model: str, file: str) -> Path | None:
    folders = (_SHARED / _FOLDERS[model], FETCHED / model)
    return next((folder / file for folder in folders if (folder / file).is_file()), None)
