"""Calibrations measured on this machine, one file for each embedding space: `calibrations/<emb_space>.json`.

They stand beside the models and not in their directories: a pair of models has none, and a model that is fetched anew
keeps its calibration.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path

from hummock.core.embedding import Calibration, EmbeddingSpace
from hummock.models.errors import CalibrationInvalid, ModelsDirectoryUnusable

__all__ = ["read_calibration", "write_calibration"]

CALIBRATIONS = "calibrations"


def write_calibration(models_directory: Path, space: EmbeddingSpace, calibration: Calibration) -> Path:
    """Keep a calibration of a space for every later start; returns its file. An earlier one is replaced.

    Raises:
        ModelsDirectoryUnusable: Nothing can be written there.
    """
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
    """What was measured for that space; None where nothing was.

    Raises:
        CalibrationInvalid: The file is there but is no calibration of that space.
    """
    path = _path(models_directory, emb_space)
    if not path.is_file():
        return None
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["emb_space"] != emb_space:
            raise ValueError(f"it is one of {content['emb_space']!r}")
        calibration = Calibration(
            unrelated_latin=float(content["unrelated_latin"]),
            unrelated_han=float(content["unrelated_han"]),
            near_twin_bar=float(content["near_twin_bar"]),
        )
        if not (0 <= calibration.unrelated_latin < 1 and 0 <= calibration.unrelated_han < 1):
            raise ValueError("unrelated texts have cosines of 0 to 1")
    except (ValueError, KeyError, TypeError) as error:
        raise CalibrationInvalid(path, f"{type(error).__name__}: {error}") from error
    return calibration


def _path(models_directory: Path, emb_space: str) -> Path:
    return models_directory / CALIBRATIONS / f"{emb_space}.json"
