"""Search of any store: by words, strings, vectors and times, of one writer, and in another language."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from hummock.core.candidates import Bridge, Candidates, FoundBy, GroupQuery, TokenVectors
from hummock.core.memory import Filter, MemoryKind, Origin
from hummock.ports.store import Store
from hummock.store.search import filters
from tests.ports.asking import ask, gather, ids, put
from tests.snapshots import at
from tests.strategies import SPACE, Entry, delete_request, embedding, unit_vector

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


def test_what_stands_beside_the_best_in_its_session_is_a_candidate(store: Store) -> None:
    talk(store)
    found = group(store, vector=unit_vector(14), pool=1, with_neighbours=True)
    assert found_by(found) == {"t3": FoundBy.NEIGHBOUR, "t4": FoundBy.VECTOR, "t5": FoundBy.NEIGHBOUR}
    assert (found.rows["session_position"].tolist(), len(set(found.rows["session"].tolist()))) == ([3, 4, 5], 1)
    assert np.isfinite(found.cosine).all()
    assert set(found_by(group(store, vector=unit_vector(31), pool=1, with_neighbours=True))) == {"n1"}
    assert set(found_by(group(store, vector=unit_vector(14), pool=1))) == {"t4"}
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
    assert (set(found.memory_id), found.matched.tolist()) == ({"m0", "m1", "m2"}, [1, 1, 1])
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
    assert at(store, "p").unheld(("retry", "nowhere", "cache", "nothing")) == [1, 3]
    assert at(store, "p").terms_with_prefix("ret", 9) == {"retain": 1, "retry": 2, "return": 1}
    assert at(store, "p").terms_with_prefix("ret", 2) == {"retain": 1, "retry": 2}
    store.write("p", delete_request(["m1"])).result(30)
    assert at(store, "p").terms_with_prefix("ret", 9) == {"retain": 1, "retry": 1}
    assert (at(store, "p").unheld(("cache", "retry")), at(store, "p").unheld(())) == ([], [])
    assert (at(store, "p").unheld(("return", "cache")), at(store, "unknown").unheld(("retry",))) == ([0], [0])
    assert at(store, "unknown").holders(("retry",)) == (0,)
    assert not at(store, "unknown").terms_with_prefix("ret", 9)


@pytest.fixture
def told(store: Store) -> Store:
    """Ten memories of ten moments, one said at another, one of none."""
    put(
        store,
        "p",
        *(Entry(id=f"m{n}", event_time=float(n), seeds=(n + 1,), words=("tide",) * (n + 1)) for n in range(10)),
        Entry(id="said", session_id="s1", create_time=4.0),
        Entry(id="of none", create_time=4.0),
    )
    return store


def asked(store: Store, *times: tuple[float, float], pool: int = 50, **how: object) -> Candidates:
    query = GroupQuery(name="main", filter=how.pop("where", Filter()), times=times, pool=pool, **how)  # type: ignore[arg-type] # fields of GroupQuery
    return gather(store, "p", query).groups[0]


def test_what_is_told_of_a_time_is_found_by_that_alone(told: Store) -> None:
    found = asked(told, (3.0, 5.0))
    assert (ids(found), set(found.found_by.tolist())) == ({"m3", "m4", "said"}, {FoundBy.TIME})


def test_several_times_and_open_ones_are_joined(told: Store) -> None:
    assert ids(asked(told, (float("-inf"), 1.0), (8.0, float("inf")), (8.0, 9.0))) == {"m0", "m8", "m9"}


def test_a_filter_counts(told: Store) -> None:
    assert ids(asked(told, (3.0, 5.0), where=Filter(excluded_ids=("m3",)))) == {"m4", "said"}


def test_of_too_many_the_nearest_are_found_else_the_best_by_words_and_the_newest(told: Store) -> None:
    assert ids(asked(told, (0.0, 10.0), pool=2)) == {"said", "m9"}
    assert "m2" in ids(asked(told, (0.0, 10.0), pool=2, vector=unit_vector(3)))


def query(*, seed: int | None = None, terms: tuple[str, ...] = (), with_tokens: bool = True) -> GroupQuery:
    vector = None if seed is None else unit_vector(seed)
    return GroupQuery(name="main", filter=Filter(), vector=vector, terms=terms, with_tokens=with_tokens)


def tokens_for(store: Store, *, seed: int | None = None, terms: tuple[str, ...] = (), project: str = "p") -> Candidates:
    return gather(store, project, query(seed=seed, terms=terms)).groups[0]


def tokens_of(found: Candidates, memory_id: str) -> NDArray[np.int8]:
    tokens = brought(found)
    row = found.memory_id.index(memory_id)
    return tokens.values[tokens.start[row] : tokens.start[row + 1]]


def brought(found: Candidates) -> TokenVectors:
    assert found.tokens is not None
    return found.tokens


def test_candidates_bring_the_token_vectors_of_their_best_chunk(store: Store) -> None:
    put(store, "p", Entry(id="a", seeds=(1, 2, 3)), Entry(id="b", seeds=(4,)))
    found = tokens_for(store, seed=2)
    np.testing.assert_array_equal(tokens_of(found, "a"), embedding(2).tokens)
    np.testing.assert_array_equal(tokens_of(found, "b"), embedding(4).tokens)
    assert found.best_chunk[found.memory_id.index("a")] == 1


def test_without_a_query_vector_they_are_those_of_the_first_chunk(store: Store) -> None:
    put(store, "p", Entry(id="a", words=("tide",), seeds=(1, 2)))
    np.testing.assert_array_equal(tokens_of(tokens_for(store, terms=("tide",)), "a"), embedding(1).tokens)


def test_a_memory_without_vectors_has_none(store: Store) -> None:
    put(store, "p", Entry(id="a", words=("tide",), seeds=()), Entry(id="b", words=("tide",), seeds=(1,)))
    found = tokens_for(store, seed=1, terms=("tide",))
    assert (len(tokens_of(found, "a")), len(tokens_of(found, "b"))) == (0, 3)


def test_no_candidates_bring_nothing(store: Store) -> None:
    put(store, "p", Entry(id="a", seeds=(1,)))
    store.write("p", delete_request(["a"])).result(timeout=30)
    for project in ("p", "unknown"):
        assert brought(tokens_for(store, seed=1, project=project)).values.shape == (0, SPACE.token_dim)


def test_they_come_only_where_they_are_asked_for(store: Store) -> None:
    put(store, "p", Entry(id="a", seeds=(1,)))
    groups = gather(store, "p", query(seed=1, with_tokens=False), query(seed=1)).groups
    assert [group.tokens is None for group in groups] == [True, False]


def test_an_edited_memory_has_the_new_ones(store: Store) -> None:
    put(store, "p", Entry(id="a", seeds=(1,)))
    put(store, "p", Entry(id="a", seeds=(2,)))
    np.testing.assert_array_equal(tokens_of(tokens_for(store, seed=1), "a"), embedding(2).tokens)


def wrote(number: int, writer: str, origin: Origin = Origin.SUMMARY) -> Entry:
    words = ("tide", f"w{number}")
    return Entry(id=f"{writer}-{number}", words=words, seeds=(number,), writer=writer, origin=origin)


def writers(found: Candidates) -> dict[str, int]:
    """Writers by memory id; empty if there are none."""
    return dict(zip(found.memory_id, found.writer.tolist(), strict=True)) if len(found.writer) else {}


def test_what_one_writer_wrote_has_one_number_and_what_a_person_wrote_has_none(store: Store) -> None:
    put(store, "p", wrote(1, "ci"), wrote(2, "ci", origin=Origin.AI_OUTPUT), wrote(3, "agent"))
    put(store, "p", wrote(4, "ci", origin=Origin.MANUAL), Entry(id="no-token", origin=Origin.SUMMARY))
    found = writers(ask(store, seed=1))
    assert found["ci-1"] == found["ci-2"] > 0
    assert found["agent-3"] not in {0, found["ci-1"]}
    assert found["ci-4"] == found["no-token"] == 0


def test_where_all_is_of_one_writer_nothing_is_told(store: Store) -> None:
    put(store, "p", *(wrote(number, "ci") for number in range(1, 5)))
    assert writers(ask(store, seed=1)) == {}
    put(store, "p", Entry(id="by-hand", seeds=(9,)))
    assert writers(ask(store, seed=1))["by-hand"] == 0


def test_a_flood_leaves_others_ten_candidates_a_path(store: Store) -> None:
    flood = [replace(wrote(number, "mallory"), seeds=(1,)) for number in range(1, 41)]
    others = [wrote(number, "carol") for number in range(101, 121)]
    put(store, "p", *flood, *others)
    by_vector = ask(store, seed=1, pool=5)
    theirs = {one for one in ids(by_vector) if one.startswith("carol")}
    assert len(theirs) >= 10
    by_words = ask(store, terms=["tide"], pool=5)
    assert sum(one.startswith("carol") for one in ids(by_words)) >= 10
    # Nothing is brought twice, and the filter holds.
    assert len(by_vector.memory_id) == len(ids(by_vector))
    assert np.isfinite(by_vector.cosine).all()


CODE = MemoryKind.CODE_FRAGMENT


def bridge(*terms: str, seed: int | None = None, stands_for: int = 0, foreign_mark: int = 0) -> Bridge:
    return Bridge(
        vector=None if seed is None else unit_vector(seed),
        terms=terms,
        weights=np.ones(len(terms), np.float32),
        stands_for=np.full(len(terms), stands_for, np.uint32),
        foreign_mark=foreign_mark,
    )


def crossed(store: Store, asked: Bridge, pool: int = 50) -> Candidates:
    query = GroupQuery(name="main", filter=Filter(), terms=("缓存", "失效"), pool=pool, bridge=asked)
    return gather(store, "p", query).groups[0]


def test_words_of_another_language_find_what_the_querys_own_do_not(store: Store) -> None:
    put(store, "p", Entry(id="own", words=("缓存",)), Entry(id="code", words=("cach",), kind=CODE), Entry(id="other"))
    found = crossed(store, bridge("cach", stands_for=1))
    assert set(found.memory_id) == {"own", "code"}
    assert found.bridged is not None
    row = found.memory_id.index("code")
    assert FoundBy(int(found.found_by[row])) is FoundBy.KEYWORD
    assert (found.keyword[row], found.matched[row]) == (0, 0)
    assert found.bridged.keyword[row] > 0
    assert found.bridged.matched[row] == 1
    assert found.bridged.is_foreign.tolist() == [memory_id == "code" for memory_id in found.memory_id]


def test_without_a_bridge_nothing_is_said_of_it(store: Store) -> None:
    put(store, "p", Entry(id="own", words=("缓存",)))
    query = GroupQuery(name="main", filter=Filter(), terms=("缓存",))
    assert gather(store, "p", query).groups[0].bridged is None


def test_a_weight_scales_what_a_word_is_worth(store: Store) -> None:
    put(store, "p", Entry(id="code", words=("cach", "expir"), kind=CODE), Entry(id="other"))
    whole = bridge("cach")
    half = Bridge(
        vector=None, terms=whole.terms, weights=np.full(1, 0.5, np.float32), stands_for=whole.stands_for, foreign_mark=0
    )
    scores = [found.bridged.keyword[0] for asked in (whole, half) if (found := crossed(store, asked)).bridged]
    assert scores[1] == np.float32(scores[0] / 2)


def test_a_project_knows_which_words_it_holds(store: Store) -> None:
    put(store, "p", Entry(id="m", words=("cach",)))
    put(store, "q", Entry(id="m", words=("缓存",)))
    assert at(store, "p").holds_any(("缓存", "cach"))
    assert not at(store, "q").holds_any(("cach",))
    assert not at(store, "p").holds_any(())
    assert not at(store, "unknown").holds_any(("cach",))
