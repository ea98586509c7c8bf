"""What all tests share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

from tests.shared import require_shared

# What a process says into a pipe must come out at once by itself, for its users set no such variable.
os.environ.pop("PYTHONUNBUFFERED", None)

# Deterministic; and no deadline, as the first example of a test may compile a kernel.
settings.register_profile("deterministic", derandomize=True, deadline=None)
settings.load_profile("deterministic")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of shared models and data sets; without it a test is skipped aloud, or fails if it must not be."""
    return require_shared()
