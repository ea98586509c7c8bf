"""The fused form of a model's graph: derived from the published one, compared with it, and used in its place.

The published graph is kept. The directory's record holds the source of the fused one and its SHA-256; if these do not
match, the published graph is used.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeGuard

import numpy as np

from hummock.installation import command_for
from hummock.models.description import GRAPH_FILE, ModelDescription, Pooling, PublishedModel
from hummock.models.encoder import Encoder
from hummock.models.errors import ModelFileAltered, ModelFileMissing, ModelsDirectoryUnusable
from hummock.models.files import RECORD_FILE, add_to_record, expected_sha256, put, read_record, sha256_of, staging, turn

FUSED_FILE = "model.fused.onnx"
FUSION_VERSION = 1
"""Increased when the rewrite changes. Graphs of earlier versions are not used; a pull replaces them."""

AGREEMENT = 0.99
"""Least cosine between what both graphs make of a text. Weights and activations are int8, so that floats added in
another order turn some last bits: over real texts the mean is .999 and the least .995 (docs/decisions/013)."""

_KEY = "fused"
_SENTENCES = (
    "The harbour is deep enough for large ships. ",
    "潮汐木的心材在退潮时发光。",
    "return self._rows[key] or None\n",
)
_REPEATS = (1, 4, 16)

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """The graph that a model runs; `lack` is the reason if a possible fused one is not used, else empty."""

    path: Path
    lack: str


def served(model: PublishedModel, directory: Path) -> Served:
    """The fused graph where the record knows it by its SHA-256, else the published one, which `verify` is to check."""
    plain, fused = Served(path=directory / GRAPH_FILE, lack=""), directory / FUSED_FILE
    if not _is_transformer(model):
        return plain
    noted = _noted(model, directory)
    if noted is None or not (noted["refused"] or fused.is_file()):
        return Served(path=plain.path, lack=_lack(model, "has no fused graph"))
    if noted["refused"]:
        return plain
    if noted["sha256"] != sha256_of(fused):
        return Served(path=plain.path, lack=_lack(model, f"has a {FUSED_FILE} with another SHA-256 than was recorded"))
    return Served(path=fused, lack="")


def add_fused(model: PublishedModel, models_directory: Path, say: Say) -> None:
    """Derive the fused graph of a verified, downloaded model, unless it exists; obstacles are printed."""
    directory = models_directory / model.name
    if not served(model, directory).lack:
        return
    try:
        with turn(models_directory, say), staging(model.name, models_directory) as staged:
            derive(model, directory, staged, say)
            for name in (FUSED_FILE, RECORD_FILE):  # the record last, for it vouches for the other
                if (staged / name).is_file():
                    put(staged / name, directory)
    except (ModelsDirectoryUnusable, OSError) as error:
        say(f"{_lack(model, 'has no fused graph')}: {error}")


def derive(model: PublishedModel, directory: Path, into: Path, say: Say) -> None:
    """Write the fused graph of an embedding model, if it agrees with the published one, and the record with it.

    `directory` has the model's verified files; `into` gets both files and may be the same. `say` gets the reason if
    there is no fused graph.
    """
    if not _is_transformer(model):
        return
    if importlib.util.find_spec("onnx") is None:
        say(f"{_lack(model, 'has no fused graph')}, which needs `{command_for('convert')}`")
        return
    refusal = _write_fused(model, directory, into / FUSED_FILE)
    if refusal:
        (into / FUSED_FILE).unlink(missing_ok=True)
        say(f"{model.name}: its graph serves as it was published, for {refusal}")
    noted = {
        "version": FUSION_VERSION,
        "of_sha256": expected_sha256(model, directory, model.file(GRAPH_FILE)),
        "sha256": "" if refusal else sha256_of(into / FUSED_FILE),
        "refused": refusal,
    }
    add_to_record(model, directory, into, _KEY, noted)


def _write_fused(model: ModelDescription, directory: Path, target: Path) -> str:
    """Writes the fused graph; returns why it must not be served, or nothing."""
    if model.pooling is Pooling.GRAPH:
        return "it needs the mask where it makes one vector of many"
    import onnx

    from hummock.models.fused_graph import fused

    try:
        published = Encoder(model, directory)
        graph = onnx.load(directory / GRAPH_FILE, load_external_data=False)
        onnx.save_model(fused(graph, model.hidden_output), str(target))
        agreement = _agreement(published, Encoder(model, directory, target))
    except OSError:
        raise
    except Exception as error:  # onnxruntime's error classes share no base below it; the published graph serves
        return str(error)
    return "" if agreement >= AGREEMENT else f"a fused one's vectors have a cosine of {agreement:.3f} with its own"


def _agreement(published: Encoder, fused: Encoder) -> float:
    """Return the least cosine between both encoders on fixed texts, of their vectors and of their tokens' means."""
    least = 1.0
    for text in (sentence * times for sentence in _SENTENCES for times in _REPEATS):
        left, right = published.encode(text), fused.encode(text)
        for one, other in ((left.pooled, right.pooled), (left.hidden.mean(axis=0), right.hidden.mean(axis=0))):
            least = min(least, float(one @ other / (np.linalg.norm(one) * np.linalg.norm(other))))
    return least


def _noted(model: ModelDescription, directory: Path) -> dict[str, object] | None:
    """Read the record of this version's fused graph for the model's graph; None if there is none."""
    noted = read_record(directory).get(_KEY)
    try:
        wanted = (FUSION_VERSION, expected_sha256(model, directory, model.file(GRAPH_FILE)))
    except (ModelFileMissing, ModelFileAltered):
        return None
    if not isinstance(noted, dict) or (noted.get("version"), noted.get("of_sha256")) != wanted:
        return None
    return {name: noted.get(name) for name in ("sha256", "refused")}


def _is_transformer(model: PublishedModel) -> TypeGuard[ModelDescription]:
    """Whether the graph is that of an embedding model with states of tokens, which is one of attention."""
    return isinstance(model, ModelDescription) and bool(model.hidden_output)


def _lack(model: PublishedModel, what: str) -> str:
    return f"{model.name} {what} and runs slower than it could; `hummock models pull {model.name}` mends that"
