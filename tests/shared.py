"""The folder of shared models and data sets that tests use where it is: `HUMMOCK_SHARED`, default `../shared`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def shared_folder() -> Path | None:
    """The folder; None where there is none. With REQUIRE_SHARED=1 the test fails instead."""
    named = os.environ.get("HUMMOCK_SHARED")
    folder = Path(named) if named else Path(__file__).parents[2] / "shared"
    if folder.is_dir():
        return folder
    if os.environ.get("REQUIRE_SHARED") == "1":
        pytest.fail(f"REQUIRE_SHARED=1, and there is no folder of shared files at {folder}; set HUMMOCK_SHARED")
    return None


def require_shared(*parts: str) -> Path:
    """A file or folder below it. Skips the test, aloud, where it is missing."""
    folder = shared_folder()
    found = folder.joinpath(*parts) if folder is not None else None
    if found is not None and found.exists():
        return found
    missing = f"needs {'/'.join(parts) or 'files'} of the shared folder; name it with HUMMOCK_SHARED"
    if os.environ.get("REQUIRE_SHARED") == "1":
        pytest.fail(missing)
    pytest.skip(missing)
