"""Sessions and messages of any store, against a dictionary."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from msgspec.structs import replace

from hummock.core.errors import SessionNotFound
from hummock.core.session import PromptRole, Session, SessionMessage
from hummock.ports.sessions import SessionWork
from hummock.ports.store import Store
from tests.ports.asking import put
from tests.store.opening import opened
from tests.strategies import Entry, write_request
from tests.sure import sure

PROJECTS = ("p", "项目")
# The last is too long for a key of its own.
NAMES = ("s", "会话", "s/1", "長" * 150)
TEXTS = ("hello", "还款方式?", "def pay(): ...", "x" * 3000)
LARGE = 1 << 30
T = TypeVar("T")


def session(name: str, title: str = "") -> Session:
    return Session(id=name, title=title, create_time=1.0, update_time=1.0)


def message(name: str, content: str = "hello", time: float = 2.0) -> SessionMessage:
    return SessionMessage(id=name, role=PromptRole.USER, content=content, raw=f"[{content}]", send_time=time)


def write(store: Store, project: str, change: Callable[[SessionWork], T]) -> T:
    """Applies the change and returns its result once it is durable."""
    answers: list[T] = []
    store.write(project, write_request(lambda work: answers.append(change(work.sessions)))).result(timeout=30)
    return answers[-1]


def say(store: Store, name: str, *contents: str, project: str = "p") -> None:
    """Appends messages to a session, which is made where it is not there."""
    for content in contents:

        def change(work: SessionWork, content: str = content) -> None:
            if work.get(name) is None:
                work.create(session(name))
            known = sure(work.get(name))
            work.append(known, message(f"m{known.message_count}", content))

        write(store, project, change)


def contents(found: tuple[SessionMessage, ...]) -> list[str]:
    return [one.content for one in found]


def test_what_was_stored_comes_back_whole(store: Store) -> None:
    whole = Session(id="会话", title="题", create_time=1.5, update_time=2.5)
    write(store, "p", lambda work: work.create(whole))
    placed = write(store, "p", lambda work: work.append(whole, message("消息", "还款", 2.5)))
    assert placed == replace(message("消息", "还款", 2.5), position=1)
    assert store.sessions.get("p", "会话") == replace(whole, message_count=1)
    assert store.sessions.message("p", "会话", "消息") == placed
    assert store.sessions.message("p", "会话", "other") is None


def test_a_message_remembers_what_it_was_learnt_as(store: Store) -> None:
    say(store, "s", "hello")
    (said,) = store.sessions.behind("p", "s", 0, LARGE)
    learnt = replace(said, memory_id="世界.图鉴")
    write(store, "p", lambda work: work.learnt("s", learnt))
    assert store.sessions.message("p", "s", said.id) == learnt


def test_reads_stop_at_their_bytes_and_give_one_message_at_least(store: Store) -> None:
    say(store, "s", *("x" * 1000 for _ in range(5)))
    assert len(store.sessions.behind("p", "s", 0, 4500)) == 2
    page = store.sessions.before("p", "s", None, 9, 4500)
    assert ([one.position for one in page.messages], page.has_before) == ([4, 5], True)
    assert len(store.sessions.behind("p", "s", 3, 1)) == 1
    assert len(store.sessions.before("p", "s", 2, 9, 1).messages) == 1


@pytest.mark.parametrize("position", [5, 2**64 - 1])
def test_behind_the_end_there_is_nothing(store: Store, position: int) -> None:
    say(store, "s", "hello")
    assert store.sessions.behind("p", "s", position, LARGE) == ()


def test_no_session_is_seen_from_another_project(store: Store) -> None:
    say(store, "s", "secret")
    put(store, "q", Entry(id="here"))
    for project in ("q", "unknown"):
        for read in (
            lambda project=project: store.sessions.get(project, "s"),
            lambda project=project: store.sessions.message(project, "s", "m0"),
            lambda project=project: store.sessions.before(project, "s", None, 9, LARGE),
            lambda project=project: store.sessions.behind(project, "s", 0, LARGE),
        ):
            with pytest.raises(SessionNotFound):
                read()
        assert store.sessions.page(project, None, 9, archived=False).sessions == ()
        assert store.sessions.all(project) == ()


def test_a_session_that_has_the_id_of_a_deleted_one_is_not_taken_for_it(store: Store) -> None:
    say(store, "s", "old")
    number = store.sessions.get("p", "s").number
    assert contents(store.sessions.behind("p", "s", 0, LARGE, number)) == ["old"]
    write(store, "p", lambda work: work.delete("s"))
    say(store, "s", "new", "newer")
    with pytest.raises(SessionNotFound):
        store.sessions.behind("p", "s", 0, LARGE, number)
    assert contents(store.sessions.behind("p", "s", 0, LARGE, store.sessions.get("p", "s").number)) == ["new", "newer"]


def test_a_deleted_session_is_cleared_in_steps(store: Store) -> None:
    say(store, "s", *map(str, range(5)))
    say(store, "t", "kept")
    write(store, "p", lambda work: work.delete("s"))
    with pytest.raises(SessionNotFound):
        store.sessions.get("p", "s")
    # The same id is another session, which has nothing of the old one.
    say(store, "s", "anew")
    assert [write(store, "p", lambda work: work.clear(2)) for _ in range(4)] == [True, True, False, False]
    assert contents(store.sessions.behind("p", "s", 0, LARGE)) == ["anew"]
    assert contents(store.sessions.behind("p", "t", 0, LARGE)) == ["kept"]


def test_a_write_that_fails_leaves_no_message(store: Store) -> None:
    say(store, "s", "before")

    def fail(work: SessionWork) -> None:
        known = sure(work.get("s"))
        work.append(known, message("x"))
        raise KeyError("broken")

    with pytest.raises(KeyError, match="broken"):
        write(store, "p", fail)
    assert contents(store.sessions.behind("p", "s", 0, LARGE)) == ["before"]
    assert store.sessions.message("p", "s", "x") is None


def test_messages_move_no_content_seq(store: Store) -> None:
    """1.1-1: no recall can answer differently, so what the cache holds stays good."""
    put(store, "p", Entry(id="a"))
    before = store.generation("p")
    say(store, "s", "one", "two")
    after = store.generation("p")
    assert (after.seq, after.content_seq) == (before.seq + 2, before.content_seq)


@dataclass
class Model:
    """A project's sessions, those that moved last at the end."""

    sessions: dict[str, Session] = field(default_factory=dict)
    messages: dict[str, list[SessionMessage]] = field(default_factory=dict)

    def order(self, *, archived: bool) -> list[Session]:
        return [one for one in reversed(self.sessions.values()) if one.is_archived == archived]

    def moved(self, one: Session) -> None:
        self.sessions.pop(one.id, None)
        self.sessions[one.id] = one


class SessionMachine(RuleBasedStateMachine):
    """Random writes to the sessions of two projects; the store answers like a dictionary, also after reopening."""

    @initialize()
    def open(self) -> None:
        self.cleanup = ExitStack()
        self.directory = Path(self.cleanup.enter_context(tempfile.TemporaryDirectory()))
        self.models = {name: Model() for name in PROJECTS}
        self.opening = ExitStack()
        self.store: Store = self.opening.enter_context(opened(self.directory))

    @rule(project=st.sampled_from(PROJECTS), name=st.sampled_from(NAMES))
    def create(self, project: str, name: str) -> None:
        if name not in self.models[project].sessions:
            write(self.store, project, lambda work: work.create(session(name)))
            self.models[project].moved(session(name))
            self.models[project].messages[name] = []

    @rule(project=st.sampled_from(PROJECTS), name=st.sampled_from(NAMES), text=st.sampled_from(TEXTS))
    def append(self, project: str, name: str, text: str) -> None:
        model = self.models[project]
        if name not in model.sessions:
            return
        said = model.messages[name]
        sent = message(f"消息-{len(said)}", text, float(len(said)))
        changed = replace(model.sessions[name], title=text[:9])
        placed = write(self.store, project, lambda work: work.append(changed, sent))
        said.append(replace(sent, position=len(said) + 1))
        assert placed == said[-1]
        model.moved(replace(changed, message_count=len(said)))

    @rule(project=st.sampled_from(PROJECTS), name=st.sampled_from(NAMES), archived=st.booleans())
    def archive(self, project: str, name: str, *, archived: bool) -> None:
        known = self.models[project].sessions.get(name)
        if known is not None:
            changed = replace(known, is_archived=archived)
            write(self.store, project, lambda work: work.change(changed))
            self.models[project].sessions[name] = changed

    @rule(project=st.sampled_from(PROJECTS), name=st.sampled_from(NAMES), limit=st.integers(0, 3))
    def delete(self, project: str, name: str, limit: int) -> None:
        def change(work: SessionWork) -> None:
            work.delete(name)
            work.clear(limit)

        if self.models[project].sessions.pop(name, None) is not None:
            self.models[project].messages.pop(name)
            write(self.store, project, change)

    @rule()
    def reopen(self) -> None:
        self.opening.close()
        self.store = self.opening.enter_context(opened(self.directory))

    @rule(
        project=st.sampled_from(PROJECTS),
        name=st.sampled_from(NAMES),
        position=st.none() | st.integers(0, 9),
        limit=st.integers(1, 4),
    )
    def read(self, project: str, name: str, position: int | None, limit: int) -> None:
        if name not in self.models[project].sessions:
            return
        said = self.models[project].messages[name]
        older = said if position is None else said[: max(0, position - 1)]
        page = self.store.sessions.before(project, name, position, limit, LARGE)
        assert (list(page.messages), page.has_before) == (older[-limit:], len(older) > limit)
        assert list(self.store.sessions.behind(project, name, position or 0, LARGE)) == said[position or 0 :]

    @invariant()
    def lists_the_same_sessions(self) -> None:
        for project, model in self.models.items():
            for archived in (False, True):
                assert self._paged(project, archived=archived) == model.order(archived=archived)
            every = [*reversed(model.order(archived=True)), *reversed(model.order(archived=False))]
            assert list(self.store.sessions.all(project)) == every
            for name, one in model.sessions.items():
                assert self.store.sessions.get(project, name) == one
            if self.store.project(project) is not None:
                newest = model.order(archived=False)
                assert write(self.store, project, lambda work: work.active()) == (newest[0] if newest else None)

    def teardown(self) -> None:
        if hasattr(self, "opening"):
            self.opening.close()
            self.cleanup.close()

    def _paged(self, project: str, *, archived: bool) -> list[Session]:
        found: list[Session] = []
        behind = None
        while True:
            page = self.store.sessions.page(project, behind, 2, archived=archived)
            found += page.sessions
            behind = page.next_behind
            if behind is None:
                return found


TestSessionMachine = pytest.mark.long(SessionMachine.TestCase)
TestSessionMachine.settings = settings(max_examples=20, stateful_step_count=20, deadline=None, derandomize=True)
