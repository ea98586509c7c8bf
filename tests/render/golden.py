"""Golden files: what outsiders see, byte by byte. `UPDATE_GOLDEN=1` writes them anew instead of comparing."""

from __future__ import annotations

import os
from pathlib import Path

_DIRECTORY = Path(__file__).parent.parent / "golden" / "render"


def assert_golden(name: str, text: str) -> None:
    path = _DIRECTORY / name
    if os.environ.get("UPDATE_GOLDEN") == "1":
        path.write_bytes(text.encode())
    assert path.read_bytes() == text.encode()
