"""Recall with its answers kept: as fast as a look-up, and never different from a fresh one."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import fields, replace

from hummock.core.embedding import Embedding
from hummock.core.errors import EmbSpaceMismatch, SeqNotReached
from hummock.core.memory import DomainKnowledge, Filter, LearningRecord, MemoryKind, Origin, Payload, QueryVector
from hummock.core.recall import (
    CrossEncoding,
    DecayMode,
    Degradation,
    Intent,
    IntentMode,
    KeywordMode,
    MmrRelevance,
    Preset,
    Recalled,
    RecallPath,
    RecallQuery,
    TimeInterval,
)
from hummock.ports.store import Snapshot
from hummock.recall.cache import DECAY_TOLERANCE, TTL_S, CachedRecall, size_of
from hummock.recall.pipeline import Recall
from tests.fakes import CountingLock
from tests.snapshots import over
from tests.strategies import SPACE, unit_vector
from tests.workplace import Workplace, note, workplace

DAY_S = 86_400.0
QUERY = RecallQuery(project="p", text="潮汐 tide parse_date")


@dataclass(slots=True)
class Counted:
    """Both recalls over one workplace, and what the inner one was asked."""

    work: Workplace
    asked: list[RecallQuery] = field(default_factory=list)
    recall: Recall = field(init=False)
    fresh: Callable[[RecallQuery], Recalled] = field(init=False)
    cached: CachedRecall = field(init=False)

    def __post_init__(self) -> None:
        self.recall = Recall(self.work.embedder, self.work.clock)
        self.fresh = over(self.work.store, self.recall)
        self.cached = CachedRecall(self._compute, self.work.store, SPACE.id, self.work.clock)

    def _compute(self, query: RecallQuery, project: Snapshot) -> Recalled:
        self.asked.append(query)
        return self.recall(query, project)

    def is_cached(self, query: RecallQuery) -> bool:
        """True if the answer comes from the cache; it must equal that of a fresh recall."""
        before = len(self.asked)
        answer = self.cached(query)
        assert answer.receipt.cached == (len(self.asked) == before)
        if not _decays(query):
            assert bare(answer) == bare(self.fresh(query))
        return answer.receipt.cached


def _decays(query: RecallQuery) -> bool:
    return query.as_of is None and (query.preset is Preset.CHAT or query.decay_mode is not None)


def bare(answer: Recalled) -> Recalled:
    """The answer without what may differ: how long it took, and whether it came from the cache."""
    return replace(answer, receipt=replace(answer.receipt, stages=(), elapsed_s=0.0, cached=False))


def contents(answer: Recalled) -> set[str]:
    return {hit.memory.payload.content for hit in answer.hits if hit.memory.payload}


@pytest.fixture
def counted(work: Workplace) -> Counted:
    work.teach(note("the 潮汐 tide is low", "a"), note("parse_date reads ISO dates", "b"))
    return Counted(work)


def test_an_equal_recall_is_computed_once_in_five_minutes(counted: Counted) -> None:
    """S0-31, S0-32, S2-03, S1-19, S1-20."""
    assert not counted.is_cached(QUERY)
    counted.work.clock.move(TTL_S - 1)
    assert counted.is_cached(QUERY)
    assert counted.is_cached(QUERY)
    counted.work.clock.move(1)
    assert not counted.is_cached(QUERY)


def test_a_memory_that_is_edited_or_the_first_of_its_project_is_recalled_as_it_is_now(counted: Counted) -> None:
    counted.cached(QUERY)
    counted.work.teach(note("the 潮汐 tide is high", "a"))
    assert contents(counted.cached(QUERY)) >= {"the 潮汐 tide is high"}
    query = replace(QUERY, project="new")
    assert (counted.is_cached(query), counted.is_cached(query)) == (False, True)
    counted.work.teach(note("a new tide", "n"), project="new")
    assert contents(counted.cached(query)) == {"a new tide"}


def test_a_write_that_changes_nothing_leaves_the_answer_and_counts(counted: Counted) -> None:
    """The seq of a cached answer is the newest at which it is true."""
    before = counted.cached(QUERY).seq
    seq = counted.work.teach(note("parse_date reads ISO dates", "b")).seq
    assert seq > before
    assert counted.is_cached(replace(QUERY, min_seq=seq))
    assert counted.cached(QUERY).seq == seq


def test_min_seq_keeps_nobody_apart_and_is_an_error_where_it_is_not_reached(counted: Counted) -> None:
    counted.is_cached(replace(QUERY, min_seq=1))
    assert counted.is_cached(QUERY)
    assert [query.min_seq for query in counted.asked] == [0]
    seq = counted.cached(QUERY).seq
    for project, reached in (("p", seq), ("unknown", 0)):
        counted.cached(replace(QUERY, project=project))
        with pytest.raises(SeqNotReached) as error:
            counted.cached(replace(QUERY, project=project, min_seq=reached + 1))
        assert (error.value.min_seq, error.value.seq) == (reached + 1, reached)


def vector(seed: int, emb_space: str = SPACE.id) -> QueryVector:
    return QueryVector(values=unit_vector(seed), emb_space=emb_space)


OTHERS: dict[str, Sequence[object]] = {
    "project": ["q", "P"],
    "text": ["潮汐 tide parse_dates", "潮汐 tide parse_date ", "潮汐 TIDE parse_date"],
    "vector": [vector(1), vector(2)],
    "preset": [Preset.CHAT, Preset.CODE],
    "top_k": [1, 10],
    "candidates": [1, 50],
    "min_similarity": [0.0, 0.3],
    "filter": [
        Filter(kinds=frozenset({MemoryKind.NOTE})),
        Filter(origins=frozenset({Origin.MANUAL})),
        Filter(tags=("a",)),
        Filter(session_ids=("a",)),
        Filter(paths=("a",)),
        Filter(speakers=("a",)),
        Filter(created_after=1.0),
        Filter(created_before=1.0),
        Filter(event_after=1.0),
        Filter(event_before=1.0),
        Filter(excluded_ids=("a",)),
        Filter(metadata=(("env", "prod"),)),
        Filter(writers=("a",)),
        Filter(pinned=True),
    ],
    "paths": [frozenset({RecallPath.VECTOR}), frozenset({RecallPath.KEYWORD})],
    "decay_mode": [DecayMode.EXPONENTIAL, DecayMode.TRUE_HALF_LIFE],
    "half_life_days": [1.0, 2.0],
    "decay_floor": [0.0, 0.5],
    "decay_exempt_origins": [frozenset({Origin.MANUAL})],
    "relevance_weight": [0.0, 1.0],
    "near_twin_bar": [0.0, 2.0],
    "writer_cap": [1, 10],
    "late_interaction": [False, True],
    "cross_encoding": [CrossEncoding.OFF, CrossEncoding.AUTO],
    "time_words": [False, True],
    "context_window": [1, 10],
    "session_id": ["s", "会话"],
    "window_turns": [0, 3],
    "echo_window_s": [0.0, 3.0],
    "mmr_relevance": [MmrRelevance.SCORE, MmrRelevance.SIMILARITY],
    "keyword_mode": [KeywordMode.SUBSTRING],
    "code_top_k": [0, 1],
    "domain_top_k": [0, 1],
    "intent": [
        Intent(),
        Intent(domains=("a",)),
        Intent(action="a"),
        Intent(keywords=("a",)),
        Intent(times=(TimeInterval(start=0, end=1),)),
    ],
    "intent_mode": [IntentMode.LEXICAL, IntentMode.LLM],
    "as_of": [0.0, 1_700_000_000.0],
    "include_superseded": [True],
    "time_zone": ["Asia/Shanghai", "+08:00"],
    "before": [("where is it?",)],
    "full": [False],
}


def test_an_echo_is_let_in_once_it_is_old_enough(counted: Counted) -> None:
    """1.1-2: the rule of three seconds, and what is kept does not outlive it."""
    counted.work.teach(note("Where is it?", "said", origin=Origin.USER_INPUT))
    query = replace(QUERY, text="where is it?", echo_window_s=3.0)
    assert "Where is it?" not in contents(counted.cached(query))
    counted.work.clock.move(2.5)
    assert "Where is it?" not in contents(counted.cached(query))
    counted.work.clock.move(1.0)
    assert "Where is it?" in contents(counted.cached(query))
    assert counted.is_cached(query)
    assert "Where is it?" not in contents(counted.cached(replace(query, echo_window_s=None)))


@pytest.mark.long
def test_whatever_differs_in_the_request_makes_another_answer(counted: Counted) -> None:
    """1.1-1: the key carries the whole normalised request."""
    # A field that is added must be added here, or to those that change no answer.
    assert {each.name for each in fields(RecallQuery)} == {*OTHERS, "allow_stale", "min_seq", "until_s"}
    assert {each.name for each in fields(Filter)} == {name for where in OTHERS["filter"] for name in _named(where)}, (
        "each field of the filter has a case"
    )
    counted.cached(QUERY)
    for name, values in OTHERS.items():
        for value in values:
            query = replace(QUERY, **{name: value})
            assert not counted.is_cached(query), (name, value)
            assert counted.is_cached(query), (name, value)
    assert counted.is_cached(QUERY)


def _named(where: object) -> set[str]:
    return {each.name for each in fields(Filter) if getattr(where, each.name) != getattr(Filter(), each.name)}


def test_vectors_are_equal_by_their_bytes_within_one_space(counted: Counted) -> None:
    counted.cached(replace(QUERY, vector=vector(1)))
    assert counted.is_cached(replace(QUERY, vector=vector(1)))
    nearly = unit_vector(1).copy()
    nearly[0] = np.nextafter(nearly[0], np.float32(2))
    assert not counted.is_cached(replace(QUERY, vector=QueryVector(values=nearly, emb_space=SPACE.id)))
    for _ in range(2):
        with pytest.raises(EmbSpaceMismatch):
            counted.cached(replace(QUERY, vector=vector(1, "00" * 16)))


class Failing:
    """An embedder whose model has died."""

    space = SPACE

    def embed_query(self, text: str, timeout_s: float | None = None, gloss: str | None = None) -> Embedding:
        raise RuntimeError(text)


def test_a_degraded_answer_is_not_kept(counted: Counted) -> None:
    broken = Recall(Failing(), counted.work.clock)  # type: ignore[arg-type] # all that Recall calls
    recalls = [broken, broken, counted.recall]
    cached = CachedRecall(lambda *asked: recalls.pop(0)(*asked), counted.work.store, SPACE.id, counted.work.clock)
    answers = [cached(QUERY) for _ in range(4)]
    assert [(bool(answer.degraded), answer.receipt.cached) for answer in answers] == [
        (True, False),
        (True, False),
        (False, False),
        (False, True),
    ]


def test_who_waits_for_a_caller_in_a_hurry_gets_a_whole_answer(counted: Counted) -> None:
    """V8: the deadline of one is not that of another."""
    lock = CountingLock()
    counted.cached._answers._lock = lock  # type: ignore[assignment] # a lock in all that the cache needs
    cut = Degradation(path="cross_encoder", reason="DEADLINE", message="0 of 20 candidates were read")

    def compute(query: RecallQuery, project: Snapshot) -> Recalled:
        if query.until_s is None:
            return counted.recall(query, project)
        patient.append(threads.submit(counted.cached, QUERY))
        lock.wait(2)
        return replace(counted.recall(query, project), degraded=(cut,))

    counted.cached._recall = compute
    patient: list[Future[Recalled]] = []
    with ThreadPoolExecutor(1) as threads:
        hurried = counted.cached(replace(QUERY, until_s=1e9))
    assert [answer.degraded for answer in (hurried, patient[0].result(30))] == [(cut,), ()]
    assert not patient[0].result().receipt.cached


@pytest.mark.parametrize("left_s", [0.0, -1.0])
def test_who_has_no_time_does_not_wait_for_a_caller_who_has(counted: Counted, left_s: float) -> None:
    hurried: list[Recalled] = []

    def compute(query: RecallQuery, project: Snapshot) -> Recalled:
        if query.until_s is None:
            until_s = counted.work.clock.monotonic() + left_s
            hurried.append(counted.cached(replace(QUERY, until_s=until_s)))
        return counted.recall(query, project)

    counted.cached._recall = compute
    assert counted.cached(QUERY).degraded == ()
    assert [answer.receipt.cached for answer in hurried] == [False]


def test_a_cached_answer_says_so_and_has_the_ages_of_the_moment_of_asking(counted: Counted) -> None:
    """S4-29: as_of unset means the clock, also in an answer that was kept."""
    fresh, cached = (counted.cached(QUERY).receipt for _ in range(2))
    assert (fresh.cached, cached.cached) == (False, True)
    assert [stage.stage for stage in cached.stages] == ["cache"]
    assert cached.elapsed_s == cached.stages[0].elapsed_s == 0.0
    assert cached.groups == fresh.groups
    counted.cached(QUERY)
    counted.work.clock.move(120)
    answer = counted.cached(QUERY)
    assert answer.receipt.cached
    assert answer.receipt.as_of == counted.work.clock.now()
    assert {hit.age_days for hit in answer.hits} == {120 / DAY_S}


def test_with_decay_an_answer_serves_while_its_scores_are_as_good_as_new(counted: Counted) -> None:
    """S4-29, 1.1-3: a kept answer says at which moment its ages and scores are true."""
    query = replace(QUERY, preset=Preset.CHAT, half_life_days=1.0)
    made_at = counted.cached(query).receipt.as_of
    counted.work.clock.move(0.9 * DECAY_TOLERANCE * DAY_S)
    kept, now = counted.cached(query), counted.fresh(query)
    assert (kept.receipt.cached, kept.receipt.as_of) == (True, made_at)
    assert [hit.score for hit in kept.hits] == pytest.approx([hit.score for hit in now.hits], rel=DECAY_TOLERANCE)
    assert bare(kept) == bare(counted.fresh(replace(query, as_of=made_at)))
    counted.work.clock.move(0.2 * DECAY_TOLERANCE * DAY_S)
    assert not counted.cached(query).receipt.cached


def test_an_answer_that_counts_time_words_serves_while_they_mean_the_same(counted: Counted) -> None:
    """S4-29, 1.1-1: as_of unset means the clock."""
    query = replace(QUERY, text="潮汐 yesterday")
    counted.work.clock.move(DAY_S - counted.work.clock.now() % DAY_S - 60)
    assert not counted.is_cached(query)
    counted.work.clock.move(30)
    assert counted.is_cached(query)
    counted.work.clock.move(60)
    assert not counted.is_cached(query)
    (yesterday,) = counted.cached(query).receipt.times
    assert yesterday.end == counted.work.clock.now() // DAY_S * DAY_S


def test_with_decay_an_answer_does_not_outlive_a_clock_that_is_set_back(counted: Counted) -> None:
    query = replace(QUERY, preset=Preset.CHAT)
    counted.cached(query)
    counted.work.clock.move(-3600.0)
    answer = counted.cached(query)
    assert (answer.receipt.cached, answer.receipt.as_of) == (False, counted.work.clock.now())


def test_an_answer_at_a_given_time_stays_what_it_is(counted: Counted) -> None:
    query = replace(QUERY, preset=Preset.CHAT, as_of=counted.work.clock.now() + 30 * DAY_S)
    assert not counted.is_cached(query)
    counted.work.clock.move(TTL_S - 1)
    assert counted.is_cached(query)


def test_writers_who_all_ask_the_same_find_their_own_memory_at_once(counted: Counted) -> None:
    """1.1-1, S4-50: an answer under way is not shared with those who wrote after it began."""
    query = replace(QUERY, top_k=200, candidates=200)

    def write_and_ask(writer: int) -> None:
        for number in range(12):
            memory_id = f"{writer}-{number}"
            seq = counted.work.teach(note(f"tide {memory_id}", memory_id)).seq
            answer = counted.cached(query)
            assert memory_id in {hit.memory.id for hit in answer.hits}
            assert answer.seq >= seq

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(write_and_ask, range(4)))


STEPS = st.one_of(
    st.tuples(st.just("recall"), st.sampled_from("pq"), st.sampled_from(["tide", "潮汐", "loan"])),
    st.tuples(st.just("teach"), st.sampled_from("pq"), st.sampled_from(["tide a", "潮汐 tide b", "loan c"])),
    st.tuples(st.just("delete"), st.sampled_from("pq"), st.sampled_from("abc")),
    st.tuples(st.just("wait"), st.just(""), st.sampled_from(["1", "150", "300"])),
)


@pytest.mark.long
@settings(max_examples=20, deadline=None, derandomize=True)
@given(steps=st.lists(STEPS, max_size=25), preset=st.sampled_from([Preset.AGENT, Preset.CODE]))
def test_a_cached_recall_answers_as_a_fresh_one_whatever_happens_in_between(
    steps: list[tuple[str, str, str]], preset: Preset
) -> None:
    """X2, 1.1-1."""
    with tempfile.TemporaryDirectory() as directory, workplace(Path(directory)) as work:
        counted = Counted(work)
        for step, project, what in steps:
            if step == "teach":
                work.teach(note(what, what[-1]), project=project)
            elif step == "delete":
                work.garden.delete(project, "", [what], b"f")
            elif step == "wait":
                work.clock.move(float(what))
            else:
                counted.is_cached(RecallQuery(project=project, text=what, preset=preset))


def test_an_answer_weighs_what_its_texts_take_in_memory() -> None:
    """Those of details and neighbours as well."""
    with tempfile.TemporaryDirectory() as directory, workplace(Path(directory)) as work:
        work.teach(note("a tide", "m"))
        answer = Counted(work).fresh(replace(QUERY, text="tide"))
    (hit,) = answer.hits
    payload = Payload(content="潮" * 500, raw="b" * 600, detail=LearningRecord(question="c" * 700, answer="d"))
    listed = Payload(detail=DomainKnowledge(domain="e", summary="f", key_files=("g" * 800,)))
    heavy = replace(hit, memory=replace(hit.memory, payload=payload), after=(replace(hit.memory, payload=listed),))
    added = size_of(replace(answer, hits=(heavy,))) - size_of(answer)
    assert 2 * 500 + 600 + 700 + 800 <= added <= 2 * (2 * 500 + 600 + 700 + 800)
