"""Storage of what a project has learnt: its log, its keywords as ways to memories, and its own names for things."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from hummock.core import learning as core
from hummock.core.learning import KeywordsSet
from hummock.core.memory import DomainKnowledge, Filter, MemoryKind
from hummock.learning.log import Rebuilt, digest, record
from hummock.ports.store import Store
from hummock.ports.writes import UnitOfWork
from tests.fakes import FakeClock
from tests.ports.asking import ask, ids, put
from tests.snapshots import at
from tests.store.opening import opened
from tests.strategies import Entry, delete_request, learned_request, write_request

CORE = "世界.图鉴.物品.潮汐木芯"
LAMP = "世界.图鉴.物品.v1.2 灯"

EVENTS: tuple[core.LearningEvent, ...] = (
    core.Switched(enabled=True),
    core.SettingsChanged(
        settings=core.LearningSettings(high_above=5, mid_above=2, min_similarity=0.75, cold_start_pause_s=0.0)
    ),
    core.TurnObserved(scope="会话", turn=1, user_text="硬木头在哪?", assistant_hash=b"\x00\xff", used_ids=(CORE,)),
    core.KeywordsLearned(
        learner=core.Learner.LLM,
        turn=1,
        updates=(core.KeywordUpdate(memory_id=CORE, keywords=("硬木头", "hard wood")),),
        analyzed_ids=(CORE, LAMP),
    ),
    core.Injected(
        scope="会话", turn=2, request_id="r", referenced_ids=(CORE,), injected_ids=(CORE, LAMP), dropped_ids=(LAMP,)
    ),
    core.Injected(scope="", turn=7),
    core.KeywordsSet(memory_id=LAMP, keywords=("灯",)),
    core.FeedbackGiven(query_text="灯", verdicts=(core.Verdict(memory_id=LAMP, judgement=core.Judgement.HELPFUL),)),
)


def note(store: Store, *events: core.LearningEvent, project: str = "p") -> None:
    def apply(work: UnitOfWork) -> None:
        for event in events:
            record(work.learning, event)

    store.write(project, write_request(apply)).result(30)


def log(store: Store, after: int = 0, limit: int = 100, project: str = "p") -> Sequence[core.LoggedEvent]:
    return store.read_learning(project, lambda learning: learning.events(after, limit))


def usage(store: Store, scope: str, project: str = "p") -> dict[str, core.Usage]:
    return store.read_learning(project, lambda learning: learning.usage(scope))


def profiles(store: Store, project: str = "p") -> dict[str, core.Profile]:
    return store.read_learning(project, lambda learning: dict(learning.profiles()))


def test_an_unknown_project_and_a_write_that_fails_have_learnt_nothing(store: Store) -> None:
    assert store.read_learning("p", lambda learning: learning.state()) == core.LearningState()
    assert (log(store), usage(store, ""), profiles(store)) == ([], {}, {})

    def apply(work: UnitOfWork) -> None:
        record(work.learning, core.Switched(enabled=True))
        raise ValueError("on purpose")

    with pytest.raises(ValueError, match="on purpose"):
        store.write("p", write_request(apply)).result(30)
    assert log(store) == []
    assert store.read_learning("p", lambda learning: learning.state()) == core.LearningState()


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


def test_what_is_stored_is_what_the_events_fold_to_and_is_read_in_pages(store: Store) -> None:
    """S3-28, S3-32, S3-33."""
    note(store, *EVENTS)
    rebuilt = Rebuilt()
    for event in EVENTS:
        rebuilt.apply(event)
    assert store.read_learning("p", digest) == digest(rebuilt)
    assert usage(store, "会话") == {CORE: core.Usage(frequency=1, last_sent_turn=2, counted_turn=2), LAMP: core.Usage()}
    assert profiles(store)[CORE] == core.Profile(keywords=("硬木头", "hard wood"), last_analyzed_turn=1)
    assert [one.number for one in log(store, 2, 3)] == [3, 4, 5]
    assert [one.number for one in log(store, len(EVENTS) - 1)] == [len(EVENTS)]
    assert log(store, len(EVENTS)) == []


def test_ids_with_dots_and_chinese_are_kept_apart(store: Store) -> None:
    """S3-34."""
    note(store, core.Injected(scope="世界", turn=1, referenced_ids=(CORE, CORE + ".枝"), injected_ids=(CORE,)))
    assert (set(usage(store, "世界")), usage(store, "世界.图鉴")) == ({CORE, CORE + ".枝"}, {})


@pytest.mark.parametrize("scope", ["", "a", "a.b", "会" * 85])
def test_a_scope_reads_its_own_usage_alone(store: Store, scope: str) -> None:
    for other in ("", "a", "a.b", "会" * 85):
        note(store, core.Injected(scope=other, turn=1, referenced_ids=(f"in {other}",), injected_ids=()))
    assert set(usage(store, scope)) == {f"in {scope}"}


def test_projects_learn_apart(store: Store) -> None:
    note(store, *EVENTS, project="p")
    note(store, core.Switched(enabled=True), project="q")
    assert (usage(store, "会话", "q"), len(log(store, project="q"))) == ({}, 1)


def test_a_removed_memory_is_forgotten_in_every_scope_and_logged(store: Store) -> None:
    put(store, "p", Entry(id=CORE), Entry(id=LAMP))
    note(store, *EVENTS, core.Injected(scope="other", turn=1, referenced_ids=(CORE,), injected_ids=(CORE,)))
    store.write("p", delete_request([CORE])).result(30)
    assert (log(store)[-1].event, usage(store, "other")) == (core.Forgotten(memory_ids=(CORE,)), {})
    assert (set(usage(store, "会话")), set(profiles(store))) == ({LAMP}, {LAMP})


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


def test_a_unit_of_work_reads_what_it_wrote(store: Store) -> None:
    seen: list[object] = []

    def apply(work: UnitOfWork) -> None:
        record(work.learning, core.Injected(scope="s", turn=3, referenced_ids=("a",), injected_ids=("a",)))
        seen.extend([work.learning.used("s", "a"), work.learning.turn("s"), work.learning.state().events])

    store.write("p", write_request(apply)).result(30)
    assert seen == [core.Usage(frequency=1, last_sent_turn=3, counted_turn=3), 3, 1]


def test_a_repeated_request_is_noted_once(store: Store) -> None:
    def apply(work: UnitOfWork) -> None:
        record(work.learning, core.Injected(scope="", turn=1, referenced_ids=("a",), injected_ids=("a",)))

    for _ in range(3):
        store.write("p", write_request(apply, request_id="r")).result(30)
    assert usage(store, "") == {"a": core.Usage(frequency=1, last_sent_turn=1, counted_turn=1)}


def test_a_snapshot_has_what_its_project_has_learnt(store: Store) -> None:
    assert store.read("p", lambda snapshot: snapshot.learning().state()) == core.LearningState()
    assert store.read("p", lambda snapshot: snapshot.entries_version) == (0, 0)
    put(store, "p", Entry(id=CORE, kind=MemoryKind.ENTRY))
    note(store, *EVENTS)
    assert store.read("p", lambda snapshot: digest(snapshot.learning())) == store.read_learning("p", digest)
    assert store.read("p", lambda snapshot: snapshot.learning().version()[1]) == len(EVENTS)
    assert store.read("p", lambda snapshot: snapshot.entries_version) == (1, 7)
    assert store.read("q", lambda snapshot: snapshot.learning().usage("")) == {}


def entries_seq(store: Store) -> int:
    return store.read("p", lambda snapshot: snapshot.entries_version[0])


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


def learn(store: Store, memory_id: str, *terms: str) -> None:
    store.write("p", learned_request(memory_id, *terms)).result(30)


def found(store: Store, *terms: str) -> set[str]:
    return ids(ask(store, terms=terms))


def test_the_very_next_search_finds_a_memory_by_what_was_learnt(store: Store) -> None:
    """S3-14."""
    put(store, "p", Entry(id="wood", words=("tide",)), Entry(id="other", words=("stone",)))
    assert found(store, "timber") == set()
    learn(store, "wood", "timber", "damp")
    assert found(store, "timber") == {"wood"}


def test_learned_keywords_replace_those_of_before_and_no_words_of_the_memory(store: Store) -> None:
    put(store, "p", Entry(id="wood", words=("tide", "timber"), title=("wood",)))
    learn(store, "wood", "timber", "damp")
    learn(store, "wood", "warm")
    assert found(store, "damp") == set()
    assert [found(store, term) for term in ("warm", "timber", "tide", "wood")] == [{"wood"}] * 4
    learn(store, "wood")
    assert [found(store, term) for term in ("warm", "timber")] == [set(), {"wood"}]


def test_an_edit_keeps_what_was_learnt(store: Store) -> None:
    """S3-14, S3-38."""
    put(store, "p", Entry(id="wood", words=("tide",)))
    learn(store, "wood", "timber")
    put(store, "p", Entry(id="wood", words=("another", "text"), seeds=(2, 3)))
    assert [found(store, term) for term in ("timber", "another", "tide")] == [{"wood"}, {"wood"}, set()]


def test_the_memory_its_vectors_and_facets_stay_as_they_were(store: Store) -> None:
    entry = Entry(id="wood", session_id="s", tags=("#材料",), seeds=(4, 5), words=("tide", "rock"))
    put(store, "p", Entry(id="first", session_id="s"), entry, Entry(id="last", session_id="s"))
    before = ask(store, seed=4)
    learn(store, "wood", "timber")
    after = ask(store, seed=4)
    assert store.get("p", ["wood"], 0, full=True) == [entry.memory()]
    assert dict(zip(after.memory_id, after.cosine.tolist(), strict=True)) == dict(
        zip(before.memory_id, before.cosine.tolist(), strict=True)
    )
    assert dict(zip(after.memory_id, after.rows["session_position"].tolist(), strict=True))["wood"] == 1
    assert ids(ask(store, seed=4, where=Filter(tags=("#材料",)))) == {"wood"}
    assert store.look_up("p", [], [entry.key]).holders == ["wood"]


def test_a_learned_keyword_weighs_less_than_a_word_of_the_text(store: Store) -> None:
    put(store, "p", *(Entry(id=name, words=("tide", "x")) for name in ("learned", "none")))
    put(store, "p", Entry(id="body", words=("tide", "damp")), Entry(id="title", words=("tide",), title=("damp",)))
    learn(store, "learned", "damp")
    ranked = ask(store, terms=("damp",))
    score = dict(zip(ranked.memory_id, ranked.keyword.tolist(), strict=True))
    assert 0 < score["learned"] < score["body"] < score["title"]


def test_the_same_keywords_change_no_recall_and_go_with_the_memory(store: Store) -> None:
    put(store, "p", Entry(id="wood"))
    learn(store, "wood", "timber")
    before = store.generation("p").content_seq
    learn(store, "wood", "timber")
    assert store.generation("p").content_seq == before
    store.write("p", delete_request(["wood"])).result(30)
    put(store, "p", Entry(id="wood"))
    assert found(store, "timber") == set()


def test_a_memory_put_in_the_same_write_can_be_given_keywords(store: Store) -> None:
    def put_and_learn(unit: UnitOfWork) -> None:
        Entry(id="wood").put(unit)
        record(unit.learning, KeywordsSet(memory_id="wood", keywords=("timber",)))
        Entry(id="wood", words=("other",)).put(unit)

    store.write("p", write_request(put_and_learn)).result(30)
    assert found(store, "timber") == {"wood"}


def test_a_write_that_fails_leaves_no_keywords(store: Store) -> None:
    put(store, "p", Entry(id="wood"))

    def learn_and_fail(unit: UnitOfWork) -> None:
        record(unit.learning, KeywordsSet(memory_id="wood", keywords=("timber",)))
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        store.write("p", write_request(learn_and_fail)).result(30)
    assert found(store, "timber") == set()
    learn(store, "wood", "damp")
    assert found(store, "damp") == {"wood"}


def domain(name: str, *aliases: str, memory_id: str = "domain") -> Entry:
    detail = DomainKnowledge(domain=name, aliases=aliases, summary="s")
    return Entry(id=memory_id, kind=MemoryKind.DOMAIN_KNOWLEDGE, detail=detail, supersedes=())


def called(store: Store, memory_id: str, *keywords: str) -> None:
    event = KeywordsSet(memory_id=memory_id, keywords=keywords)
    store.write("p", write_request(lambda work: record(work.learning, event))).result(30)


def names(store: Store, project: str = "p") -> set[tuple[str, ...]]:
    return set(at(store, project).given_names().groups)


def test_an_unknown_project_calls_nothing_anything(store: Store) -> None:
    assert names(store) == set()
    put(store, "p", Entry(id="a"))
    assert names(store) == set()


def test_domains_are_called_by_their_names_as_they_are_now(store: Store) -> None:
    """S0-10."""
    put(store, "p", domain("Repayment", "还款", "repay"))
    assert names(store) == {("Repayment", "还款", "repay")}
    put(
        store,
        "p",
        domain("Repayment", "偿还"),
        domain("风控", "Risk", memory_id="risk"),
        domain("x", memory_id="alone"),
    )
    assert names(store) == {("Repayment", "偿还"), ("风控", "Risk")}
    store.write("p", delete_request(["domain"])).result(30)
    assert (names(store), names(store, "q")) == ({("风控", "Risk")}, set())


def test_entries_are_called_by_their_titles_and_keywords(store: Store) -> None:
    """S3-34."""
    put(store, "p", Entry(id="core", kind=MemoryKind.ENTRY, title=("潮汐木芯",), supersedes=()))
    assert names(store) == set()
    called(store, "core", "tidewood", "硬木头")
    assert names(store) == {("潮汐木芯", "tidewood", "硬木头")}
    called(store, "core", "driftwood")
    assert names(store) == {("潮汐木芯", "driftwood")}
    store.write("p", delete_request(["core"])).result(30)
    assert names(store) == set()


def test_they_are_the_very_same_while_nothing_named_changes(store: Store) -> None:
    put(store, "p", domain("Repayment", "还款"), Entry(id="a"))
    before = at(store, "p").given_names()
    put(store, "p", Entry(id="b"))
    store.write("p", delete_request(["a"])).result(30)
    assert at(store, "p").given_names() is before


def test_they_are_the_same_after_a_restart(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        put(store, "p", domain("Repayment", "还款"))
    with opened(tmp_path) as store:
        assert names(store) == {("Repayment", "还款")}
