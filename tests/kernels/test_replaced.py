"""Notes that tell a change and what they replace, against the twin."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from hummock_kernels import reference
from hummock_kernels import replaced as kernel
from hummock_kernels.pool import ROW
from tests.kernels.test_cosine import as_halves
from tests.kernels.test_mmr import QUARTERS

TELLS, ASKS, DATED = 1, 2, 4
NOTE, MODEL = 0, 1
RULE = kernel.Replacing(
    traits=TELLS | ASKS, tells=TELLS, dated=DATED, note=NOTE, model=MODEL, least_age_s=2.0, about_as_much=0.25,
    one_thing=0.25, fitting=0.5, bearing=0.5,
)  # fmt: skip


@given(st.data(), st.integers(0, 8), st.integers(1, 4))
def test_the_pairs_equal_their_twin(data: st.DataObject, n: int, dim: int) -> None:
    candidates = np.zeros(n, ROW)
    few = {"kind": 1, "origin": 1, "traits": 7, "speaker": 2, "create_time": 6}
    for name, most in few.items():
        candidates[name] = data.draw(hnp.arrays(np.int64, n, elements=st.integers(0, most)))
    times = st.integers(0, 6).map(float) | st.just(np.nan)
    candidates["event_time"] = data.draw(hnp.arrays(np.float64, n, elements=times))
    vectors = data.draw(hnp.arrays(np.float32, (n, dim), elements=QUARTERS))
    if n and data.draw(st.booleans()):
        vectors[data.draw(st.integers(0, n - 1))] = np.nan
    own = data.draw(hnp.arrays(np.int64, n, elements=st.integers(-1, n - 1)))
    writers = data.draw(hnp.arrays(np.uint32, st.sampled_from([0, n]), elements=st.integers(0, 2)))
    rows = np.array(data.draw(st.permutations(range(n))), np.int64)[: data.draw(st.integers(0, n))]
    relevance = data.draw(hnp.arrays(np.float32, len(rows), elements=st.integers(0, 4).map(np.float32)))
    arguments = (as_halves(vectors), own, candidates, writers, rows, relevance, RULE)
    for found, expected in zip(kernel.replaced(*arguments), reference.replaced(*arguments), strict=True):
        np.testing.assert_array_equal(found, expected)
