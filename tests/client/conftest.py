"""What tests of clients in other languages need."""

from __future__ import annotations

import os
import shutil

import pytest


@pytest.fixture(scope="session")
def go() -> str:
    """Path of `go`; the test is skipped where it is missing, or fails with REQUIRE_CLIENTS."""
    found = shutil.which("go")
    if found is None:
        if os.environ.get("REQUIRE_CLIENTS"):
            pytest.fail("go is missing, and REQUIRE_CLIENTS is set")
        pytest.skip("go is missing")
    return found
