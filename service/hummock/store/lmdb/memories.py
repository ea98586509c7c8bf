"""Memories read by number, by id and in pages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import lmdb
import numpy as np
from numpy.typing import NDArray

from hummock.core.memory import DomainKnowledge, Memory, Payload
from hummock.store.lmdb import keys, record_codec
from hummock.store.lmdb.environment import Environment
from hummock.store.search.substrings import SubstringScan

Read = TypeVar("Read")


class Outdated(Exception):
    """A view names what has been removed since."""


def all_present(found: Sequence[Read | None]) -> tuple[Read, ...]:
    """What was found. Raises Outdated when something is missing."""
    present = tuple(value for value in found if value is not None)
    if len(present) < len(found):
        raise Outdated
    return present


class ProjectReading:
    """The records of one project as its transaction sees them; it lives no longer than the transaction."""

    __slots__ = ("_memory", "_number", "_payload", "_space", "_token", "txn")

    def __init__(self, environment: Environment, txn: lmdb.Transaction[bytes], number: int) -> None:
        self.txn = txn
        self._number = number
        self._space = environment.space_number
        tables = environment.tables
        self._memory, self._payload, self._token = tables.memory, tables.payload, tables.token

    def memory(self, doc: int, *, full: bool) -> Memory | None:
        """A memory, with its payload if it is asked for in full; None where there is none."""
        memory, payload = self.records(doc, full=full)
        if not memory:
            return None
        return record_codec.memory_of(memory, payload if full else None)

    def records(self, doc: int, *, full: bool) -> tuple[bytes, bytes]:
        """The bytes of a memory and, if it is asked for in full, of its payload; nothing where a write removed it."""
        key = keys.doc_key(self._number, doc)
        payload = self.txn.get(key, b"", db=self._payload) if full else b""
        return self.txn.get(key, b"", db=self._memory), payload

    def present_records(self, doc: int, *, full: bool) -> tuple[bytes, bytes]:
        """The same of a memory that must be there. Raises: Outdated."""
        records = self.records(doc, full=full)
        if not records[0]:
            raise Outdated
        return records

    def payload(self, doc: int) -> Payload | None:
        """A memory's payload, or None."""
        value = self.txn.get(keys.doc_key(self._number, doc), db=self._payload)
        return None if value is None else record_codec.decode_payload(value)

    def key_files(self, docs: Sequence[int]) -> list[str]:
        """The key files of those that are knowledge of a domain. Raises: Outdated."""
        details = (payload.detail for payload in all_present([self.payload(doc) for doc in docs]))
        return [path for detail in details if isinstance(detail, DomainKnowledge) for path in detail.key_files]

    def tokens(self, doc: int, chunk: int) -> bytes:
        """A chunk's token vectors; nothing where a write removed it, which is missed when the memory is loaded."""
        return self.txn.get(keys.chunk_key(self._number, self._space, doc, chunk), b"", db=self._token)


Docs = NDArray[np.int64]


def page_of(
    docs: Docs, after: int, limit: int, *, newest_first: bool, scan: SubstringScan | None
) -> tuple[list[int], int | None]:
    """The documents of a page, and behind which document the next one begins; None when there is no next one.

    Args:
        docs: Those that pass the filter, ascending.
        after: Where the page before ended; 0 for the first.
        limit: At least 1.
        newest_first: Whether the page goes down.
        scan: Tells which texts hold what is looked for; when it has read enough, the page ends early.
    """
    if newest_first:
        ordered = docs[: np.searchsorted(docs, after) if after else None][::-1]
    else:
        ordered = docs[np.searchsorted(docs, after, side="right") :]
    if scan is None:
        found = ordered[: limit + 1].tolist()
        return found[:limit], found[limit - 1] if len(found) > limit else None
    return _holding(ordered, after, limit, scan)


def _holding(ordered: Docs, after: int, limit: int, scan: SubstringScan) -> tuple[list[int], int | None]:
    found: list[int] = []
    read = after
    for doc in map(int, ordered):
        is_held = bool(scan.held(doc))
        if scan.is_cut or (is_held and len(found) == limit):
            return found, read
        if is_held:
            found.append(doc)
        read = doc
    return found, None
