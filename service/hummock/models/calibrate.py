"""Measures and stores a model's calibration: the cosine of unrelated texts, and that of near-twins."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hummock.core.embedding import Calibration, EmbeddingSpace
from hummock.models.errors import CalibrationInvalid, ModelsDirectoryUnusable, PairsInvalid
from hummock.ports.models import Embedder
from hummock.text.normalise import is_han

CALIBRATIONS = "calibrations"

_FIELDS = tuple(each.name for each in fields(Calibration))

LEAST_PAIRS = 20
"""Fewest pairs of texts in a script that are enough to measure it."""

UNRELATED_SHARE = 0.95
ANSWERING_SHARE = 0.05
RELATED_SHARE = 0.999
TWIN_SHARE = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class TextPair:
    """A question, and the document that answers it."""

    query: str
    document: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Figures of one model on one script's texts.

    Attributes:
        pairs: How many pairs they come from.
        unrelated: Mean cosine of a query with a document that does not answer it.
        unrelated_ceiling: Cosine that one such pair in twenty exceeds.
        answering: Mean cosine of a query with the document that answers it.
        answering_floor: Cosine below which one such pair in twenty falls.
        related_ceiling: Cosine that one pair in a thousand of different documents exceeds.
        twin_floor: Cosine below which one pair in twenty of versions of one text falls.
    """

    pairs: int
    unrelated: float
    unrelated_ceiling: float
    answering: float
    answering_floor: float
    related_ceiling: float
    twin_floor: float

    @property
    def near_twin_bar(self) -> float:
        """Between the two: above what different texts reach, and below most versions where these are apart."""
        return max(self.related_ceiling, (self.related_ceiling + self.twin_floor) / 2)


def read_pairs(lines: Iterable[str]) -> list[TextPair]:
    """The pairs of a JSON-lines file, `{"query": …, "document": …}` each; empty lines are skipped.

    Raises: PairsInvalid: A line is something else, or a document answers two queries.
    """
    pairs: list[TextPair] = []
    seen: set[str] = set()
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            content = json.loads(line)
            pair = TextPair(query=content["query"], document=content["document"])
        except (ValueError, KeyError, TypeError) as error:
            raise PairsInvalid(f'line {number} is not {{"query": …, "document": …}}') from error
        if not isinstance(pair.query, str) or not isinstance(pair.document, str):
            raise PairsInvalid(f"line {number}: query and document are texts")
        if pair.document in seen:
            raise PairsInvalid(f"line {number}: its document stands in an earlier line too; each answers one query")
        seen.add(pair.document)
        pairs.append(pair)
    return pairs


def measure_scripts(embedder: Embedder, pairs: Sequence[TextPair]) -> dict[str, Measured]:
    """Measure "han" (the query has Chinese characters) and "latin", if they have LEAST_PAIRS pairs.

    Raises: PairsInvalid: Neither script has enough pairs.
    """
    scripts = {"han": True, "latin": False}
    by_script = {name: [pair for pair in pairs if is_han(pair.query) is han] for name, han in scripts.items()}
    counts = {script: len(its) for script, its in by_script.items()}
    if max(counts.values()) < LEAST_PAIRS:
        raise PairsInvalid(
            f"there are {counts['han']} pairs in Chinese and {counts['latin']} others; {LEAST_PAIRS} are needed"
        )
    return {script: measure(embedder, its) for script, its in by_script.items() if len(its) >= LEAST_PAIRS}


def measure(embedder: Embedder, pairs: Sequence[TextPair]) -> Measured:
    """Figures from pairs, at least two: each query is answered by its own document and by no other one."""
    asked = np.stack([embedder.embed_query(pair.query).vector for pair in pairs])
    told = _vectors(embedder, [pair.document for pair in pairs])
    edited = _vectors(embedder, [_version(pair.document) for pair in pairs])
    across = asked @ told.T
    answering = np.diagonal(across)
    apart = ~np.eye(len(told), dtype=np.bool_)
    return Measured(
        pairs=len(pairs),
        unrelated=float(across[apart].mean()),
        unrelated_ceiling=float(np.quantile(across[apart], UNRELATED_SHARE)),
        answering=float(answering.mean()),
        answering_floor=float(np.quantile(answering, ANSWERING_SHARE)),
        related_ceiling=float(np.quantile((told @ told.T)[apart], RELATED_SHARE)),
        twin_floor=float(np.quantile((told * edited).sum(axis=1), TWIN_SHARE)),
    )


def calibrated(before: Calibration, measured: dict[str, Measured]) -> Calibration:
    """Build a calibration from the figures; a script without figures keeps its earlier values.

    The near-twin bar is the highest of the scripts' bars, since a text wrongly ranked last is lost.
    """
    unrelated = {script: min(max(figures.unrelated, 0.0), 0.999) for script, figures in measured.items()}
    return replace(
        before,
        unrelated_latin=unrelated.get("latin", before.unrelated_latin),
        unrelated_han=unrelated.get("han", before.unrelated_han),
        near_twin_bar=min(max(figures.near_twin_bar for figures in measured.values()), 1.0),
    )


def write_calibration(models_directory: Path, space: EmbeddingSpace, calibration: Calibration) -> Path:
    """Keep a calibration of a space for every later start; returns its file. Raises: ModelsDirectoryUnusable."""
    path = _path(models_directory, space.id)
    content = {"model": space.model, "emb_space": space.id, **asdict(calibration)}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".partial")
        with partial.open("w", encoding="utf-8") as file:
            file.write(json.dumps(content, indent=2) + "\n")
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        raise ModelsDirectoryUnusable(models_directory, error) from error
    return path


def read_calibration(models_directory: Path, emb_space: str) -> Calibration | None:
    """Read the calibration measured for that space; None if there is none. Raises: CalibrationInvalid."""
    path = _path(models_directory, emb_space)
    if not path.is_file():
        return None
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["emb_space"] != emb_space:
            raise ValueError(f"it is one of {content['emb_space']!r}")
        calibration = Calibration(**{name: float(content[name]) for name in _FIELDS if name in content})
        if not (0 <= calibration.unrelated_latin < 1 and 0 <= calibration.unrelated_han < 1):
            raise ValueError("unrelated texts have cosines of 0 to 1")
    except (ValueError, KeyError, TypeError) as error:
        raise CalibrationInvalid(path, f"{type(error).__name__}: {error}") from error
    return calibration


def _path(models_directory: Path, emb_space: str) -> Path:
    return models_directory / CALIBRATIONS / f"{emb_space}.json"


def _vectors(embedder: Embedder, texts: Sequence[str]) -> NDArray[np.float32]:
    return np.stack([embedded.vector for (embedded,) in embedder.embed_documents([(text,) for text in texts])])


def _version(text: str) -> str:
    """Another version of a text, as an edit leaves it: every tenth word (of Chinese, character) is gone."""
    words = text.split(" ")
    pieces, between = (words, " ") if len(words) > len(text) / 20 else (list(text), "")
    return between.join(piece for index, piece in enumerate(pieces) if index % 10 != 9) + between + "v2"
