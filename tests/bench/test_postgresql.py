"""The part that compares both stores, at a size at which nothing of what it finds means anything."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import pytest

from bench import postgresql
from bench.command import Options
from bench.postgresql import Sizes, measure_at
from bench.stores import Setting, Stores
from tests.postgresql.programs import ProgramsMissing

pytestmark = pytest.mark.long

SMALL = Sizes(
    several=Setting(name="several", memories=256, projects=2),
    one=Setting(name="one", memories=128, projects=1),
    warm_up=4,
    recalls=6,
    learns=4,
    calls=32,
    take_overs=1,
)


def options_in(directory: Path) -> Options:
    return Options(stores=Stores(directory=directory), models_dir=directory, queries=1)


def test_both_stores_are_asked_the_same_and_each_row_is_found(programs: Path, directory: Path) -> None:
    directory.chmod(0o755)
    found = measure_at(options_in(directory), SMALL)
    assert [row.row for row in found.rows] == [32, 33, 34, 35]
    assert all(row.value > 0 for row in found.rows)
    assert found.skipped == ()


def test_without_postgresql_the_rows_are_skipped_aloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(directory: Path) -> NoReturn:
        raise ProgramsMissing("there is none")

    monkeypatch.setattr(postgresql, "running_node", missing)
    found = measure_at(options_in(tmp_path), SMALL)
    assert found.rows == ()
    assert found.skipped == ("rows 32 to 35, the store over PostgreSQL: there is none",)
