"""Other candidates: neighbours of a memory, and holders of a name or of a string."""

from __future__ import annotations

import numpy as np
import pytest

from hummock.core.candidates import Candidates, FoundBy, GroupQuery
from hummock.core.memory import Filter, Origin
from hummock.ports.store import Store
from hummock.store.search import filters
from tests.ports.asking import gather, put
from tests.snapshots import at
from tests.strategies import Entry, delete_request, unit_vector

ALL = Filter()


def group(store: Store, **fields: object) -> Candidates:
    query = GroupQuery(name="main", filter=fields.pop("where", ALL), **fields)  # type: ignore[arg-type] # its own fields
    return gather(store, "p", query).groups[0]


def found_by(candidates: Candidates) -> dict[str, FoundBy]:
    bits = [FoundBy(one) for one in candidates.found_by.tolist()]
    return dict(zip(candidates.memory_id, bits, strict=True))


def talk(store: Store) -> None:
    """Ten turns of one session and three memories of none."""
    put(store, "p", *(Entry(id=f"t{n}", session_id="s", seeds=(n + 10,), words=(f"w{n}",)) for n in range(10)))
    put(store, "p", *(Entry(id=f"n{n}", seeds=(n + 30,)) for n in range(3)))


def test_what_stands_beside_the_best_is_a_candidate(store: Store) -> None:
    talk(store)
    found = group(store, vector=unit_vector(14), pool=1, with_neighbours=True)
    assert found_by(found) == {"t3": FoundBy.NEIGHBOUR, "t4": FoundBy.VECTOR, "t5": FoundBy.NEIGHBOUR}
    assert found.session_position.tolist() == [3, 4, 5]
    assert len(set(found.session.tolist())) == 1
    assert np.isfinite(found.cosine).all()


def test_nothing_stands_beside_without_a_session_or_unasked(store: Store) -> None:
    talk(store)
    assert set(found_by(group(store, vector=unit_vector(31), pool=1, with_neighbours=True))) == {"n1"}
    assert set(found_by(group(store, vector=unit_vector(14), pool=1))) == {"t4"}


def test_what_stands_beside_passes_the_filter_and_is_there(store: Store) -> None:
    talk(store)
    put(store, "p", Entry(id="t5", session_id="s", seeds=(15,), origin=Origin.AI_OUTPUT))
    store.write("p", delete_request(["t3"])).result(30)
    where = Filter(origins=frozenset({Origin.MANUAL}))
    found = group(store, vector=unit_vector(14), pool=1, with_neighbours=True, where=where)
    assert set(found_by(found)) == {"t4"}


def test_few_holders_of_a_name_are_candidates_that_say_so(store: Store) -> None:
    put(store, "p", *(Entry(id=f"m{n}", words=("parse", "date"), seeds=(n,)) for n in range(9)))
    put(store, "p", Entry(id="x", words=("parse_date", "parse", "date"), seeds=(50,)))
    name = ("parse_date", "parse", "date")
    found = found_by(group(store, terms=name, name_terms=name, exact_name="parse_date"))
    assert {one for one, paths in found.items() if paths & FoundBy.HOLDER} == {"x"}
    assert found["x"] == FoundBy.KEYWORD | FoundBy.HOLDER
    assert not any(paths & FoundBy.HOLDER for paths in found_by(group(store, terms=name)).values())


def test_a_name_is_told_from_others_of_the_same_terms_by_how_it_is_written(store: Store) -> None:
    put(store, "p", *(Entry(id=f"m{n}", words=("reload", f"{n}")) for n in range(9)))
    put(store, "p", Entry(id="x", words=("_reload", "reload")), Entry(id="y", words=("my_reload", "reload")))
    found = found_by(group(store, terms=("reload",), name_terms=("reload",), exact_name="_reload"))
    assert {one for one, paths in found.items() if paths & FoundBy.HOLDER} == {"x"}


@pytest.mark.parametrize(("holders", "looked_up"), [(0, 0), (1, 1), (3, 3), (4, 0)])
def test_what_more_than_three_hold_is_searched_for(store: Store, holders: int, looked_up: int) -> None:
    put(store, "p", Entry(id="other"), *(Entry(id=f"m{n}", words=("还款",)) for n in range(holders)))
    found = found_by(group(store, terms=("还款",), name_terms=("还款",), exact_name="还款"))
    assert sum(bool(paths & FoundBy.HOLDER) for paths in found.values()) == looked_up


def test_the_newest_that_hold_a_string_are_candidates(store: Store) -> None:
    """S0-11, 1.1-13."""
    put(store, "p", *(Entry(id=f"m{n}", words=("RepaymentPlan",), create_time=1e9 - n) for n in range(5)))
    put(store, "p", Entry(id="other", words=("tide",)))
    found = group(store, substrings=("mentpl", "absent"), pool=3)
    assert set(found.memory_id) == {"m0", "m1", "m2"}
    assert found.matched.tolist() == [1, 1, 1]
    newest_first = [found.memory_id[row] for row in np.argsort(-found.keyword)]
    assert newest_first == ["m0", "m1", "m2"]
    assert not found.is_cut


def test_a_search_for_strings_that_is_cut_says_so(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """S0-11, 1.1-13: the newest are looked at first."""
    put(store, "p", *(Entry(id=f"m{n}", words=("RepaymentPlan",), create_time=1e9 - n) for n in range(5)))
    monkeypatch.setattr(filters, "MAX_SUBSTRING_BYTES", 500)
    found = group(store, substrings=("mentpl",))
    assert found.is_cut
    assert 0 < len(found) < 5
    assert "m0" in found.memory_id


def test_the_terms_that_few_memories_hold_are_kept_in_their_order(store: Store) -> None:
    words = [("common", "common2")] * 4 + [("common", "seldom")] * 2 + [("rare", "common")]
    put(store, "p", *(Entry(id=f"m{n}", words=each, seeds=(n,)) for n, each in enumerate(words)))
    asked = ("common", "rare", "nowhere", "common2", "seldom")
    assert at(store, "p").rarest(asked, 2) == ("rare", "seldom")
    assert at(store, "p").rarest(asked, 4) == ("common", "rare", "common2", "seldom")
    assert at(store, "p").rarest(asked, 9) == asked
    assert at(store, "p").rarest(("nowhere", "nothing"), 1) == ("nowhere",)
    assert at(store, "unknown").rarest(asked, 2) == asked[:2]


def test_terms_that_begin_alike_come_with_how_many_hold_each(store: Store) -> None:
    words = (("retry", "retain", "cache"), ("retry", "return"), ("gone",))
    put(store, "p", *(Entry(id=f"m{n}", words=each, seeds=(n,)) for n, each in enumerate(words)))
    assert at(store, "p").holders(("retry", "nowhere", "cache", "gone")) == (2, 0, 1, 1)
    assert at(store, "p").held_behind("ret", 9) == {"retain": 1, "retry": 2, "return": 1}
    assert at(store, "p").held_behind("ret", 2) == {"retain": 1, "retry": 2}
    store.write("p", delete_request(["m1"])).result(30)
    assert at(store, "p").held_behind("ret", 9) == {"retain": 1, "retry": 1}
    assert at(store, "unknown").holders(("retry",)) == (0,)
    assert not at(store, "unknown").held_behind("ret", 9)
