"""The model that tests of the whole service run: the real one where it is, else the toy one, said aloud."""

from __future__ import annotations

from pathlib import Path

import pytest

from hummock import models
from tests.shared import shared_folder

MINILM = "all-MiniLM-L6-v2"


def install_model(models_dir: Path) -> str:
    """Puts a model into the directory and returns its name."""
    folder = shared_folder()
    if folder is None:
        return models.build_tiny(models_dir).name
    models.install(models.REGISTRY[MINILM], folder / "models" / "all-minilm-l6-v2-int8", models_dir)
    return MINILM


def require_meaning(name: str) -> None:
    """Skips, aloud, a test that needs a model which knows what words mean."""
    if name == models.TINY:
        pytest.skip("needs the real model of the shared folder; name it with HUMMOCK_SHARED")
