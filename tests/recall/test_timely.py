"""Recall inside a deadline: a real store behind stages whose time the test holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from hummock.core.candidates import FoundBy, Gathered, GroupQuery
from hummock.core.embedding import Embedding, EmbeddingSpace
from hummock.core.memory import Memory
from hummock.core.recall import CrossEncoding, Degradation, KeywordMode, Preset, Recalled, RecallPath, RecallQuery
from hummock.ports.models import Embedder, EmbeddingLate, Pair
from hummock.ports.store import Neighbours, Snapshot
from hummock.recall.cache import CachedRecall
from hummock.recall.pipeline import Recall
from hummock.recall.rerank import CrossEncode
from hummock.recall.stage_budget import PROJECTS, RESERVE_S, StageBudget, StageCosts
from tests.desk import Desk, ids, note
from tests.fakes import FakeClock
from tests.snapshots import over

GIVES_WAY = ("cross_encoder", "context_window", "late_interaction", "vector")
"""Stages in the order in which they are dropped: the cheapest in quality first."""


@dataclass(kw_only=True)
class Costs:
    """Seconds that each stage takes."""

    embed: float = 0.0
    words: float = 0.0
    vector: float = 0.0
    tokens: float = 0.0
    scan: float = 0.0
    load: float = 0.0
    neighbours: float = 0.0
    pair: float = 0.0


@dataclass(kw_only=True)
class Slow:
    """Reads of a store, an embedder and a reranker that take their time by the test's clock."""

    desk: Desk
    costs: Costs
    known: set[str] = field(default_factory=set)
    begun: list[str] = field(default_factory=list)
    name = "slow"

    @property
    def clock(self) -> FakeClock:
        return self.desk.clock

    @property
    def space(self) -> EmbeddingSpace:
        return self.desk.embedder.space

    @property
    def least_s(self) -> float:
        return self.costs.pair

    def left_out(self) -> None:
        """Its costs stay what they are."""

    def embed_query(self, text: str, timeout_s: float | None = None, gloss: str | None = None) -> Embedding:
        if text not in self.known:
            if timeout_s is not None and self.costs.embed > timeout_s:
                raise EmbeddingLate("the model is slow")
            self.begun.append(text)
            self.clock.move(self.costs.embed)
        return self.desk.embedder.embed_query(text)

    def search(self, project: Snapshot, queries: Sequence[GroupQuery]) -> Gathered:
        (query,) = queries
        self.clock.move(self.costs.words)
        self.clock.move(self.costs.scan if query.substrings else 0.0)
        self.clock.move(self.costs.vector if query.vector is not None else 0.0)
        self.clock.move(self.costs.tokens if query.with_tokens else 0.0)
        return project.search(queries)

    def load(self, project: Snapshot, docs: Sequence[int], *, full: bool) -> list[Memory | None]:
        self.clock.move(self.costs.load)
        return project.load(docs, full=full)

    def neighbours(self, project: Snapshot, *asked: Any, **options: Any) -> list[Neighbours]:
        self.clock.move(self.costs.neighbours)
        return project.neighbours(*asked, **options)

    def pairs(self, query: str, texts: Sequence[str]) -> list[Pair]:
        return [Pair(tokens=(place,), token_types=(0,), expected_s=self.costs.pair) for place in range(len(texts))]

    def scores(self, pairs: Sequence[Pair], until_s: float | None) -> list[float]:
        self.clock.move(self.costs.pair * len(pairs))
        return [1 / (1 + pair.tokens[0]) for pair in pairs]

    def inner(self) -> Callable[[RecallQuery, Snapshot], Recalled]:
        """A recall of a snapshot that takes its time."""
        recall = Recall(cast(Embedder, self), self.clock, CrossEncode(self, CrossEncoding.OFF, self.clock))
        return lambda query, project: recall(query, cast(Snapshot, _SlowSnapshot(self, project)))

    def recalls(self) -> Callable[[RecallQuery], Recalled]:
        """A recall that has learnt what its stages take."""
        return over(self.desk.store, self.learnt())

    def learnt(self) -> Callable[[RecallQuery, Snapshot], Recalled]:
        """A recall of a snapshot that has learnt what its stages take."""
        inner = self.inner()
        recall = over(self.desk.store, inner)
        for _ in range(3):
            for paths in (frozenset({RecallPath.KEYWORD}), frozenset(RecallPath)):
                recall(replace(QUERY, paths=paths, cross_encoding=CrossEncoding.OFF))
                recall(replace(QUERY, paths=paths, late_interaction=False, cross_encoding=CrossEncoding.OFF))
            recall(replace(QUERY, keyword_mode=KeywordMode.SUBSTRING, paths=frozenset({RecallPath.KEYWORD})))
        return inner


class _SlowSnapshot:
    """A snapshot of which the dear reads take their time."""

    def __init__(self, slow: Slow, project: Snapshot) -> None:
        self._project = project
        self.search = partial(slow.search, project)
        self.load = partial(slow.load, project)
        self.neighbours = partial(slow.neighbours, project)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._project, name)


QUERY = RecallQuery(project="p", text="harbour", context_window=1, cross_encoding=CrossEncoding.ON)


@pytest.fixture
def slow(desk: Desk) -> Slow:
    for number in range(6):
        desk.teach(replace(note(f"harbour wall {number}", f"n{number}"), session_id="s"))
    costs = Costs(embed=0.1, words=0.01, vector=0.02, tokens=0.04, load=0.005, neighbours=0.05, pair=0.03)
    return Slow(desk=desk, costs=costs)


def within(
    recall: Callable[[RecallQuery], Recalled], slow: Slow, left_s: float, query: RecallQuery = QUERY
) -> Recalled:
    return recall(replace(query, until_s=slow.clock.monotonic() + left_s))


def left_out(answer: Recalled) -> dict[str, Degradation]:
    return {each.path: each for each in answer.degraded if each.reason == "DEADLINE"}


def test_without_a_deadline_every_stage_runs(slow: Slow) -> None:
    answer = slow.recalls()(QUERY)
    assert answer.degraded == ()
    assert answer.receipt.cross_encoded == 6
    assert any(hit.before or hit.after for hit in answer.hits)


@pytest.mark.parametrize(
    ("left_s", "expected"),
    [
        (1.0, ()),
        (0.27, GIVES_WAY[:1]),
        (0.22, GIVES_WAY[:2]),
        (0.16, GIVES_WAY[:3]),
        (0.05, GIVES_WAY[:2] + GIVES_WAY[3:]),
    ],
)
def test_stages_give_way_in_the_order_of_what_they_are_worth(
    slow: Slow, left_s: float, expected: tuple[str, ...]
) -> None:
    recall = slow.recalls()
    start_s = slow.clock.monotonic()
    answer = within(recall, slow, left_s)
    assert set(left_out(answer)) == set(expected), "without vectors there is nothing for late interaction to leave out"
    assert slow.clock.monotonic() - start_s <= left_s - RESERVE_S
    assert len(answer.hits) == 6


def test_words_answer_even_when_the_deadline_has_passed(slow: Slow) -> None:
    answer = within(slow.recalls(), slow, -1.0)
    assert sorted(ids(answer)) == [f"n{number}" for number in range(6)]
    assert not any(hit.found_by & FoundBy.VECTOR for hit in answer.hits)
    assert "vector" in left_out(answer)


def test_what_was_left_out_is_said_with_numbers(slow: Slow) -> None:
    said = left_out(within(slow.recalls(), slow, 0.22))
    assert said["context_window"].message == "it and what follows would take 55.0 ms of the 39.0 ms that were left"
    assert said["cross_encoder"].message == "0 of 6 candidates were read"


def test_a_model_that_would_be_late_is_not_waited_for(slow: Slow) -> None:
    recall = slow.recalls()
    slow.begun.clear()
    answer = within(recall, slow, 0.09)
    assert slow.begun == []
    assert left_out(answer)["vector"].message == "the model is slow"
    assert answer.receipt.vector_weight == 0


def test_a_vector_that_is_given_or_known_needs_no_model(slow: Slow) -> None:
    answer = within(slow.recalls(), slow, 0.09, replace(QUERY, vector=slow.desk.pointing(1), context_window=0))
    assert "vector" not in left_out(answer)
    recall = slow.recalls()
    slow.known.add(QUERY.text)
    assert "vector" not in left_out(within(recall, slow, 0.09))


def test_texts_are_looked_through_only_where_there_is_time(slow: Slow) -> None:
    """1.1-13: terms stand in for substrings."""
    slow.costs.scan = 0.5
    recall = slow.recalls()
    query = replace(QUERY, keyword_mode=KeywordMode.SUBSTRING, paths=frozenset({RecallPath.KEYWORD}), context_window=0)
    patient, hurried = within(recall, slow, 1.0, query), within(recall, slow, 0.1, query)
    assert left_out(patient) == {}
    assert set(left_out(hurried)) == {"keyword", "cross_encoder"}
    assert set(ids(patient)) == set(ids(hurried))


def test_a_follow_up_is_asked_again_only_where_there_is_time(slow: Slow) -> None:
    recall = slow.recalls()
    query = replace(QUERY, text="and its lights?", before=("harbour wall",), cross_encoding=CrossEncoding.OFF)
    patient, hurried = within(recall, slow, 1.0, query), within(recall, slow, 0.3, query)
    assert (left_out(patient), patient.together_with) == ({}, ("harbour wall",))
    assert (set(left_out(hurried)), hurried.together_with) == ({"follow_up"}, ())


def test_an_event_is_looked_for_only_where_there_is_time_for_all_else(slow: Slow) -> None:
    slow.desk.teach(replace(note("港口开放", "opened"), event_time=slow.clock.now() - 900_000.0))
    recall = slow.recalls()
    text = "港口开放第二天"
    query = replace(QUERY, text=text, context_window=0, cross_encoding=CrossEncoding.OFF)
    patient, hurried = within(recall, slow, 1.0, query), within(recall, slow, 0.3, query)
    assert left_out(patient) == {}
    assert [each.phrase for each in patient.receipt.times] == [text]
    assert set(left_out(hurried)) == {"intent"}
    assert hurried.receipt.times == ()


@pytest.mark.long
def test_a_stage_that_was_slow_once_is_tried_again(slow: Slow) -> None:
    slow.costs.neighbours = 0.2
    recall = slow.recalls()
    slow.costs.neighbours = 0.0
    query = replace(QUERY, paths=frozenset({RecallPath.KEYWORD}), cross_encoding=CrossEncoding.OFF)
    calls = 1
    while left_out(within(recall, slow, 0.15, query)):
        calls += 1
    assert 20 < calls < 400


def test_a_caller_with_more_time_gets_an_answer_of_its_own(slow: Slow) -> None:
    cached = CachedRecall(slow.learnt(), slow.desk.store, slow.space.id, slow.clock)
    hurried = within(cached, slow, 0.05)
    patient = within(cached, slow, 5.0)
    again = within(cached, slow, 0.05)
    assert set(left_out(hurried)) == {"cross_encoder", "context_window", "vector"}
    assert (left_out(patient), patient.receipt.cached) == ({}, False)
    assert (left_out(again), again.receipt.cached) == ({}, True)


COST = st.sampled_from([0.0, 0.001, 0.01, 0.05, 0.3])


@pytest.mark.long
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    costs=st.builds(
        Costs, embed=COST, words=COST, vector=COST, tokens=COST, load=COST, neighbours=COST, pair=COST, scan=COST
    ),
    shares=st.lists(st.floats(0, 1.2), min_size=2, max_size=8),
)
def test_more_time_never_takes_a_stage_away(slow: Slow, costs: Costs, shares: list[float]) -> None:
    slow.costs = costs
    recall = slow.recalls()
    start_s = slow.clock.monotonic()
    assert recall(QUERY).degraded == ()
    all_s = slow.clock.monotonic() - start_s + RESERVE_S
    before: set[str] | None = None
    read = -1
    for share in sorted(shares):
        fresh = slow.recalls()
        start_s = slow.clock.monotonic()
        answer = within(fresh, slow, share * all_s)
        skipped = {*left_out(answer)}
        skipped |= {"late_interaction"} if "vector" in skipped else set()
        assert before is None or skipped <= before
        assert answer.receipt.cross_encoded >= read
        before, read = skipped, answer.receipt.cross_encoded
        needed_s = costs.words + costs.load + RESERVE_S
        assert slow.clock.monotonic() - start_s <= max(share * all_s, needed_s) + 1e-6
        assert len(answer.hits) == 6


def test_projects_have_costs_of_their_own_and_the_oldest_are_forgotten() -> None:
    costs = StageCosts(projects=2)
    for _ in range(2):
        costs.of("a")["gather"].add(1.0)
    assert costs.of("a")["gather"].expected_s == 1.0
    assert costs.of("b")["gather"].expected_s == 0.0
    costs.of("a")
    costs.of("c")
    assert costs.of("a")["gather"].expected_s == 1.0
    assert costs.of("b")["gather"].expected_s == 0.0
    assert PROJECTS > 2


def test_a_search_that_was_never_made_takes_at_most_what_a_dearer_one_does() -> None:
    clock, costs = FakeClock(), StageCosts().of("p")
    for _ in range(2):
        costs["gather_all"].add(1.0)
    assert not StageBudget(clock, costs, clock.monotonic() + 0.9).fits("vector", "gather_by_vector")
    assert StageBudget(clock, costs, clock.monotonic() + 1.1).fits("vector", "gather_by_vector")


def test_the_chat_preset_too_answers_in_time(slow: Slow) -> None:
    answer = within(slow.recalls(), slow, 0.05, replace(QUERY, preset=Preset.CHAT))
    assert "vector" in left_out(answer)
    assert answer.hits
