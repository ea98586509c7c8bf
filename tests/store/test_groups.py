"""Writes that share a transaction and those that have one each come to the same."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hummock.core.errors import RequestIdReused, SessionNotFound
from hummock.core.learning import KeywordsSet
from hummock.core.memory import Memory
from hummock.core.session import PromptRole, Session, SessionMessage
from hummock.core.settings import PresetSettings, ProjectSettings
from hummock.learning.log import record
from hummock.ports.writes import UnitOfWork, Written
from hummock.store import WritableStore
from tests.ports.asking import ask
from tests.store.answering import answers
from tests.store.opening import Blocker, opened
from tests.strategies import IDS, Entry, entries, write_request

PROJECTS = ("p", "q")
Seen = list[tuple[Memory | None, str | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A write that looks at some memories, removes some, puts some, does more, and may fail at its end.

    `learnt` is a memory that is given keywords, `said` a message of the session "s", `top_k` a setting; all but the
    memories may be left out.
    """

    project: str
    removed: Sequence[str]
    put: Sequence[Entry]
    fails: bool
    learnt: str = ""
    said: str = ""
    top_k: int | None = None
    request_id: str = ""

    def send(self, store: WritableStore, seen: Seen) -> Future[Written[int]]:
        """Queues it; what it sees goes into the list each time that it is tried."""

        def apply(unit: UnitOfWork) -> None:
            seen.clear()
            for entry in self.put:
                seen.append((unit.get(entry.id), unit.find_by_text(entry.key)))
            for memory_id in self.removed:
                unit.delete(memory_id)
            for entry in self.put:
                entry.put(unit)
                seen.append((unit.get(entry.id), unit.find_by_text(entry.key)))
            self._do_more(unit)
            if self.fails:
                raise KeyError("fails")

        return store.write(self.project, write_request(apply, self.request_id, repr(self).encode()))

    def _do_more(self, unit: UnitOfWork) -> None:
        if self.learnt:
            record(unit.learning, KeywordsSet(memory_id=self.learnt, keywords=("loan", self.learnt)))
        if self.said:
            session = unit.sessions.get("s")
            if session is None:
                session = Session(id="s", title="", create_time=1.0, update_time=1.0)
                unit.sessions.create(session)
            message = SessionMessage(id=self.said, role=PromptRole.USER, content="还款", raw="", send_time=1.0)
            if unit.sessions.message("s", self.said) is None:
                unit.sessions.append(session, message)
        if self.top_k is not None:
            unit.set_settings(ProjectSettings(chat=PresetSettings(top_k=self.top_k)))


steps = st.builds(
    Step,
    project=st.sampled_from(PROJECTS),
    removed=st.lists(st.sampled_from(IDS), max_size=1),
    put=st.lists(entries(), max_size=3),
    fails=st.sampled_from([False, False, False, True]),
    learnt=st.sampled_from(["", "", *IDS]),
    said=st.sampled_from(["", "", "m1", "m2"]),
    top_k=st.sampled_from([None, None, 3, 4]),
    request_id=st.sampled_from(["", "", "r1", "r2"]),
)


def told(future: Future[Written[int]]) -> int:
    """The write's seq; -1 where it failed, -2 where another write has had its request_id."""
    error = future.exception(30)
    if isinstance(error, RequestIdReused):
        return -2
    return -1 if isinstance(error, KeyError) else future.result(30).seq


def state(store: WritableStore) -> object:
    """Reported state of all projects of the store."""
    return [
        (
            store.project(name),
            store.get(name, IDS, 0, full=True),
            answers(store, name),
            store.generation(name),
            messages(store, name),
            store.read_learning(name, lambda learning: (list(learning.profiles()), learning.state())),
        )
        for name in PROJECTS
    ]


def messages(store: WritableStore, project: str) -> tuple[SessionMessage, ...] | None:
    """Messages of the session, or None if it does not exist."""
    try:
        return store.sessions.behind(project, "s", 0, 1 << 20)
    except SessionNotFound:
        return None


@pytest.mark.long
@settings(max_examples=20)
@given(st.lists(steps, min_size=2, max_size=8))
def test_a_group_comes_to_the_same_as_its_writes_one_by_one(made: list[Step]) -> None:
    """A failed job never aborts its neighbours in a group commit, and later ones see what earlier ones put."""
    with TemporaryDirectory() as directory:
        alone, together = Path(directory, "alone"), Path(directory, "together")
        seen_alone: list[Seen] = [[] for _ in made]
        seen_together: list[Seen] = [[] for _ in made]
        with opened(alone) as store:
            results = [told(step.send(store, seen)) for step, seen in zip(made, seen_alone, strict=True)]
            expected = state(store)
        with opened(together) as store:
            blocker = Blocker(store)
            futures = [step.send(store, seen) for step, seen in zip(made, seen_together, strict=True)]
            blocker.release()
            assert [told(future) for future in futures] == results
            assert state(store) == expected
        assert seen_together == seen_alone
        with opened(together) as store:
            assert state(store) == expected


def test_a_write_removes_what_one_before_it_in_the_group_has_put(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        blocker = Blocker(store)
        made = [
            Step(project="p", removed=(), put=(Entry(id="a"), Entry(id="b", words=("loan",))), fails=False),
            Step(project="p", removed=("a",), put=(), fails=False),
        ]
        futures = [step.send(store, []) for step in made]
        blocker.release()
        assert [told(future) for future in futures] == [1, 2]
        assert store.get("p", ["a"], 0, full=False) == [None]
        assert ask(store, terms=["loan"]).memory_id == ("b",)
