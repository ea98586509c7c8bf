"""Which keywords a learner may give: what it says is text of others, and is checked as such."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from hummock.core.learning import MAX_KEYWORD_CHARACTERS
from hummock.core.learning_events import KeywordUpdate
from hummock.ports.learner import EntryText
from hummock.text.normalise import prose

MAX_NEW_KEYWORDS = 10
"""For an entry at once."""


def checked(given: Iterable[KeywordUpdate], entries: Sequence[EntryText]) -> tuple[KeywordUpdate, ...]:
    """What is learnt of what a learner says of these entries, in their order; nothing where it read one in vain.

    What it says of another entry is left out. A keyword is one line of at most MAX_KEYWORD_CHARACTERS with a letter or
    digit in it; it says something that neither the title nor a keyword says already, whatever the case; and the first
    MAX_NEW_KEYWORDS of an entry count.
    """
    said: dict[str, list[str]] = {}
    for update in given:
        said.setdefault(update.memory_id, []).extend(update.keywords)
    return tuple(
        KeywordUpdate(memory_id=entry.memory_id, keywords=tuple(_new(said[entry.memory_id], entry)))
        for entry in entries
        if entry.memory_id in said
    )


def _new(said: Iterable[str], entry: EntryText) -> Iterator[str]:
    known = {prose(known) for known in (entry.title, *entry.keywords)}
    count = 0
    for keyword in said:
        line = " ".join(keyword.split())
        normal = prose(line)
        if count == MAX_NEW_KEYWORDS:
            return
        # What cannot be printed cannot be seen by whoever looks the keywords through.
        is_fit = 0 < len(line) <= MAX_KEYWORD_CHARACTERS and line.isprintable() and any(map(str.isalnum, line))
        if is_fit and normal not in known:
            known.add(normal)
            count += 1
            yield line
