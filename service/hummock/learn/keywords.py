"""Which keywords a learner may give: what it says is text of others, and is checked as such."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from hummock.core.learning import MAX_KEYWORD_CHARACTERS
from hummock.core.learning_events import KeywordUpdate
from hummock.ports.learner import EntryText
from hummock.text.common_words import CHINESE_COMMON_WORDS, ENGLISH_COMMON_WORDS
from hummock.text.normalise import prose

_WORD = re.compile(r"\w+")
_COMMON = CHINESE_COMMON_WORDS | ENGLISH_COMMON_WORDS

MAX_NEW_KEYWORDS = 10
"""For an entry at once."""


def checked(given: Iterable[KeywordUpdate], entries: Sequence[EntryText]) -> tuple[KeywordUpdate, ...]:
    """What is learnt of what a learner says of these entries, in their order; nothing where it read one in vain.

    What it says of another entry is left out. A keyword is one line of at most MAX_KEYWORD_CHARACTERS that is more than
    a character and than words that are said of anything, by which an entry would be part of every prompt; it says what
    neither the title nor a keyword says already, whatever the case; and the first MAX_NEW_KEYWORDS of an entry count.
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
        is_fit = len(line) <= MAX_KEYWORD_CHARACTERS and line.isprintable() and _says_something(normal)
        if is_fit and normal not in known:
            known.add(normal)
            count += 1
            yield line


def _says_something(normal: str) -> bool:
    words = _WORD.findall(normal)
    return sum(map(len, words)) > 1 and not all(word in _COMMON for word in words)
