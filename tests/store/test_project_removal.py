"""A removed project leaves nothing in any table, whenever the clearing is cut short."""

from __future__ import annotations

from dataclasses import fields, replace
from itertools import pairwise
from pathlib import Path
from threading import Event

import pytest

from hummock.core.errors import ProjectNotFound, RequestIdReused
from hummock.core.learning import TurnObserved
from hummock.core.memory import Filter
from hummock.core.session import PromptRole, Session, SessionMessage
from hummock.learning.log import record
from hummock.ports.writes import ProjectRemoval, UnitOfWork
from hummock.store import WritableStore
from hummock.store.tables.engine import Tables
from hummock.store.write.project_removal import Remains
from tests.fakes import FakeClock
from tests.ports.asking import ask, ids, put
from tests.store.opening import Blocker, opened
from tests.strategies import Entry, embedding, learned_request, put_request, write_request
from tests.sure import sure

FIRST = "5f0c0f5e-0000-4000-8000-000000000001"


def removal(request_id: str = "", fingerprint: bytes = b"p") -> ProjectRemoval:
    return ProjectRemoval(request_id=request_id, fingerprint=fingerprint)


def talk(unit: UnitOfWork) -> None:
    """A session with messages, and a turn that was observed."""
    unit.sessions.create(Session(id="s", title="", create_time=1.0, update_time=1.0))
    for number in range(5):
        session = sure(unit.sessions.get("s"))
        said = SessionMessage(id=f"m{number}", role=PromptRole.USER, content="tide", raw="", send_time=1.0)
        unit.sessions.append(session, said)
    record(unit.learning, TurnObserved(scope="s", turn=1, user_text="tide", assistant_hash=b"", used_ids=("a",)))


def fill(store: WritableStore, project: str = "p") -> None:
    """Something in every table that a project has rows in."""
    some = [Entry(id=f"m{number}", words=("tide", f"w{number}"), seeds=(number, number + 1)) for number in range(20)]
    put(store, project, Entry(id="a", words=("tide",), session_id="s", tags=("code",)), *some)
    put(store, project, Entry(id="waits", words=("core",), seeds=()))
    store.write(project, put_request([Entry(id="b", words=("core",))], request_id=FIRST)).result(30)
    store.write(project, learned_request("a", "harbour")).result(30)
    store.write(project, write_request(talk)).result(30)
    store.write(project, write_request(lambda unit: unit.delete("m3"))).result(30)


def rows(store: WritableStore, number: int) -> dict[str, int]:
    """Entries of each table that begin with a project's number."""
    prefix = number.to_bytes(4, "big")
    tables = store._engine.tables
    found = {}
    with store._engine.reading() as txn:
        for field in fields(Tables):
            if field.name in ("meta", "project", "retired", "retired_age", "by_digest", "project_removed"):
                continue
            with txn.cursor(getattr(tables, field.name)) as cursor:
                count = sum(key.startswith(prefix) for key in cursor.iternext(keys=True, values=False))
            if count:
                found[field.name] = count
    return found


def cleared(store: WritableStore) -> None:
    """Clears what is left, alongside the writer, which does so as well."""
    remains = Remains(store._engine, store.claims)
    while remains.clear_some():
        pass


def test_a_removed_project_is_gone_and_says_what_it_had(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        fill(store)
        fill(store, "other")
        deleted = store.remove_project("p", removal()).result(30).reply
        assert (deleted.memory_count, deleted.session_count, deleted.message_count) == (22, 1, 5)
        assert store.project("p") is None
        assert [one.name for one in store.projects("", 10)] == ["other"]
        assert not ids(ask(store, terms=["tide"]))
        assert store.get("p", ["a"], 0, full=True) == [None]
        assert store.page("p", Filter(), 0, 10, full=True).memories == ()
        assert store.generation("p").seq == 0
        assert ids(ask(store, "other", terms=["harbour"])) == {"a"}
        with pytest.raises(ProjectNotFound):
            store.remove_project("p", removal()).result(30)


def test_the_writer_clears_all_of_it_and_nothing_of_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    is_done, clear_some = Event(), Remains.clear_some

    def noted(remains: Remains) -> bool:
        has_looked, are_any = remains._are_any, clear_some(remains)
        if has_looked and not are_any:
            is_done.set()
        return are_any

    monkeypatch.setattr(Remains, "clear_some", noted)
    with opened(tmp_path) as store:
        fill(store)
        fill(store, "other")
        before = rows(store, 2)
        assert set(before) <= set(rows(store, 1))
        assert is_done.wait(30)
        is_done.clear()
        store.remove_project("p", removal()).result(30)
        assert is_done.wait(30)
        assert rows(store, 1) == {}
        assert rows(store, 2) == before


def test_vectors_of_its_texts_are_found_by_nobody(tmp_path: Path) -> None:
    """An indexed text is kept by its digest: with its project it goes for good."""
    digest = embedding(1).digest
    with opened(tmp_path) as store:
        put(store, "p", Entry(id="a", seeds=(1,)))
        assert store.vectors([digest]) != [None]
        store.remove_project("p", removal()).result(30)
        cleared(store)
        assert store.vectors([digest]) == [None]


def test_a_project_of_its_name_is_another_one(tmp_path: Path) -> None:
    """No number of the old one means anything in it."""
    with opened(tmp_path) as store:
        fill(store)
        assert ids(ask(store, terms=["harbour"])) == {"a"}
        old = sure(store.project("p"))
        old_docs = {int(doc) for doc in ask(store, terms=["tide"]).rows["doc"]}
        store.remove_project("p", removal()).result(30)
        seq = put(store, "p", Entry(id="new", words=("harbour",)))
        assert ids(ask(store, terms=["tide", "harbour", "core"])) == {"new"}
        new = sure(store.project("p"))
        assert new.seq == seq > old.seq
        assert new.content_seq > old.content_seq
        assert new.memory_count == 1
        assert not old_docs & {int(doc) for doc in ask(store, terms=["harbour"]).rows["doc"]}
        for position in range(old.seq + 1):
            assert store.memory_events("p", position, full=False).is_reset
        assert store.sessions.all("p") == ()
        # A request of before is none of this one's.
        store.write("p", put_request([Entry(id="b", words=("core",))], request_id=FIRST)).result(30)
        assert ids(ask(store, terms=["core"])) == {"b"}
        assert store.read_learning("p", lambda learning: learning.state().events) == 0


def test_removals_and_writes_of_one_group_happen_in_their_order(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        fill(store)
        blocker = Blocker(store)
        before = store.write("p", put_request([Entry(id="lost", words=("reef",))]))
        removed = store.remove_project("p", removal())
        behind = store.write("p", put_request([Entry(id="kept", words=("reef",))]))
        blocker.release()
        assert removed.result(30).reply.memory_count == 23
        assert before.result(30).seq < removed.result(30).seq < behind.result(30).seq
        assert ids(ask(store, terms=["reef", "tide"])) == {"kept"}
        cleared(store)
        assert rows(store, 1) == {}


def test_a_repeat_is_answered_alike_and_removes_nothing(tmp_path: Path) -> None:
    clock = FakeClock()
    with opened(tmp_path, clock=clock) as store:
        fill(store)
        first = store.remove_project("p", removal(FIRST)).result(30)
        put(store, "p", Entry(id="new"))
        assert store.remove_project("p", removal(FIRST)).result(30) == replace(first, is_repeat=True)
        assert ids(ask(store, terms=["tide"])) == {"new"}
        with pytest.raises(RequestIdReused):
            store.remove_project("other", removal(FIRST, b"other")).result(30)


def test_a_write_that_may_not_create_finds_no_project(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        request = put_request([Entry(id="a")])
        request = type(request)(
            request_id="", fingerprint=b"", reply_type=request.reply_type, apply=request.apply, creates=False
        )
        with pytest.raises(ProjectNotFound):
            store.write("p", request).result(30)
        assert store.project("p") is None


@pytest.mark.parametrize("slices", [0, 1, 2, 3])
def test_clearing_goes_on_where_a_process_left_it(tmp_path: Path, slices: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The directory is left as a kill would leave it, between two slices."""
    with monkeypatch.context() as patched, opened(tmp_path) as store:
        patched.setattr(Remains, "clear_some", lambda self: False)
        fill(store)
        store.remove_project("p", removal()).result(30)
        store._writer.close()
        patched.undo()
        remains = Remains(store._engine, store.claims, entries_at_once=7)
        assert all(remains.clear_some() for _ in range(slices))
        assert rows(store, 1)
    with opened(tmp_path) as store:
        put(store, "p", Entry(id="new"))
        cleared(store)
        assert rows(store, 1) == {}
        assert ids(ask(store, terms=["tide"])) == {"new"}


def test_slices_are_small_and_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched, opened(tmp_path) as store:
        patched.setattr(Remains, "clear_some", lambda self: False)
        fill(store)
        store.remove_project("p", removal()).result(30)
        store._writer.close()
        patched.undo()
        remains, counts = Remains(store._engine, store.claims, entries_at_once=10), [sum(rows(store, 1).values())]
        while remains.clear_some():
            counts.append(sum(rows(store, 1).values()))
        assert counts[-1] == 0
        assert all(before - after <= 10 for before, after in pairwise(counts))
        assert not remains.clear_some()
