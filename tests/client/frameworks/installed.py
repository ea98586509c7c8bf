"""The environment in which the frameworks are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

_PYTHON = Path(__file__).parents[3] / ".bench" / "frameworks" / "bin" / "python"


def require_frameworks() -> Path:
    """Interpreter of the frameworks. Without it the test is skipped, aloud, or with REQUIRE_CLIENTS=1 fails."""
    if _PYTHON.exists():
        return _PYTHON
    said = "LangChain, LlamaIndex and OpenAI's agents are missing; `make frameworks` installs them"
    if os.environ.get("REQUIRE_CLIENTS") == "1":
        pytest.fail(said)
    pytest.skip(said)
