"""Copies of whole stores: what the one holds and answers the other does too, whatever happens meanwhile."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from hummock.core.review import Quarantined
from hummock.ports.writes import UnitOfWork
from hummock.store import WritableStore
from hummock.store.errors import (
    CopiedOntoItself,
    CopyDisturbed,
    DatabaseIsCopiedInto,
    DirectoryInUse,
    DirectoryUnusable,
    NotADatabase,
    NothingToCopy,
    OtherHistory,
    SpacesDiffer,
    WordsOutdated,
)
from hummock.store.lmdb.files import DirectoryLock
from hummock.store.moving import Copied, CopiedProject, CopyCallbacks, copy_between, renumbered
from hummock.store.moving.landing import Landing
from hummock.store.moving.renumbered import ALONE
from hummock.store.postgresql.database import Database
from hummock.store.tables import record_codec
from hummock.store.tables.engine import TABLE_NAMES, Engine
from hummock.store.upkeep import moment
from hummock.store.upkeep.check import check
from hummock.store.upkeep.moment import Moment, ProjectDigest, digest_of
from hummock.store.write.reanalyse import REANALYSED_KEY
from tests.crash.killing import is_killed
from tests.ports.asking import ask, ids, put
from tests.store.answering import answers
from tests.store.opening import opened, opened_shared
from tests.store.test_backup import acknowledged, writing
from tests.store.test_fsck import altered
from tests.store.test_project_removal import fill, removal
from tests.strategies import SPACE, Entry, delete_request, embedding, write_request

PROJECTS = ("p", "另一个")


class Cut(BaseException):
    """Ends a copy in the middle, as Ctrl-C does."""


def put_rest(unit: UnitOfWork) -> None:
    """Adds what `fill` leaves out: a memory that expires, and one that is held for review."""
    entry = Entry(id="ends", words=("brief",))
    unit.put(replace(entry.memory(), expire_time=9e9), entry.key, entry.terms(), [embedding(1)])
    memory = replace(Entry(id="held", words=("held",)).memory(), chunk_count=0)
    unit.review.put(Quarantined(memory=memory, families=("override",), hold_time=1.0))


def made(store: WritableStore) -> None:
    """Something in every table, twice."""
    for project in PROJECTS:
        fill(store, project)
        store.write(project, write_request(put_rest)).result(30)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    with opened(tmp_path / "data") as store:
        made(store)
    return tmp_path / "data"


def held(store: WritableStore) -> dict[str, ProjectDigest]:
    """The digest of each project."""
    return digests(store._engine)


def digests(engine: Engine) -> dict[str, ProjectDigest]:
    with engine.reading() as txn:
        projects = Moment.of(engine, txn).projects()
    found = {}
    for name, (number, record) in projects.items():
        with engine.reading(number) as txn:
            found[name] = digest_of(Moment.of(engine, txn), number, record, by_any_number=True)
    return found


def held_in(data: Path) -> dict[str, ProjectDigest]:
    with opened(data) as store:
        return held(store)


def copied(
    source: Path | str, target: Path | str, *, replaces: bool = False, told: CopyCallbacks | None = None
) -> Copied:
    return copy_between(str(source), str(target), replaces=replaces, told=told, map_bytes=1 << 28)


def outcomes(found: Copied) -> dict[str, str]:
    return {one.name: one.outcome.value for one in found.projects}


def after_each(act: Callable[[CopiedProject], object]) -> CopyCallbacks:
    """Calls a function whenever a project is done."""
    return CopyCallbacks(done=lambda project: (act(project), None)[1])


def sound(data: Path) -> bool:
    return check(data, lambda done, total: None).problems == ()


def counts(engine: Engine) -> dict[str, int]:
    """Entries of each table, of all projects."""
    with engine.reading() as txn:
        return {name: engine.count(txn, getattr(engine.tables, name)) for name in TABLE_NAMES}


def test_a_directory_is_the_same_after_a_way_through_postgresql(data: Path, database: str, tmp_path: Path) -> None:
    there = copied(data, database)
    back = copied(database, tmp_path / "back")
    assert outcomes(there) == outcomes(back) == dict.fromkeys(PROJECTS, "copied")
    assert (there.is_whole, back.is_whole, there.others) == (True, True, ())
    assert sound(tmp_path / "back")
    with opened(data) as store:
        before, answered = held(store), [answers(store, project) for project in PROJECTS]
        entries = counts(store._engine)
    assert {one.name: one.digest for one in there.projects} == {name: one.digest for name, one in before.items()}
    with opened_shared(database) as shared:
        assert held(shared) == before
        assert [answers(shared, project) for project in PROJECTS] == answered
        put(shared, "p", Entry(id="new", words=("reef",)))
        assert ids(ask(shared, terms=["harbour", "reef"])) == {"a", "new"}
    with opened(tmp_path / "back") as store:
        assert held(store) == before
        assert [answers(store, project) for project in PROJECTS] == answered
        left_out = {"retired": 0, "retired_age": 0, "meta": entries["meta"] + len(PROJECTS)}
        assert counts(store._engine) == entries | left_out
        put(store, "p", Entry(id="new", words=("reef",)))
        assert ids(ask(store, terms=["harbour", "reef"])) == {"a", "new"}


def test_large_projects_are_read_and_written_piece_by_piece(
    data: Path, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(data) as store:
        put(store, "p", *[Entry(id=f"more{number}", words=("reef",), seeds=(1, 2, 3)) for number in range(40)])
        store.write("p", delete_request([f"more{number}" for number in range(5, 30)])).result(30)
        before = held(store)
    for name, value in (("_FIRST", 3), ("_MOST", 5), ("_LARGE_BYTES", 4000)):
        monkeypatch.setattr(renumbered, name, value)
    for name, value in (("_FEW", 1), ("_MANY", 7), ("_LARGE_BYTES", 4000)):
        monkeypatch.setattr(moment, name, value)
    monkeypatch.setattr(renumbered, "_BATCH_BYTES", 3000)
    assert copied(data, database).is_whole
    assert copied(database, tmp_path / "back").is_whole
    assert held_in(tmp_path / "back") == before
    assert sound(tmp_path / "back")


def test_every_table_is_copied_or_left_behind_on_purpose() -> None:
    together = {"memory", "payload", "column", "terms", "vector", "token", "checksum", "expiry", "by_digest"}
    left = {"meta", "project", "project_removed", "session_deleted", "retired", "retired_age"}
    assert {*ALONE, *together, *left} == set(TABLE_NAMES)
    assert len(ALONE) + len(together) + len(left) == len(TABLE_NAMES)


def test_what_is_equal_is_not_copied_again(data: Path, tmp_path: Path) -> None:
    copied(data, tmp_path / "new")
    assert outcomes(copied(data, tmp_path / "new")) == dict.fromkeys(PROJECTS, "equal")
    with opened(data) as store:
        put(store, "p", Entry(id="new", words=("reef",)))
        put(store, "third", Entry(id="b"))
        store.remove_project("另一个", removal()).result(30)
    again = copied(data, tmp_path / "new")
    assert outcomes(again) == {"p": "replaced", "third": "copied", "另一个": "removed"}
    assert again.is_whole
    assert held_in(tmp_path / "new") == held_in(data)
    assert sound(tmp_path / "new")


def test_a_project_made_again_under_a_removed_name_goes_on_where_that_ended(data: Path, tmp_path: Path) -> None:
    with opened(data) as store:
        store.remove_project("p", removal()).result(30)
        seq = put(store, "other", Entry(id="a"))
    copied(data, tmp_path / "new")
    with opened(tmp_path / "new") as there, opened(data) as here:
        assert put(there, "p", Entry(id="a")) == put(here, "p", Entry(id="a")) > seq


@contextmanager
def cut_at(point: int) -> Iterator[None]:
    """Ends the copy before or after one of the transactions that write, which are counted."""
    left, writing_of = point, Landing._writing

    def count() -> None:
        nonlocal left
        if not left:
            raise Cut
        left -= 1

    @contextmanager
    def cutting(landing: Landing, *given: Any, **named: Any) -> Iterator[Any]:
        count()
        with writing_of(landing, *given, **named) as txn:
            yield txn
        count()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Landing, "_writing", cutting)
        yield


@pytest.mark.long
def test_wherever_a_copy_is_cut_off_no_half_of_a_project_has_a_name(data: Path, tmp_path: Path) -> None:
    before, point, is_cut = held_in(data), 0, True
    while is_cut:
        target = tmp_path / f"new{point}"
        try:
            with cut_at(point):
                copied(data, target)
            is_cut = False
        except Cut:
            found = held_in(target)
            assert found.items() <= before.items()
            assert sound(target)
            again = copied(data, target)
            assert outcomes(again) == {name: "equal" if name in found else "copied" for name in before}
        assert held_in(target) == before
        assert sound(target)
        point += 1
    assert point > 2 * 3 * len(PROJECTS)


def test_what_a_copy_that_was_killed_has_left_is_cleared(data: Path, database: str) -> None:
    assert is_killed("copy", 9, data, database)
    with opened_shared(database) as shared:
        found = held(shared)
    assert set(found) < set(PROJECTS)
    assert copied(data, database).is_whole
    with opened(data) as store, opened_shared(database) as shared:
        assert held(shared) == held(store)
        for table in ("by_digest", "expiry", "project_removed"):
            assert counts(shared._engine)[table] == counts(store._engine)[table], table


def test_a_directory_is_copied_beside_its_writer(tmp_path: Path, database: str) -> None:
    with writing(tmp_path / "data") as process:
        for _ in range(12):
            acknowledged(process)
        copied(tmp_path / "data", database)
        acknowledged(process)
    last = copied(tmp_path / "data", database)
    assert last.is_whole
    with opened_shared(database) as shared:
        assert held(shared) == held_in(tmp_path / "data")


def test_what_is_written_meanwhile_is_caught_up_with(database: str, tmp_path: Path) -> None:
    with opened_shared(database) as shared:
        made(shared)
        later: list[Callable[[], object]] = [
            lambda: put(shared, "p", Entry(id="new", words=("reef",))),
            lambda: put(shared, "late", Entry(id="a")),
            lambda: shared.remove_project("另一个", removal()).result(30),
        ]
        told = after_each(lambda project: later.pop(0)() if later else None)
        found = copied(database, tmp_path / "new", told=told)
        assert outcomes(found) == {"p": "replaced", "late": "copied", "另一个": "removed"}
        assert (found.is_whole, found.moved) == (True, ())
        before = held(shared)
    assert held_in(tmp_path / "new") == before
    assert sound(tmp_path / "new")


def test_what_is_written_to_all_the_time_is_said(database: str, tmp_path: Path) -> None:
    with opened_shared(database) as shared:
        put(shared, "p", Entry(id="a"))
        put(shared, "calm", Entry(id="a"))
        found = copied(database, tmp_path / "new", told=after_each(lambda project: put(shared, "p", Entry(id="b"))))
        assert (found.is_whole, found.moved) == (False, ("p",))
        assert sound(tmp_path / "new")
        assert copied(database, tmp_path / "new").is_whole
        before = held(shared)
    assert held_in(tmp_path / "new") == before


def test_a_project_with_a_history_of_its_own_is_kept(data: Path, tmp_path: Path) -> None:
    new = tmp_path / "new"
    with opened(new) as store:
        put(store, "own", Entry(id="a"))
        put(store, "p", Entry(id="own", words=("reef",)))
    before = held_in(new)
    with pytest.raises(OtherHistory, match=r"has project p already.*--replace") as refused:
        copied(data, new)
    assert refused.value.projects == ("p",)
    assert held_in(new) == before
    replaced = copied(data, new, replaces=True)
    assert outcomes(replaced) == {"p": "replaced", "另一个": "copied"}
    assert replaced.others == ("own",)
    assert held_in(new) == held_in(data) | {"own": before["own"]}
    assert sound(new)


def test_a_copy_that_was_written_to_since_is_kept(data: Path, tmp_path: Path) -> None:
    copied(data, tmp_path / "new")
    with opened(tmp_path / "new") as store:
        put(store, "p", Entry(id="own", words=("reef",)))
    with pytest.raises(OtherHistory):
        copied(data, tmp_path / "new")
    with opened(data) as store:
        put(store, "p", Entry(id="more"))
        put(store, "p", Entry(id="more still"))
    with pytest.raises(OtherHistory):
        copied(data, tmp_path / "new")


def test_a_service_that_writes_to_a_copy_is_never_overwritten(data: Path, database: str) -> None:
    copied(data, database)
    with opened(data) as store:
        put(store, "p", Entry(id="more"))
    with opened_shared(database) as shared:
        name, before = Landing.name, held(shared)

        def late(landing: Landing, *given: Any) -> None:
            put(shared, "p", Entry(id="own", words=("reef",)))
            name(landing, *given)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Landing, "name", late)
            with pytest.raises(CopyDisturbed):
                copied(data, database)
        assert ids(ask(shared, terms=["reef"])) == {"own"}
        assert held(shared).keys() == before.keys()


def test_a_service_sees_what_was_copied_while_it_ran(data: Path, database: str) -> None:
    with opened_shared(database) as shared:
        put(shared, "own", Entry(id="a"))
        assert not ids(ask(shared, terms=["harbour"]))
        copied(data, database)
        assert ids(ask(shared, terms=["harbour"])) == {"a"}
        with opened(data) as store:
            put(store, "p", Entry(id="new", words=("reef",)))
        copied(data, database)
        assert ids(ask(shared, terms=["harbour", "reef"])) == {"a", "new"}
        put(shared, "p", Entry(id="more", words=("reef",)))
        assert ids(ask(shared, terms=["harbour", "reef"])) == {"a", "new", "more"}


def test_vectors_of_another_space_are_refused(data: Path, database: str, tmp_path: Path) -> None:
    other = dataclasses.replace(SPACE, id="6f" * 16, model="other-model")
    with opened(tmp_path / "new", space=other) as store:
        put(store, "own", Entry(id="a"))
    with opened_shared(database, space=other):
        pass
    for target in (tmp_path / "new", database):
        with pytest.raises(SpacesDiffer, match=r"of model test-model .*of model other-model .*hummock save project"):
            copied(data, target)


def test_a_directory_that_is_in_use_is_not_written_to(data: Path, tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    lock = DirectoryLock(tmp_path / "new")
    with pytest.raises(DirectoryInUse, match="stop that process or choose another directory"):
        copied(data, tmp_path / "new")
    lock.release()
    assert copied(data, tmp_path / "new").is_whole


def test_a_target_that_is_full_says_what_to_do(data: Path, tmp_path: Path) -> None:
    with pytest.raises(DirectoryUnusable, match=r"raise storage\.map_bytes"):
        copy_between(str(data), str(tmp_path / "new"), map_bytes=1 << 18)
    assert copied(data, tmp_path / "new").is_whole
    assert held_in(tmp_path / "new") == held_in(data)
    assert sound(tmp_path / "new")


def test_two_copies_into_one_database_do_not_disturb_each_other(data: Path, database: str) -> None:
    with opened_shared(database) as shared:
        engine = shared._engine
        assert isinstance(engine, Database)
        with engine.copied_into(), pytest.raises(DatabaseIsCopiedInto, match="another `hummock save copy`"):
            copied(data, database)
    assert copied(data, database).is_whole


def test_what_is_no_store_is_said_and_nothing_is_made(data: Path, database: str, tmp_path: Path) -> None:
    for source in (tmp_path / "none", database):
        with pytest.raises(NothingToCopy, match="holds nothing to copy"):
            copied(source, tmp_path / "new")
    assert not (tmp_path / "new").exists()
    with pytest.raises(CopiedOntoItself):
        copied(data, tmp_path / "none" / ".." / "data")
    with pytest.raises(CopiedOntoItself):
        copied(database, database)
    with pytest.raises(NotADatabase) as refused:
        copied(data, "postgresql://me:geheim@host:port:port/x?=y")
    assert "geheim" not in str(refused.value)


@pytest.mark.parametrize("table", ["payload", "session_record", "link"])
def test_a_damaged_project_is_said_and_the_others_are_copied(data: Path, tmp_path: Path, table: str) -> None:
    before = held_in(data)
    altered(data, lambda tables: tables.garble(table))
    found = copied(data, tmp_path / "new")
    assert outcomes(found) == {"p": "damaged", "另一个": "copied"}
    assert not found.is_whole
    (damaged,) = found.damaged
    assert "project p is damaged" in damaged.why
    assert held_in(tmp_path / "new") == {"另一个": before["另一个"]}
    assert sound(tmp_path / "new")


def test_a_directory_that_lacks_tables_is_to_be_served_once(data: Path, tmp_path: Path) -> None:
    altered(data, lambda tables: tables._txn.drop(tables._db("review")))
    with pytest.raises(WordsOutdated, match="start the service of this version on it once"):
        copied(data, tmp_path / "new")
    with opened(data):
        pass
    assert copied(data, tmp_path / "new").is_whole


def test_words_of_an_earlier_version_are_not_copied(data: Path, tmp_path: Path) -> None:
    with opened(data) as store:
        engine = store._engine
        with engine.writing() as txn:
            record = record_codec.Reanalysed(project=0, doc=0)
            txn.put(REANALYSED_KEY, record_codec.encode(record), db=engine.tables.meta)
    with pytest.raises(WordsOutdated, match="start the service of this version on it once"):
        copied(data, tmp_path / "new")
