"""Ageing of similarities."""

import math
from typing import Final

import numpy as np

from hummock_kernels._jit import kernel
from hummock_kernels._types import F32_1D, F64, F64_1D, OUT_F64_1D, U8_1D, Doubles, Flags, Vector

NATURAL_RATE: Final = 1.0
"""score = sim * exp(-age / half_life): after one "half-life" 0.368 of the similarity is left."""

TRUE_HALF_LIFE_RATE: Final = math.log(2.0)
"""score = sim * 2 ** (-age / half_life): after one half-life half of the similarity is left."""


@kernel(OUT_F64_1D(F32_1D, F64_1D, F64, U8_1D, F64))
def decay_scores(similarity: Vector, age_days: Doubles, half_life_days: float, exempt: Flags, rate: float) -> Doubles:
    """Logarithm of each decayed similarity: log(sim) - rate * age / half-life, all (n,) -> (n,) float64.

    `exp` of a result is the score. The logarithm keeps the order of memories so old that their scores underflow.

    Args:
        similarity: Larger is better; zero, negative and NaN give minus infinity.
        age_days: Fractional days, finite; an age below zero (a clock that ran ahead) counts as zero.
        half_life_days: Above zero; infinity switches decay off.
        exempt: Nonzero for memories that do not age.
        rate: `NATURAL_RATE` or `TRUE_HALF_LIFE_RATE`.
    """
    scores = np.empty(similarity.shape[0], np.float64)
    for i in range(similarity.shape[0]):
        if not similarity[i] > 0:
            scores[i] = -np.inf
            continue
        scores[i] = math.log(np.float64(similarity[i]))
        if exempt[i] == 0:
            scores[i] -= rate * max(age_days[i], 0.0) / half_life_days
    return scores
