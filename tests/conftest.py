"""What all tests share."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

from tests.shared import require_shared

# Deterministic; and no deadline, as the first example of a test may compile a kernel.
settings.register_profile("deterministic", derandomize=True, deadline=None)
settings.load_profile("deterministic")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of shared models and data sets; without it a test is skipped aloud, or fails if it must not be."""
    return require_shared()
