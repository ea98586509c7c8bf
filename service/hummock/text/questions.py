"""Texts that ask something."""

import re

_ASKS = re.compile(r"[?？][\s\"'”’」』)）]*\Z")
_END_CHARACTERS = 16


def asks(text: str) -> bool:
    """Whether a text ends in a question, so that its answer is to be expected in what is said next."""
    return _ASKS.search(text, max(0, len(text) - _END_CHARACTERS)) is not None
