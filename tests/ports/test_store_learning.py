"""Storage of a project's learning, in every store."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from hummock.core.learning import (
    FeedbackGiven,
    Forgotten,
    Injected,
    Judgement,
    KeywordsLearned,
    KeywordsSet,
    KeywordUpdate,
    Learner,
    LearningEvent,
    LearningSettings,
    LearningState,
    LoggedEvent,
    Profile,
    SettingsChanged,
    Switched,
    TurnObserved,
    Usage,
    Verdict,
)
from hummock.core.memory import MemoryKind
from hummock.learning.log import Rebuilt, digest, record
from hummock.ports.store import Store
from hummock.ports.writes import UnitOfWork
from tests.fakes import FakeClock
from tests.ports.asking import put
from tests.strategies import Entry, delete_request, write_request

CORE = "世界.图鉴.物品.潮汐木芯"
LAMP = "世界.图鉴.物品.v1.2 灯"

EVENTS: tuple[LearningEvent, ...] = (
    Switched(enabled=True),
    SettingsChanged(settings=LearningSettings(high_above=5, mid_above=2, min_similarity=0.75, cold_start_pause_s=0.0)),
    TurnObserved(scope="会话", turn=1, user_text="硬木头在哪?", assistant_hash=b"\x00\xff", used_ids=(CORE,)),
    KeywordsLearned(
        learner=Learner.LLM,
        turn=1,
        updates=(KeywordUpdate(memory_id=CORE, keywords=("硬木头", "hard wood")),),
        analyzed_ids=(CORE, LAMP),
    ),
    Injected(
        scope="会话", turn=2, request_id="r", referenced_ids=(CORE,), injected_ids=(CORE, LAMP), dropped_ids=(LAMP,)
    ),
    Injected(scope="", turn=7),
    KeywordsSet(memory_id=LAMP, keywords=("灯",)),
    FeedbackGiven(query_text="灯", verdicts=(Verdict(memory_id=LAMP, judgement=Judgement.HELPFUL),)),
)


def note(store: Store, *events: LearningEvent, project: str = "p") -> None:
    def apply(work: UnitOfWork) -> None:
        for event in events:
            record(work.learning, event)

    store.write(project, write_request(apply)).result(30)


def log(store: Store, after: int = 0, limit: int = 100, project: str = "p") -> Sequence[LoggedEvent]:
    return store.read_learning(project, lambda learning: learning.events(after, limit))


def usage(store: Store, scope: str, project: str = "p") -> dict[str, Usage]:
    return store.read_learning(project, lambda learning: learning.usage(scope))


def profiles(store: Store, project: str = "p") -> dict[str, Profile]:
    return store.read_learning(project, lambda learning: dict(learning.profiles()))


def test_an_unknown_project_has_learnt_nothing(store: Store) -> None:
    assert store.read_learning("p", lambda learning: learning.state()) == LearningState()
    assert log(store) == []
    assert usage(store, "") == {}
    assert profiles(store) == {}


def test_events_come_back_as_they_were_with_their_numbers_and_times(store: Store, clock: FakeClock) -> None:
    """S3-28."""
    put(store, "p", Entry(id=CORE), Entry(id=LAMP))
    note(store, *EVENTS[:3])
    clock.move(60)
    note(store, *EVENTS[3:])
    logged = log(store)
    assert [one.event for one in logged] == list(EVENTS)
    assert [one.number for one in logged] == list(range(1, len(EVENTS) + 1))
    assert [one.time for one in logged] == [1_700_000_000.0] * 3 + [1_700_000_060.0] * (len(EVENTS) - 3)


def test_the_log_is_read_in_pages(store: Store) -> None:
    note(store, *EVENTS)
    assert [one.number for one in log(store, 2, 3)] == [3, 4, 5]
    assert [one.number for one in log(store, len(EVENTS) - 1)] == [len(EVENTS)]
    assert log(store, len(EVENTS)) == []


def test_what_is_stored_is_what_the_events_fold_to(store: Store) -> None:
    """S3-28, S3-32, S3-33."""
    note(store, *EVENTS)
    rebuilt = Rebuilt()
    for event in EVENTS:
        rebuilt.apply(event)
    assert store.read_learning("p", digest) == digest(rebuilt)
    assert usage(store, "会话") == {CORE: Usage(frequency=1, last_sent_turn=2, counted_turn=2), LAMP: Usage()}
    assert profiles(store)[CORE] == Profile(keywords=("硬木头", "hard wood"), last_analyzed_turn=1)


def test_ids_with_dots_and_chinese_are_kept_apart(store: Store) -> None:
    """S3-34."""
    note(store, Injected(scope="世界", turn=1, referenced_ids=(CORE, CORE + ".枝"), injected_ids=(CORE,)))
    assert set(usage(store, "世界")) == {CORE, CORE + ".枝"}
    assert usage(store, "世界.图鉴") == {}


@pytest.mark.parametrize("scope", ["", "a", "a.b", "会" * 85])
def test_a_scope_reads_its_own_usage_alone(store: Store, scope: str) -> None:
    for other in ("", "a", "a.b", "会" * 85):
        note(store, Injected(scope=other, turn=1, referenced_ids=(f"in {other}",), injected_ids=()))
    assert set(usage(store, scope)) == {f"in {scope}"}


def test_projects_learn_apart(store: Store) -> None:
    note(store, *EVENTS, project="p")
    note(store, Switched(enabled=True), project="q")
    assert usage(store, "会话", "q") == {}
    assert len(log(store, project="q")) == 1


def test_a_removed_memory_is_forgotten_in_every_scope_and_logged(store: Store) -> None:
    put(store, "p", Entry(id=CORE), Entry(id=LAMP))
    note(store, *EVENTS, Injected(scope="other", turn=1, referenced_ids=(CORE,), injected_ids=(CORE,)))
    store.write("p", delete_request([CORE])).result(30)
    assert log(store)[-1].event == Forgotten(memory_ids=(CORE,))
    assert usage(store, "other") == {}
    assert set(usage(store, "会话")) == {LAMP}
    assert set(profiles(store)) == {LAMP}


def test_removing_what_nothing_was_learnt_of_is_no_event(store: Store) -> None:
    put(store, "p", Entry(id="a"))
    store.write("p", delete_request(["a", "unknown"])).result(30)
    assert log(store) == []


def test_an_edited_memory_keeps_what_was_learnt_of_it(store: Store) -> None:
    put(store, "p", Entry(id=CORE, words=("old",)))
    note(store, *EVENTS)
    before = store.read_learning("p", digest)
    put(store, "p", Entry(id=CORE, words=("new",)))
    assert store.read_learning("p", digest) == before


def test_a_write_that_fails_leaves_no_event(store: Store) -> None:
    def apply(work: UnitOfWork) -> None:
        record(work.learning, Switched(enabled=True))
        raise ValueError("on purpose")

    with pytest.raises(ValueError, match="on purpose"):
        store.write("p", write_request(apply)).result(30)
    assert log(store) == []
    assert store.read_learning("p", lambda learning: learning.state()) == LearningState()


def test_a_unit_of_work_reads_what_it_wrote(store: Store) -> None:
    seen: list[object] = []

    def apply(work: UnitOfWork) -> None:
        record(work.learning, Injected(scope="s", turn=3, referenced_ids=("a",), injected_ids=("a",)))
        seen.extend([work.learning.used("s", "a"), work.learning.turn("s"), work.learning.state().events])

    store.write("p", write_request(apply)).result(30)
    assert seen == [Usage(frequency=1, last_sent_turn=3, counted_turn=3), 3, 1]


def test_a_repeated_request_is_noted_once(store: Store) -> None:
    def apply(work: UnitOfWork) -> None:
        record(work.learning, Injected(scope="", turn=1, referenced_ids=("a",), injected_ids=("a",)))

    for _ in range(3):
        store.write("p", write_request(apply, request_id="r")).result(30)
    assert usage(store, "") == {"a": Usage(frequency=1, last_sent_turn=1, counted_turn=1)}


def entries_seq(store: Store) -> int:
    return store.read_learning("p", lambda learning: learning.entries_seq())


def test_entries_seq_moves_with_entries_and_with_nothing_else(store: Store) -> None:
    assert entries_seq(store) == 0
    put(store, "p", Entry(id="note", kind=MemoryKind.NOTE))
    note(store, *EVENTS)
    assert entries_seq(store) == 0
    stored = put(store, "p", Entry(id="entry", kind=MemoryKind.ENTRY))
    assert entries_seq(store) == stored
    put(store, "p", Entry(id="note", kind=MemoryKind.NOTE, words=("changed",)))
    assert entries_seq(store) == stored
    removed = store.write("p", delete_request(["entry"])).result(30).seq
    assert entries_seq(store) == removed
