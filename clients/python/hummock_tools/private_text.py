"""What a user marks as private in a conversation: hooks do not send it, and imports do not store it."""

from __future__ import annotations

import re

_TAG = re.compile(r"<(/?)private(?:[ \t\r\n][^<>]*)?>", re.IGNORECASE | re.ASCII)


def without_private(text: str) -> str:
    """The text without what stands in `<private>`, and without white space around it.

    Tags may be nested, and one that is not closed reaches to the end. `hummock-hook` takes out the same.
    """
    kept, depth, start = [], 0, 0
    for tag in _TAG.finditer(text):
        is_end = bool(tag[1])
        if is_end and depth == 0:
            continue
        if depth == 0:
            kept.append(text[start : tag.start()])
        depth += -1 if is_end else 1
        start = tag.end()
    if depth == 0:
        kept.append(text[start:])
    return "".join(kept).strip()
