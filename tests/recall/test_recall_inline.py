"""Recall as an event loop asks for it: at once, or not at all."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Event, current_thread, main_thread
from typing import Any

import pytest
from msgspec.structs import replace

from hummock.core.errors import EmbSpaceMismatch, SeqNotReached
from hummock.core.memory import QueryVector
from hummock.core.recall import KeywordMode, Recalled, RecallPath, RecallQuery
from hummock.ports.store import Snapshot
from hummock.recall.cache import CachedRecall
from hummock.recall.pipeline import Recall
from hummock.store import snapshot
from tests.recall.test_cached_recall import bare
from tests.snapshots import over
from tests.strategies import SPACE, unit_vector
from tests.sure import sure
from tests.workplace import Workplace, note

VECTOR = QueryVector(values=unit_vector(3), emb_space=SPACE.id)
GIVEN = RecallQuery(project="p", text="潮汐 tide parse_date", vector=VECTOR)


@dataclass(slots=True)
class Hurried:
    """A recall as an event loop asks for it, over one workplace."""

    work: Workplace
    recall: Recall = field(init=False)
    fresh: Callable[[RecallQuery], Recalled] = field(init=False)
    cached: CachedRecall = field(init=False)

    def __post_init__(self) -> None:
        store, clock = self.work.store, self.work.clock
        self.recall = Recall(self.work.embedder, clock)
        self.fresh = over(store, self.recall)
        self.cached = CachedRecall(self.recall, store, SPACE.id, clock, self.recall.is_inline)

    def at_once(self, query: RecallQuery) -> Recalled | None:
        """The answer on the event loop, if there is one."""
        answer = self.cached.inline(query)
        return None if answer is None else answer.recalled()


@pytest.fixture
def hurried(work: Workplace) -> Hurried:
    return Hurried(work)


def test_at_once_is_the_answer_that_waiting_gives(hurried: Hurried) -> None:
    """S0-31: from the same cache."""
    hurried.work.teach(note("潮汐 tide", "a"), note("parse_date reads dates", "b"))
    assert hurried.at_once(GIVEN) is None, "the project is not in memory"
    waited = hurried.cached(GIVEN)
    again = sure(hurried.at_once(GIVEN))
    assert (again.receipt.cached, bare(again)) == (True, bare(waited))
    other = replace(GIVEN, text="tide")
    first = sure(hurried.at_once(other))
    assert (first.receipt.cached, bare(first)) == (False, bare(hurried.fresh(other)))


def test_at_once_knows_of_every_write_that_is_done(hurried: Hurried) -> None:
    """S2-03: it answers with it, or leaves the answer to those who may wait."""
    hurried.work.teach(note("tide", "first"))
    hurried.cached(GIVEN)
    for number in range(30):
        hurried.work.teach(note(f"tide {number}", f"m{number}"))
        answer = hurried.at_once(GIVEN)
        assert answer is None or len(answer.hits) == min(10, number + 2)
        assert len(hurried.cached(GIVEN).hits) == min(10, number + 2)
        assert hurried.at_once(GIVEN) is not None


@pytest.mark.parametrize("longer", [{"vector": None}, {"keyword_mode": KeywordMode.SUBSTRING}, {"context_window": 1}])
def test_what_takes_longer_is_not_done_at_once(hurried: Hurried, longer: dict[str, Any]) -> None:
    hurried.work.teach(note("潮汐 tide", "a"))
    hurried.cached(GIVEN)
    assert hurried.at_once(replace(GIVEN, **longer)) is None
    assert hurried.at_once(replace(GIVEN, vector=None, paths=frozenset({RecallPath.KEYWORD}))) is not None


def test_a_recall_that_has_been_slow_is_not_done_at_once(hurried: Hurried, monkeypatch: pytest.MonkeyPatch) -> None:
    hurried.work.teach(note("潮汐 tide", "a"))
    load = snapshot.TableSnapshot.load

    def slow_disk(*arguments: Any, **options: Any) -> Any:
        hurried.work.clock.move(0.1)
        return load(*arguments, **options)

    monkeypatch.setattr(snapshot.TableSnapshot, "load", slow_disk)
    for number in range(4):
        hurried.cached(replace(GIVEN, text=f"tide {number}"))
    assert hurried.at_once(GIVEN) is None


def test_a_recall_is_not_waited_for_at_once(hurried: Hurried) -> None:
    """A recall that already runs elsewhere is computed once more, so that it does not block everybody."""
    hurried.work.teach(note("潮汐 tide", "a"))
    hurried.cached(replace(GIVEN, text="before"))
    began, may_end = Event(), Event()

    def held(query: RecallQuery, project: Snapshot) -> Recalled:
        if current_thread() is not main_thread():
            began.set()
            assert may_end.wait(30)
        return hurried.recall(query, project)

    cached = CachedRecall(held, hurried.work.store, SPACE.id, hurried.work.clock, lambda query, project: True)
    with ThreadPoolExecutor(1) as elsewhere:
        waiting = elsewhere.submit(cached, GIVEN)
        assert began.wait(30)
        at_once = cached.inline(GIVEN)
        may_end.set()
        assert at_once is not None
        assert bare(at_once.recalled()) == bare(waiting.result(30))


def test_refusals_are_the_same_at_once(hurried: Hurried) -> None:
    hurried.work.teach(note("潮汐 tide", "a"))
    hurried.cached(GIVEN)
    with pytest.raises(SeqNotReached):
        hurried.at_once(replace(GIVEN, min_seq=99))
    elsewhere = QueryVector(values=unit_vector(3), emb_space="another")
    with pytest.raises(EmbSpaceMismatch):
        hurried.at_once(replace(GIVEN, vector=elsewhere))
