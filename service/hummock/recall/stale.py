"""The degradation of an answer from memory, while the store cannot be reached."""

from __future__ import annotations

import math
from collections.abc import Callable

from hummock.core.recall import Degradation
from hummock.ports.store import LastSeen

STALE = "STALE"


def stale_note(last_seen: LastSeen) -> Callable[[str, int], Degradation]:
    """A function that makes the degradation, given the project and the number of hits that could not be shown."""

    def note(project: str, missing: int) -> Degradation:
        seq, age_s = last_seen.seen(project)
        message = (
            f"the database cannot be reached; this is what was seen last of the project, as of seq {seq}, "
            f"{math.ceil(age_s)} s old at most"
        )
        if missing:
            message += f"; {missing} hits are left out, for their texts are not in memory"
        return Degradation(path="memories", reason=STALE, message=message)

    return note
