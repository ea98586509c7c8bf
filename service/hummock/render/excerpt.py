"""Excerpts of memories that are too long for a text: the lines that bear on the query, as many as there is room for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from hummock.render.passage import Passage, passage_of
from hummock.render.section import Block, Frame

WHOLE: Final = "in full"
GAP: Final = "..."
"""Stands for text before an excerpt."""

_BEGINNING: Final = "cut to its beginning"
_BEARING: Final = "cut to the lines that bear on the query"
_SHORTEST_COLUMNS: Final = 160
_COLUMNS_A_TOKEN: Final = 4
"""At most, so that the first excerpt tried is long enough."""

_LESS: Final = 0.9
"""Largest share of a width with too many tokens that is tried next."""


def how_cut(shown: Passage) -> str:
    """How much of a text a passage is, for people."""
    if shown.is_whole:
        return WHOLE
    return _BEARING if shown.is_found else _BEGINNING


def fitted(body: str, frame: Frame, room: int, write: Callable[[str], str]) -> Block:
    """The block of as long a passage of a text as has at most `room` tokens, marked where it is cut.

    Even the shortest may have more: it has some 160 columns.

    Args:
        body: Cleaned.
        frame: Has the query, the counter and the words of the marks.
        room: Tokens of the block; may be below 0.
        write: Makes the block's text of the passage.
    """
    limit = max(room * _COLUMNS_A_TOKEN, _SHORTEST_COLUMNS)
    while True:
        shown = passage_of(body, frame.query, limit)
        parts = (GAP * shown.is_cut_before, shown.text.strip("\n"), "" if shown.is_whole else frame.wording.cut)
        text = write("\n".join(part for part in parts if part))
        token_count = frame.counter.count(text)
        if token_count <= room or limit <= _SHORTEST_COLUMNS:
            return Block(text, how_cut(shown), token_count)
        limit = max(int(limit * min(room / token_count, _LESS)), _SHORTEST_COLUMNS)
