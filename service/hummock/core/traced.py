"""What a log may say of an unexpected error."""

from __future__ import annotations

import traceback
from pathlib import PurePath


def places_of(error: BaseException) -> list[str]:
    """The places in the code that the error came through, the outermost first.

    Its message stays out: it could hold a caller's text.
    """
    frames = traceback.extract_tb(error.__traceback__)
    return [f"{PurePath(frame.filename).name}:{frame.lineno} {frame.name}" for frame in frames]
