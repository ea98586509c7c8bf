"""Which older notes a newer one may replace, by when, by whom and for whom they were told."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hummock.core.memory import Origin


class Told(NamedTuple):
    """Columns of notes, all of one shape: when they were told (Unix seconds), their origin, speaker and writer.

    A speaker or writer of 0 is nobody in particular: of writers, the one who vouches for all.
    """

    time: NDArray[np.float64]
    origin: NDArray[Any]
    speaker: NDArray[Any]
    writer: NDArray[Any]


def may_replace(newer: Told, older: Told, least_age_s: float) -> NDArray[np.bool_]:
    """Whether each newer note may replace each older one; the shapes are broadcast.

    The older one was told so much earlier, both by the user or both by the model, and by the same speaker if both have
    one. What a writer says that nobody vouches for replaces only what that writer has said.
    """
    may_be: NDArray[np.bool_] = older.time <= newer.time - least_age_s
    may_be &= (older.origin == Origin.AI_OUTPUT) == (newer.origin == Origin.AI_OUTPUT)
    may_be &= (older.speaker == newer.speaker) | (older.speaker == 0) | (newer.speaker == 0)
    may_be &= (newer.writer == 0) | (older.writer == newer.writer)
    return may_be
