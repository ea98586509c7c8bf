"""Decay against its twin."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from hummock_kernels import decay, reference

SIMILARITIES = st.floats(-1, 1, width=32) | st.just(np.nan)
AGES = st.floats(-10, 1e5)


def decay_one(
    similarity: float, age_days: float, half_life_days: float = 14.0, exempt: int = 0, rate: float = decay.NATURAL_RATE
) -> float:
    scores = decay.decay_scores(
        np.array([similarity], np.float32),
        np.array([age_days], np.float64),
        half_life_days,
        np.array([exempt], np.uint8),
        rate,
    )
    return float(scores[0])


@given(st.data(), st.integers(0, 10), st.sampled_from([0.5, 14.0, math.inf]), st.sampled_from([1.0, math.log(2)]))
def test_decay_equals_its_twin(data: st.DataObject, n: int, half_life_days: float, rate: float) -> None:
    similarity = data.draw(hnp.arrays(np.float32, n, elements=SIMILARITIES))
    ages = data.draw(hnp.arrays(np.float64, n, elements=AGES))
    exempt = data.draw(hnp.arrays(np.uint8, n, elements=st.integers(0, 1)))
    for array in (similarity, ages, exempt):
        array.flags.writeable = False
    arguments = (similarity, ages, half_life_days, exempt, rate)
    # Two implementations of the logarithm may differ in the last bit.
    np.testing.assert_allclose(
        decay.decay_scores(*arguments), reference.decay_scores(*arguments), rtol=1e-14, atol=1e-15
    )


def test_after_one_half_life_the_default_leaves_a_factor_e() -> None:
    """S4-29, 1.1-3."""
    assert math.exp(decay_one(0.5, 14.0)) == pytest.approx(0.5 * math.exp(-1))


def test_a_true_half_life_leaves_one_half() -> None:
    """1.1-3."""
    assert math.exp(decay_one(0.5, 14.0, rate=decay.TRUE_HALF_LIFE_RATE)) == pytest.approx(0.25)


def test_memories_of_four_years_still_have_an_order() -> None:
    """1.1-3: exp(-1500/14) is zero in float32."""
    assert decay_one(0.9, 1500.0) > decay_one(0.9, 1500.5) > -math.inf


def test_a_memory_from_the_future_has_age_zero() -> None:
    """1.1-3."""
    assert decay_one(0.5, -3.0) == decay_one(0.5, 0.0)


def test_an_exempt_memory_does_not_age() -> None:
    """1.1-3."""
    assert decay_one(0.5, 900.0, exempt=1) == decay_one(0.5, 0.0)


@pytest.mark.parametrize("similarity", [0.0, -0.3, math.nan])
def test_nothing_similar_scores_minus_infinity(similarity: float) -> None:
    assert decay_one(similarity, 0.0, exempt=1) == -math.inf
