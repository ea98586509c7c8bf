"""Models outside the registry: a directory of model files that describes itself in `description.json`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from hummock.core.embedding import Calibration
from hummock.models.description import (
    ModelDescription,
    ModelFile,
    Pooling,
    RerankerDescription,
)
from hummock.models.errors import DescriptionInvalid

__all__ = ["DESCRIPTION_FILE", "read_description", "write_description"]

DESCRIPTION_FILE = "description.json"
RERANKER = "reranker"


def write_description(model: ModelDescription | RerankerDescription, directory: Path) -> None:
    """Put the description beside the model's files; sources and conversion are not kept."""
    content: dict[str, object] = {
        "name": model.name,
        "licence": model.licence,
        "files": {file.name: file.sha256 for file in model.files},
        "max_tokens": model.max_tokens,
    }
    content |= _embedding_fields(model) if isinstance(model, ModelDescription) else _reranker_fields(model)
    text = json.dumps(content, ensure_ascii=False, indent=2) + "\n"
    (directory / DESCRIPTION_FILE).write_text(text, encoding="utf-8")


def read_description(models_directory: Path, name: str) -> ModelDescription | RerankerDescription | None:
    """The model that describes itself under that name; None where there is none.

    Raises:
        DescriptionInvalid: The file is there but does not describe a model of that name.
    """
    path = models_directory / name / DESCRIPTION_FILE
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name) or not path.is_file():
        return None
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        model = _reranker(content) if content.get("task") == RERANKER else _embedding_model(content)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DescriptionInvalid(path, f"{type(error).__name__}: {error}") from error
    if model.name != name:
        raise DescriptionInvalid(path, f"it describes {model.name!r}")
    return model


def _embedding_fields(model: ModelDescription) -> dict[str, object]:
    calibration = model.calibration
    return {
        "pooling": model.pooling.value,
        "dim": model.dim,
        "query_prefix": model.query_prefix,
        "scripts": sorted(model.scripts),
        "unrelated_latin": calibration.unrelated_latin,
        "unrelated_han": calibration.unrelated_han,
        "near_twin_bar": calibration.near_twin_bar,
        "hidden_output": model.hidden_output,
        "lowercase": model.lowercase,
    }


def _reranker_fields(model: RerankerDescription) -> dict[str, object]:
    return {"task": RERANKER, "score_output": model.score_output}


def _embedding_model(content: dict[str, Any]) -> ModelDescription:
    return ModelDescription(
        name=str(content["name"]),
        licence=str(content["licence"]),
        files=_files(content),
        sources=(),
        pooling=Pooling(content["pooling"]),
        dim=int(content["dim"]),
        max_tokens=int(content["max_tokens"]),
        query_prefix=str(content["query_prefix"]),
        scripts=frozenset(str(script) for script in content["scripts"]),
        calibration=Calibration(
            unrelated_latin=float(content["unrelated_latin"]),
            unrelated_han=float(content["unrelated_han"]),
            near_twin_bar=float(content["near_twin_bar"]),
        ),
        hidden_output=str(content["hidden_output"]),
        lowercase=bool(content["lowercase"]),
    )


def _reranker(content: dict[str, Any]) -> RerankerDescription:
    return RerankerDescription(
        name=str(content["name"]),
        licence=str(content["licence"]),
        files=_files(content),
        sources=(),
        max_tokens=int(content["max_tokens"]),
        score_output=str(content["score_output"]),
    )


def _files(content: dict[str, Any]) -> tuple[ModelFile, ...]:
    return tuple(ModelFile(name=str(name), sha256=str(sha256)) for name, sha256 in content["files"].items())
