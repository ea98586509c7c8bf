"""Properties of every recall, whatever its fields say."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hummock.core.candidates import FoundBy
from hummock.core.memory import Filter, MemoryKind, Origin
from hummock.core.recall import DecayMode, Hit, Intent, Preset, Recalled, RecallPath, RecallQuery
from hummock.ports.models import Embedder
from hummock.recall.pipeline import Recall
from tests.desk import Desk, domain, fragment, note
from tests.fakes import FakeClock
from tests.snapshots import over
from tests.store.opening import opened

DAY = 86_400.0

WORDS = ("harbour", "还款", "class", "parse_date", "利息", "deep", "?!", "x")
TEXTS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)
PATH_OF = {
    RecallPath.VECTOR: FoundBy.VECTOR,
    RecallPath.KEYWORD: FoundBy.KEYWORD | FoundBy.HOLDER,
    RecallPath.DOMAIN: FoundBy.DOMAIN | FoundBy.KEY_FILE,
}


def optional(values: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.none() | values


def some(values: type[MemoryKind] | type[Origin] | type[RecallPath]) -> st.SearchStrategy[frozenset[object]]:
    return st.frozensets(st.sampled_from(list(values)))


QUERIES = st.builds(
    RecallQuery,
    project=st.just("p"),
    text=TEXTS,
    preset=st.sampled_from(Preset),
    top_k=optional(st.sampled_from([1, 2, 200])),
    candidates=optional(st.sampled_from([1, 5, 1000])),
    min_similarity=optional(st.sampled_from([-1.0, 0.0, 0.3, 1.0])),
    filter=st.builds(
        Filter, kinds=some(MemoryKind), origins=some(Origin), excluded_ids=st.sampled_from([(), ("n1", "c2")])
    ),
    paths=st.frozensets(st.sampled_from(RecallPath), min_size=1),
    decay_mode=optional(st.sampled_from(DecayMode)),
    half_life_days=optional(st.sampled_from([1e-9, 14.0, 36_500.0])),
    decay_exempt_origins=some(Origin),
    relevance_weight=optional(st.sampled_from([0.0, 0.7, 1.0])),
    near_twin_bar=optional(st.sampled_from([0.0, 0.9, 2.0])),
    code_top_k=optional(st.sampled_from([0, 1, 200])),
    domain_top_k=optional(st.sampled_from([0, 1, 200])),
    intent=optional(st.builds(Intent, domains=st.sampled_from([(), ("还款",)]), keywords=st.sampled_from([(), WORDS]))),
    as_of=optional(st.sampled_from([-6e10, 0.0, 1.7e9, 2.5e11])),
    full=st.booleans(),
)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory, embedder: Embedder) -> Iterator[Desk]:
    directory, clock = tmp_path_factory.mktemp("store"), FakeClock()
    with opened(directory, clock=clock, space=embedder.space) as store:
        desk = Desk(directory=directory, store=store, embedder=embedder, clock=clock)
        origins = list(Origin)
        for number in range(12):
            text = f"{WORDS[number % 6]} {WORDS[number % 5]} {number // 2}"
            at = clock.now() - number * 30 * DAY
            desk.teach(
                note(text, f"n{number}", origin=origins[number % 5], at=at),
                domain(WORDS[number % 6], f"d{number}", "Repayment.java"),
                fragment(f"src/{number}/Repayment.java", f"c{number}"),
            )
        yield desk


def recalled(desk: Desk, query: RecallQuery) -> Recalled:
    return over(desk.store, Recall(desk.embedder, desk.clock))(query)


def all_hits(answer: Recalled) -> list[Hit]:
    return [*answer.hits, *answer.code_fragments, *answer.domains]


@pytest.mark.long
@settings(max_examples=150)
@given(query=QUERIES)
def test_every_hit_is_in_range_and_passes_what_was_asked(filled: Desk, query: RecallQuery) -> None:
    """S4-24, S4-26, S0-13."""
    answer = recalled(filled, query)
    asked = FoundBy(0)
    for path in query.paths:
        asked |= PATH_OF[path]
    hits = all_hits(answer)
    assert len({hit.memory.id for hit in hits}) == len(hits)
    for hit in hits:
        assert 0 <= hit.score <= 1
        assert 0 <= hit.decay <= 1
        assert -1 <= hit.similarity <= 1
        assert hit.age_days >= 0
        assert hit.found_by
        assert not hit.found_by & ~asked
        assert bool(hit.matched_terms or hit.corrections) >= bool(hit.found_by & FoundBy.KEYWORD)
        assert hit.memory.kind in (query.filter.kinds or MemoryKind)
        assert not query.filter.origins or hit.memory.origin in query.filter.origins
        assert hit.memory.id not in query.filter.excluded_ids
        assert (hit.memory.payload is not None) == query.full
        if hit.found_by == FoundBy.VECTOR and query.min_similarity is not None:
            assert hit.similarity >= query.min_similarity


@pytest.mark.long
@settings(max_examples=150)
@given(query=QUERIES)
def test_every_group_is_as_long_and_in_the_order_that_was_asked_for(filled: Desk, query: RecallQuery) -> None:
    """S0-10, S0-15, S2-07, 1.1-4, 1.1-7."""
    answer = recalled(filled, query)
    assert len(answer.hits) <= (query.top_k or {Preset.CHAT: 5}.get(query.preset, 10))
    for limit, group in ((query.code_top_k, answer.code_fragments), (query.domain_top_k, answer.domains)):
        assert limit is None or len(group) <= limit
    named = [bool(hit.found_by & FoundBy.DOMAIN) for hit in answer.domains]
    assert named == sorted(named, reverse=True)
    twins = [hit.near_twin for hit in answer.hits]
    assert twins == sorted(twins)
    if query.relevance_weight == 1.0:
        scores = [hit.score for hit in answer.hits if not hit.near_twin]
        assert scores == sorted(scores, reverse=True)


@pytest.mark.long
@settings(max_examples=50)
@given(query=QUERIES)
def test_the_receipt_counts_what_is_returned_and_equal_queries_have_equal_answers(
    filled: Desk, query: RecallQuery
) -> None:
    answer = recalled(filled, query)
    returned = {"main": answer.hits, "code": answer.code_fragments, "domains": answer.domains}
    for group in answer.receipt.groups:
        assert group.returned == len(returned[group.name]) <= group.searched
    assert all_hits(recalled(filled, query)) == all_hits(answer)
