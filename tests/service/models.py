"""The model that tests of the whole service run: the real one where it is, else the toy one, said aloud."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import pytest

from hummock import models

MINILM = "all-MiniLM-L6-v2"


@cache
def shared() -> Path | None:
    """The folder of shared files; None where there is none."""
    folder = Path(os.environ.get("HUMMOCK_SHARED", Path(__file__).parents[2].parent / "shared"))
    return folder if (folder / "models").is_dir() else None


def install_model(models_dir: Path) -> str:
    """Puts a model into the directory and returns its name."""
    folder = shared()
    if folder is None:
        if os.environ.get("REQUIRE_SHARED") == "1":
            pytest.fail("REQUIRE_SHARED=1, and there is no folder of shared files; name it with HUMMOCK_SHARED")
        return models.build_tiny(models_dir).name
    models.install(models.find(MINILM, models_dir), folder / "models" / "all-minilm-l6-v2-int8", models_dir)
    return MINILM


def require_meaning(name: str) -> None:
    """Skips, aloud, a test that needs a model which knows what words mean."""
    if name == models.TINY:
        pytest.skip("needs the real model of the shared folder; name it with HUMMOCK_SHARED")
