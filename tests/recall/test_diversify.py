from __future__ import annotations

from hummock.recall.fuse import diversify
from tests.recall.candidates import Row, candidates, features, plan, ranked

ROWS = [
    Row(id="parse_date_v2.py", cosine=0.95, vector=(1.0, 0.0, 0.0)),
    Row(id="parse_date_v1.py", cosine=0.94, vector=(0.995, 0.0998, 0.0)),
    Row(id="legal_disclaimer.txt", cosine=0.10, vector=(0.1, 0.0, 0.995)),
]


def picked(relevance_weight: float, near_twin_bar: float, keep: int = 3) -> list[str]:
    fused = ranked(candidates(ROWS), plan(), features())
    places, _ = diversify(fused, relevance_weight, near_twin_bar, keep)
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
    places, is_twin = diversify(ranked(candidates(ROWS), plan(), features()), 0.7, 0.9, 3)
    assert dict(zip(places.tolist(), is_twin.tolist(), strict=True)) == {0: 0, 1: 1, 2: 0}
