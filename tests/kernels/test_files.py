"""The order by files against the twin."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hummock_kernels import files, reference

SHARES = files.FileShares(0.05, 3, 0.85, 0.05)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2), st.integers(0, 200)), max_size=24), st.data())
def test_order_by_files_equals_its_twin(candidates: list[tuple[int, int, int]], data: st.DataObject) -> None:
    rows = np.array(data.draw(st.permutations(range(len(candidates)))), np.int64)
    rows = rows[: data.draw(st.integers(0, len(rows)))]
    file = np.array([file for file, _, _ in candidates], np.uint32)
    name = np.array([name for _, name, _ in candidates], np.uint64)
    # Roots, so that none is by chance a sum of others.
    relevance = np.sort(np.sqrt(np.array([candidates[row][2] / 200 for row in rows], np.float32)))[::-1].copy()
    score = relevance * np.float32(0.5)
    for column in (rows, file, name, relevance, score):
        column.flags.writeable = False
    found = files.order_by_files(rows, relevance, score, file, name, SHARES)
    twin = reference.order_by_files(rows, relevance, score, file, name, SHARES)
    assert len(found[0]) == len(twin[0])
    # Where two are equal but for rounding either may come first.
    np.testing.assert_allclose(found[1], twin[1], rtol=1e-5, atol=1e-6)
    by_place = [np.empty(len(found[0]), np.float32) for _ in range(2)]
    for (order, raised, _), out in zip((found, twin), by_place, strict=True):
        assert sorted(order.tolist()) == list(range(len(order)))
        out[order] = raised
    np.testing.assert_allclose(by_place[0], by_place[1], rtol=1e-5, atol=1e-6)


def test_nothing_and_one_of_a_file_stay_as_they_are() -> None:
    none, one = np.empty(0, np.int64), np.zeros(1, np.int64)
    empty, value = np.empty(0, np.float32), np.ones(1, np.float32)
    file, name = np.ones(1, np.uint32), np.ones(1, np.uint64)
    assert len(files.order_by_files(none, empty, empty, file, name, SHARES)[0]) == 0
    assert len(files.order_by_files(one, value, value, file, name, SHARES)[0]) == 0


def test_equal_ones_keep_their_order() -> None:
    rows, value = np.arange(4), np.full(4, 0.5, np.float32)
    file, name = np.array([1, 2, 1, 2], np.uint32), np.ones(4, np.uint64)
    order, _, _ = files.order_by_files(rows, value, value, file, name, SHARES)
    assert order.tolist() == [0, 1, 2, 3]
