"""Copies of whole stores: what the one holds and answers the other does too, whatever happens meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from hummock.core.memory import Filter
from hummock.store import WritableStore
from hummock.store.errors import DirectoryInUse
from hummock.store.moving import Copied, copying, copy_between
from hummock.store.moving.copying import Outcome, Told
from hummock.store.moving.moment import Moment
from hummock.store.moving.refusals import (
    CopiedOntoItself,
    NotADatabase,
    NothingToCopy,
    OtherHistory,
    SpacesDiffer,
)
from hummock.store.upkeep.check import check
from hummock.store.upkeep.digest import ProjectDigest, digest_of
from tests.ports.asking import ask, ids, put
from tests.store.answering import answers
from tests.store.opening import opened, opened_shared
from tests.store.test_project_removal import fill, removal
from tests.strategies import SPACE, Entry


def held(store: WritableStore) -> dict[str, ProjectDigest]:
    """The digest of each project."""
    engine = store._engine
    with engine.reading() as txn:
        projects = Moment(engine, txn).projects()
    found = {}
    for name, (number, record) in projects.items():
        with engine.reading(number) as txn:
            found[name] = digest_of(Moment(engine, txn), number, record, by_any_number=True)
    return found


def outcomes(copied: Copied) -> dict[str, str]:
    return {one.name: one.outcome.value for one in copied.projects}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A directory with something in every table."""
    with opened(tmp_path / "data") as store:
        fill(store)
        fill(store, "另一个")
    return tmp_path / "data"


def test_a_directory_is_the_same_after_a_way_through_postgresql(data: Path, database: str, tmp_path: Path) -> None:
    there = copy_between(str(data), database)
    back = copy_between(database, str(tmp_path / "back"))
    assert outcomes(there) == outcomes(back) == {"p": "copied", "另一个": "copied"}
    assert there.is_whole and back.is_whole
    assert check(tmp_path / "back", lambda done, total: None).problems == ()
    with opened(data) as store:
        before, answered = held(store), [answers(store), answers(store, "另一个")]
    with opened_shared(database) as store:
        assert held(store) == before
        assert [answers(store), answers(store, "另一个")] == answered
    with opened(tmp_path / "back") as store:
        assert held(store) == before
        assert [answers(store), answers(store, "另一个")] == answered
        put(store, "p", Entry(id="new", words=("reef",)))
        assert ids(ask(store, terms=["harbour", "reef"])) == {"a", "new"}
