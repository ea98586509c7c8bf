"""The nearest memories by every plan, against an exact scan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from hummock.core.memory import Filter
from hummock.store import StoreLimits, WritableStore
from hummock.store.growing import Growing, Lazy, SignBits, packed_query
from hummock.store.limits import PlanLimits
from hummock.store.search.nearest import Plan, nearest, plan_for
from hummock.store.tables.row_codec import ROW
from hummock.store.views.columns import Columns
from hummock.store.views.domain_names import DomainNames, read_given_names
from hummock.store.views.postings import Postings
from hummock.store.views.view import ProjectView
from hummock_kernels import reference
from hummock_kernels.cosine import Chunks, scan
from tests.ports.asking import ask, put
from tests.store.answering import answers, rebuild
from tests.store.opening import opened
from tests.strategies import Entry, delete_request

Floats = NDArray[np.float32]

SIGNS = PlanLimits(sign_rows=1, exact_rows=0, pool_rows=500, pool_growth=2)
"""Sign bits whenever anything passes."""

TIGHT = PlanLimits(
    sign_rows=1, exact_rows=0, pool_rows=1, pool_per_result=1, pool_growth=1, pool_share=10**9, widening=2
)
"""Sign bits like `SIGNS`, with pools that are too small."""

SCAN = PlanLimits(sign_rows=10**9)


def view_of(vectors: Floats, chunk_counts: Sequence[int], plans: PlanLimits) -> ProjectView:
    """Memories whose chunks have these vectors one after the other."""
    rows = np.zeros(len(chunk_counts), ROW)
    rows["doc"] = np.arange(1, len(rows) + 1)
    rows["chunk_count"] = chunk_counts
    halves = vectors.astype(np.float16).view(np.uint16)
    return ProjectView(
        number=1,
        seq=1,
        content_seq=1,
        columns=Columns.empty().extended(rows, [f"m{doc}" for doc in rows["doc"]], 0),
        vectors=Growing.of(halves),
        row_doc=Growing.of(np.repeat(np.arange(len(rows), dtype=np.int32), chunk_counts)),
        postings=Postings.of([], np.empty(0, np.float32), inverted=False),
        domain_names=Lazy(DomainNames.read),
        given_names=Lazy(read_given_names),
        plans=plans,
        signs=SignBits.of(halves) if plans.sign_rows <= len(halves) else None,
    )


def exact(view: ProjectView, allowed: NDArray[np.uint8], query: Floats, minimum: float, k: int) -> list[int]:
    """Result of a scan of everything."""
    columns = view.columns
    chunks = Chunks(view.vectors.values, columns.chunk_start, columns.chunk_count)
    found: list[int] = scan(chunks, allowed, query, minimum, k)[0].tolist()
    return found


def unit(vectors: Floats) -> Floats:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=-1, keepdims=True), np.float32)


def clustered(count: int, dim: int, random: np.random.Generator) -> Floats:
    """Unit vectors as a model's: groups of meanings in a few of the dims, and a direction that all share."""
    latent = random.standard_normal((count // 50, 32))[random.integers(0, count // 50, count)]
    latent += 0.5 * random.standard_normal(latent.shape)
    vectors = latent @ random.standard_normal((32, dim)) / 32**0.5 + 0.2 * random.standard_normal((count, dim)) + 0.3
    return unit(vectors.astype(np.float32))


@pytest.mark.long
@pytest.mark.parametrize("passing", [1.0, 0.75])
def test_sign_bits_find_what_a_scan_finds(passing: float) -> None:
    random = np.random.default_rng(6)
    vectors = clustered(20_000, 384, random)
    view = view_of(vectors, [1] * len(vectors), SIGNS)
    allowed = (random.random(len(vectors)) < passing).astype(np.uint8)
    hits = total = 0
    for _ in range(40):
        query = unit(vectors[random.integers(len(vectors))] + 0.02 * random.standard_normal(384).astype(np.float32))
        found = nearest(view, allowed, query, -np.inf, 10).tolist()
        assert len(found) == 10
        hits += len(set(found) & set(exact(view, allowed, query, -np.inf, 10)))
        total += 10
    assert hits / total >= 0.99


@st.composite
def small_views(draw: st.DrawFn, plans: PlanLimits) -> tuple[ProjectView, NDArray[np.uint8], Floats]:
    """Small integers, so that many memories are equally near and every sum is exact; and a filter and a query."""
    dim = draw(st.sampled_from([3, 70]))
    chunk_counts = draw(st.lists(st.integers(0, 3), max_size=12))
    random = np.random.default_rng(draw(st.integers(0, 99)))
    vectors = random.integers(-2, 3, (sum(chunk_counts), dim)).astype(np.float32)
    allowed = np.array([draw(st.integers(0, 1)) for _ in chunk_counts], np.uint8)
    return view_of(vectors, chunk_counts, plans), allowed, random.integers(-2, 3, dim).astype(np.float32)


@given(data=st.data(), minimum=st.sampled_from([-np.inf, 0.0, 2.0]), k=st.integers(-1, 9))
def test_scanning_is_exact(data: st.DataObject, minimum: float, k: int) -> None:
    view, allowed, query = data.draw(small_views(SCAN))
    columns = view.columns
    chunks = Chunks(view.vectors.values, columns.chunk_start, columns.chunk_count)
    expected = reference.scan(chunks, allowed, query, minimum, k)[0].tolist()
    assert nearest(view, allowed, query, minimum, k).tolist() == expected


@pytest.mark.parametrize("plans", [SIGNS, TIGHT], ids=["wide", "tight"])
@given(data=st.data(), k=st.integers(-1, 9))
def test_there_are_as_many_results_as_asked_for_or_as_match(plans: PlanLimits, data: st.DataObject, k: int) -> None:
    view, allowed, query = data.draw(small_views(plans))
    found = nearest(view, allowed, query, -np.inf, k).tolist()
    assert len(found) == len(set(found)) == len(exact(view, allowed, query, -np.inf, k))
    assert all(allowed[ordinal] for ordinal in found)


@pytest.mark.parametrize("slot", [0, 1])
@given(seed=st.integers(0, 99), chunk_counts=st.lists(st.integers(0, 3), max_size=12), k=st.integers(1, 9))
def test_a_question_to_one_model_finds_what_it_finds_among_that_models_vectors(
    slot: int, seed: int, chunk_counts: list[int], k: int
) -> None:
    """Ids and scores are those of a store of that model alone, also where the pool is too small."""
    random = np.random.default_rng(seed)
    rows = random.integers(-2, 3, (sum(chunk_counts), 2, 64)).astype(np.float32)
    query = random.integers(-2, 3, 64).astype(np.float32)
    joined = np.zeros((2, 64), np.float32)
    joined[slot] = query
    allowed = random.integers(0, 2, len(chunk_counts)).astype(np.uint8)
    whole = view_of(rows.reshape(-1, 128), chunk_counts, TIGHT)
    alone = view_of(np.ascontiguousarray(rows[:, slot]), chunk_counts, TIGHT)
    found = nearest(whole, allowed, joined.reshape(-1), -np.inf, k)
    assert found.tolist() == nearest(alone, allowed, query, -np.inf, k).tolist()
    ids_and_scores = [
        scan(view.chunks, allowed, asked, -np.inf, k) for view, asked in ((whole, joined.reshape(-1)), (alone, query))
    ]
    for ours, theirs in zip(*ids_and_scores, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@given(data=st.data(), minimum=st.sampled_from([0.0, 2.0]))
def test_nothing_below_the_minimum_is_found_by_sign_bits(data: st.DataObject, minimum: float) -> None:
    """S4-26."""
    view, allowed, query = data.draw(small_views(SIGNS))
    assert nearest(view, allowed, query, minimum, 9).tolist() == exact(view, allowed, query, minimum, 9)


def test_a_long_memory_that_fills_the_pool_does_not_push_the_others_out() -> None:
    near = unit(np.random.default_rng(1).standard_normal(64).astype(np.float32))
    others = unit(np.random.default_rng(2).standard_normal((30, 64)).astype(np.float32))
    view = view_of(np.concatenate([np.tile(near, (40, 1)), others]), [40] + [1] * 30, TIGHT)
    allowed = np.ones(31, np.uint8)
    found = nearest(view, allowed, near, -np.inf, 5).tolist()
    assert found == exact(view, allowed, near, -np.inf, 5)
    assert len(found) == 5


@pytest.mark.parametrize(
    ("growth", "scores", "expected"),
    [(1, range(16), 0), (4, range(16), 3), (16, range(16), 15), (16, [*range(15, 1, -1), 0, 99], 0)],
    ids=["may not grow", "to its limit", "as long as it finds better ones", "not beyond a half without"],
)
def test_a_pool_grows_as_long_as_its_second_half_is_better(growth: int, scores: Sequence[int], expected: int) -> None:
    """Memory i has i signs that differ from the query's; the first pool is one row."""
    vectors = np.array([[*[-1e-3] * i, *[1.0 + score] * (64 - i)] for i, score in enumerate(scores)], np.float32)
    plans = replace(TIGHT, pool_growth=growth, widening=1)
    view = view_of(vectors / np.float32(100), [1] * len(vectors), plans)
    found = nearest(view, np.ones(len(vectors), np.uint8), unit(np.ones(64, np.float32)), -np.inf, 1)
    assert found.tolist() == [expected]


def test_equally_near_memories_come_in_the_order_of_their_writes() -> None:
    view = view_of(unit(np.ones((50, 64), np.float32)), [1] * 50, TIGHT)
    found = nearest(view, np.ones(50, np.uint8), unit(np.ones(64, np.float32)), -np.inf, 3)
    assert found.tolist() == [0, 1, 2]


PLANS = PlanLimits(sign_rows=400, exact_rows=200)


@pytest.mark.parametrize(
    ("memories", "chunks", "passing", "plan"),
    [
        (0, 1, 0, Plan.SCAN),
        (1000, 1, 0, Plan.SCAN),
        (1000, 1, 200, Plan.SCAN),
        (1000, 1, 201, Plan.SIGNS),
        (1000, 1, 1000, Plan.SIGNS),
        (399, 1, 399, Plan.SCAN),
        (200, 2, 100, Plan.SCAN),
        (9999, 2, 100, Plan.SCAN),
        (200, 2, 101, Plan.SIGNS),
    ],
)
def test_the_plan_follows_from_how_many_rows_pass(memories: int, chunks: int, passing: int, plan: Plan) -> None:
    view = view_of(np.ones((memories * chunks, 2), np.float32), [chunks] * memories, PLANS)
    assert plan_for(view, passing) is plan


def test_a_query_is_packed_by_sign_and_size() -> None:
    """The unit is .535 of the spread, 1 here."""
    query = np.array([0.3, -0.5, 1.2, -2.0, 0.0, -0.0], np.float32)
    query *= np.abs(query).sum() / (query @ query)
    signs, ones, twos = packed_query(query)[:, 0].tolist()
    assert signs == 0b101010
    assert weights(ones, twos, 6) == [0, 1, 2, 3, 0, 0]


def weights(ones: int, twos: int, dim: int) -> list[int]:
    return [(ones >> place & 1) + 2 * (twos >> place & 1) for place in range(dim)]


@pytest.mark.parametrize("least_asked", [0.0, 0.1])
def test_a_model_that_is_hardly_asked_gets_hardly_a_weight_and_changes_few(least_asked: float) -> None:
    random = np.random.default_rng(4)
    asked, other = unit(random.standard_normal((2, 512)).astype(np.float32))
    both = packed_query(np.concatenate([0.9 * asked, np.float32(least_asked) * other]))
    alone = packed_query(asked)
    assert np.bitwise_count(both[1:, 8:]).sum() <= 50 * least_asked
    assert np.bitwise_count(both[:, :8] ^ alone).sum() <= 800 * least_asked


def test_a_zero_query_weighs_nothing() -> None:
    assert packed_query(np.zeros(70, np.float32)).tolist() == [[0, 0]] * 3


LIMITS = StoreLimits(delta_docs=8, dead_docs=4, dead_share=0.2, plans=PlanLimits(sign_rows=12, exact_rows=2))
EXACT = StoreLimits(delta_docs=8, dead_docs=4, dead_share=0.2, plans=SCAN)


def view(store: WritableStore) -> ProjectView:
    found = store.views.view("p")
    assert found is not None
    return found


def has_true_signs(store: WritableStore) -> bool:
    """True if the sign bits of every row are those of its vector."""
    shown = view(store)
    return shown.signs is not None and np.array_equal(signs(shown.signs), shown.vectors.values >> 15)


def signs(bits: SignBits) -> NDArray[np.uint64]:
    """(rows, dim), 1 for each value that is negative."""
    apart = bits.blocks[..., None] >> np.arange(64, dtype=np.uint64) & np.uint64(1)
    return apart.transpose(0, 2, 3, 1).reshape(-1, bits.blocks.shape[1])[: bits.size, :-1]


@given(st.lists(st.integers(0, 300), max_size=6), st.integers(0, 99))
def test_sign_bits_of_an_older_view_stay_as_they_are(appended: list[int], seed: int) -> None:
    """Rows that are appended lie in the same words."""
    vectors = np.random.default_rng(seed).standard_normal((sum(appended), 3)).astype(np.float16).view(np.uint16)
    older = [SignBits.of(vectors[:0])]
    for count in appended:
        older.append(older[-1].extended(vectors[older[-1].size : older[-1].size + count]))
    for bits in older:
        np.testing.assert_array_equal(signs(bits), vectors[: bits.size] >> 15)


def entries(first: int, end: int) -> list[Entry]:
    return [Entry(id=f"m{number}", seeds=(number, number + 100)) for number in range(first, end)]


def test_a_small_project_has_no_sign_bits(tmp_path: Path) -> None:
    with opened(tmp_path, limits=LIMITS) as store:
        put(store, "p", *entries(0, 5))
        ask(store, seed=1)
        assert view(store).signs is None


def test_a_project_that_grows_gets_sign_bits_beside_its_readers(tmp_path: Path) -> None:
    with opened(tmp_path, limits=LIMITS) as store:
        put(store, "p", *entries(0, 5))
        ask(store, seed=1)
        put(store, "p", *entries(5, 10))
        rebuild(store)
        assert has_true_signs(store)


def test_sign_bits_follow_writes_edits_removals_rebuilds_and_restarts(tmp_path: Path) -> None:
    with opened(tmp_path, limits=LIMITS) as store:
        put(store, "p", *entries(0, 10))
        ask(store, seed=1)
        assert has_true_signs(store)
        put(store, "p", *entries(10, 13), Entry(id="m3", seeds=(500,)))
        assert has_true_signs(store)
        store.write("p", delete_request(["m0", "m1", "m5", "m7"])).result(30)
        rebuild(store)
        assert view(store).columns.live == len(view(store).columns)
        assert has_true_signs(store)
        put(store, "p", *entries(13, 15))
        assert has_true_signs(store)
    with opened(tmp_path, limits=LIMITS) as store:
        ask(store, seed=1)
        assert has_true_signs(store)


def test_a_project_that_shrinks_gives_its_sign_bits_up(tmp_path: Path) -> None:
    with opened(tmp_path, limits=LIMITS) as store:
        put(store, "p", *entries(0, 10))
        ask(store, seed=1)
        store.write("p", delete_request([f"m{number}" for number in range(8)])).result(30)
        rebuild(store)
        assert view(store).signs is None


def test_answers_are_those_of_an_exact_scan_to_the_bit(tmp_path: Path) -> None:
    """S4-44: removed and edited memories included."""
    seen = []
    for name, limits in (("signs", LIMITS), ("exact", EXACT)):
        (tmp_path / name).mkdir()
        with opened(tmp_path / name, limits=limits) as store:
            put(store, "p", *entries(0, 30))
            store.write("p", delete_request([f"m{number}" for number in range(0, 30, 7)])).result(30)
            put(store, "p", Entry(id="m3", seeds=(3,)), Entry(id="new", seeds=(3, 4)))
            seen.append(answers(store))
            assert (view(store).signs is not None) == (name == "signs")
    assert seen[0] == seen[1]


def test_answers_are_the_same_when_words_are_searched_for_on_another_core(tmp_path: Path) -> None:
    seen = []
    for name, halved_memories in (("halved", 0), ("whole", 10**9)):
        (tmp_path / name).mkdir()
        plans = PlanLimits(sign_rows=12, exact_rows=2, halved_memories=halved_memories)
        with opened(tmp_path / name, limits=StoreLimits(delta_docs=8, plans=plans)) as store:
            put(store, "p", *entries(0, 30))
            seen.append(answers(store))
    assert seen[0] == seen[1]


def test_a_filter_is_exact_under_sign_bits(tmp_path: Path) -> None:
    """S4-30."""
    with opened(tmp_path, limits=LIMITS) as store:
        put(store, "p", *entries(0, 10), *(Entry(id=f"t{at}", seeds=(at,), tags=("java",)) for at in range(5)))
        found = ask(store, seed=1, where=Filter(tags=("java",)), pool=4)
        assert len(found) == 4
        assert all(memory_id.startswith("t") for memory_id in found.memory_id)


def test_a_filter_that_is_asked_again_sees_what_was_written_meanwhile(tmp_path: Path) -> None:
    """A view keeps which memories pass; the next one begins without."""
    java = Filter(tags=("java",))
    with opened(tmp_path, limits=LIMITS) as store:
        put(store, "p", Entry(id="one", seeds=(1,), tags=("java",)), Entry(id="two", seeds=(2,)))
        assert [set(ask(store, seed=1, where=java).memory_id) for _ in range(2)] == [{"one"}] * 2
        put(store, "p", Entry(id="three", seeds=(3,), tags=("java",)))
        assert set(ask(store, seed=1, where=java).memory_id) == {"one", "three"}
        store.write("p", delete_request(["one"])).result(30)
        assert set(ask(store, seed=1, where=java).memory_id) == {"three"}


def test_of_many_filters_the_last_ones_are_kept() -> None:
    view = view_of(np.ones((3, 2), np.float32), [1] * 3, SCAN)
    filters = [Filter(tags=(str(number),)) for number in range(5)]
    for number, where in enumerate(filters):
        view.kept_flags.keep(where, np.full(3, number, np.uint8))
    kept = [view.kept_flags.of(where) for where in filters]
    assert [None if flags is None else flags.tolist() for flags in kept] == [None, *([n] * 3 for n in range(1, 5))]
    assert replace(view, seq=2).kept_flags.of(filters[-1]) is None
