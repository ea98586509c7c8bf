"""The model that tests of the whole service run: the real one where it is, else the toy one."""

from __future__ import annotations

from pathlib import Path

from bench import toy_models
from tests.shared import MINILM, install_minilm


def install_model(models_dir: Path) -> str:
    """Puts a model into the directory and returns its name. Tests that need the real one use `real_models` as well."""
    return MINILM if install_minilm(models_dir) else toy_models.build_tiny(models_dir).name
