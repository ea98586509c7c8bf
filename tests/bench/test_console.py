"""Cost of the console and delay of its pages, as far as they can be tested without a browser."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import console
from bench.command import Options
from bench.stores import Stores

pytestmark = pytest.mark.long


def test_without_chromium_the_size_of_what_is_loaded_is_told_and_the_rest_is_skipped_aloud(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console, "missing_programs", lambda: ["chromedriver"])
    found = console.measure(Options(stores=Stores(directory=tmp_path), models_dir=tmp_path, queries=1))
    (size,) = found.rows
    assert (size.row, size.unit, size.reached) == (31, "KB", True)
    assert 1 < size.value < 300
    assert found.skipped == ("rows 30 and 31: chromedriver missing, of Debian's chromium and chromium-driver",)
