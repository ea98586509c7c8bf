from __future__ import annotations

from hummock.core.recall import MmrRelevance
from hummock.recall.diversify import IN_FULL, diversify
from tests.recall.candidates import Row, candidates, features, plan, ranked

ROWS = [
    Row(id="parse_date_v2.py", cosine=0.95, vector=(1.0, 0.0, 0.0), name=7),
    Row(id="parse_date_v1.py", cosine=0.94, vector=(0.995, 0.0998, 0.0), name=7),
    Row(id="legal_disclaimer.txt", cosine=0.10, vector=(0.1, 0.0, 0.995)),
]


def picked(relevance_weight: float, near_twin_bar: float, keep: int = 3) -> list[str]:
    how = plan(relevance_weight=relevance_weight, near_twin_bar=near_twin_bar)
    fused = ranked(candidates(ROWS), how, features())
    places, _ = diversify(fused, how, IN_FULL, keep)
    return [fused.memory_ids[place] for place in places]


def test_an_older_version_of_the_best_hit_goes_to_the_end() -> None:
    """S2-01, S2-07, 1.1-7."""
    assert picked(0.7, 0.9) == ["parse_date_v2.py", "legal_disclaimer.txt", "parse_date_v1.py"]


def test_without_a_bar_lambda_alone_leaves_the_twin_second() -> None:
    """1.1-7."""
    assert picked(0.7, 2.0)[1] == "parse_date_v1.py"


def test_full_weight_on_relevance_keeps_the_order() -> None:
    """S2-05, S2-06."""
    assert picked(1.0, 2.0) == ["parse_date_v2.py", "parse_date_v1.py", "legal_disclaimer.txt"]


def test_keep_bounds_the_result() -> None:
    assert picked(0.7, 0.9, keep=1) == ["parse_date_v2.py"]


def test_a_twin_is_marked_where_it_follows_its_better() -> None:
    """S2-07."""
    how = plan(relevance_weight=0.7, near_twin_bar=0.9)
    places, is_twin = diversify(ranked(candidates(ROWS), how, features()), how, IN_FULL, 3)
    assert dict(zip(places.tolist(), is_twin.tolist(), strict=True)) == {0: 0, 1: 1, 2: 0}


def test_siblings_of_the_best_hit_keep_their_places() -> None:
    """S2-05: rows of a table have no name in common, and what is alike is not the less wanted for it."""
    siblings = [Row(id=f"row {place}", cosine=0.9 - place / 100, vector=(1.0, place / 50, 0.0)) for place in range(4)]
    other = Row(id="other", cosine=0.3, vector=(0.0, 0.0, 1.0))
    how = plan(relevance_weight=0.7, near_twin_bar=0.9)
    fused = ranked(candidates([*siblings, other]), how, features())
    places, is_twin = diversify(fused, how, 0.6, 5)
    assert [fused.memory_ids[place] for place in places] == ["row 0", "row 1", "row 2", "row 3", "other"]
    assert not is_twin.any()


def test_relevance_may_be_the_similarity_as_the_document_writes_it() -> None:
    """S2-05: λ·Sim(q,d) − (1−λ)·max Sim(d, selected), to the letter."""
    rows = [
        Row(id="a", cosine=0.9, vector=(1.0, 0.0, 0.0)),
        Row(id="b", cosine=0.8, vector=(0.8, 0.6, 0.0)),
        Row(id="c", cosine=0.5, vector=(0.0, 0.0, 1.0)),
    ]
    by_similarity = plan(relevance_weight=0.6, mmr_relevance=MmrRelevance.SIMILARITY)
    by_score = plan(relevance_weight=0.6)
    orders = []
    for how in (by_similarity, by_score):
        fused = ranked(candidates(rows), how, features())
        places, _ = diversify(fused, how, 0.3, 3)
        orders.append([fused.memory_ids[place] for place in places])
    # 0.6·0.8 − 0.4·0.8 = 0.16 of b is less than 0.6·0.5 = 0.30 of c; with likeness bounded b stays second.
    assert orders == [["a", "c", "b"], ["a", "b", "c"]]
