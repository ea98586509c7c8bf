"""Shared data sets, and deterministic properties."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("deterministic", derandomize=True, deadline=None)
settings.load_profile("deterministic")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of shared data sets and models; without it a test says that it is skipped, or fails if it must not."""
    default = Path(__file__).parents[2].parent / "shared"
    folder = Path(os.environ.get("HUMMOCK_SHARED", default))
    if folder.is_dir():
        return folder
    message = f"no shared data at {folder}: set HUMMOCK_SHARED"
    if os.environ.get("REQUIRE_SHARED") == "1":
        pytest.fail(message)
    pytest.skip(message)
