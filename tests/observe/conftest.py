from __future__ import annotations

from tests.service.conftest import model, models_dir

__all__ = ["model", "models_dir"]
