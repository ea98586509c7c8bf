"""Which models there are on this machine."""

from __future__ import annotations

from pathlib import Path

from hummock import models
from hummock.core.errors import HummockError


def installed(models_dir: Path) -> list[str]:
    """Names of the models whose files are there, the service's default first; the toy model is none."""
    folders = sorted(path.name for path in models_dir.iterdir()) if models_dir.is_dir() else []
    names = [
        *(model.name for model in models.candidates(models.AUTO, models_dir)),
        *models.REGISTRY,
        *models.PAIRS,
        *folders,
    ]
    return [name for name in dict.fromkeys(names) if name != models.TINY and _is_there(name, models_dir)]


def _is_there(name: str, models_dir: Path) -> bool:
    try:
        return models.is_here(models.find(name, models_dir), models_dir)
    except HummockError:  # a folder that describes no model
        return False
