"""Memories whose text holds a string, found by reading the texts: slow, for what no term of the index is."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from hummock.core.memory import CodeFragment, DomainKnowledge, LearningRecord
from hummock.store.lmdb import record_codec

ReadRecords = Callable[[int], tuple[bytes, bytes]]
"""A document's memory and payload records; empty when it was removed since."""


class SubstringScan:
    """Reads texts until enough of them are found, or too much was read.

    Letters of A to Z are the same in either case; else the strings must stand in the text as they are.
    """

    def __init__(self, substrings: Sequence[str], read: ReadRecords, byte_limit: int) -> None:
        """Args: what to look for (at most 32), what reads a document, and how many bytes may be read."""
        self._wanted = [_folded(text.encode()) for text in substrings]
        self._read = read
        self._left = byte_limit
        self._known: dict[int, int] = {}

    @property
    def is_cut(self) -> bool:
        """Whether there were texts that could not be read within the limit."""
        return self._left < 0

    def first(self, docs: Sequence[int], limit: int) -> list[int]:
        """The first of these documents that hold any of the strings, in order."""
        found: list[int] = []
        for doc in docs:
            if len(found) >= limit or self.is_cut:
                break
            if self.held(doc):
                found.append(doc)
        return found

    def held(self, doc: int) -> int:
        """Bit i is set when the document holds string i; 0 for what is beyond the limit."""
        if doc not in self._known and not self.is_cut:
            self._known[doc] = self._look(doc)
        return self._known.get(doc, 0)

    def _look(self, doc: int) -> int:
        records = self._read(doc)
        self._left -= sum(map(len, records))
        # The records hold more than is searched; but what they do not hold need not be decoded.
        if self.is_cut or not self._bits(_folded(record) for record in records):
            return 0
        return self._bits(_folded(text.encode()) for text in _searched(*records))

    def _bits(self, texts: Iterator[bytes]) -> int:
        bits = 0
        for text in texts:
            for place, wanted in enumerate(self._wanted):
                if wanted in text:
                    bits |= 1 << place
        return bits


def holds_name(records: tuple[bytes, bytes], name: str) -> bool:
    """Whether a document's text holds a name as it is written, and not as a part of a longer one."""
    if not any(name.encode() in record for record in records):
        return False
    whole = re.compile(rf"(?<![A-Za-z0-9_]){re.escape(name)}(?![A-Za-z0-9_])")
    return any(whole.search(text) for text in _searched(*records))


def _folded(text: bytes) -> bytes:
    """UTF-8 with A to Z in small letters; no other character has bytes of theirs."""
    return text.lower()


def _searched(memory: bytes, payload: bytes) -> Iterator[str]:
    """What a memory is found by: not its raw text, its files, its id or its session."""
    index, body = record_codec.decode_memory(memory).memory.index, record_codec.decode_payload(payload)
    yield from (index.title, *index.tags, body.content)
    match body.detail:
        case LearningRecord(question=question, answer=answer):
            yield from (question, answer)
        case DomainKnowledge(domain=domain, aliases=aliases, summary=summary):
            yield from (domain, *aliases, summary)
        case CodeFragment(path=path, symbol=symbol):
            yield from (path, symbol)
        case None:
            pass
