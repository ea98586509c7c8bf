"""Memories quarantined for review, stored apart from others: no view, search or export includes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from hummock.core.review import Quarantined, QuarantinedPage
from hummock.ports.writes import Review, ReviewWork
from hummock.store.tables import integrity, keys
from hummock.store.tables.engine import Engine, Tables, Transaction
from hummock.store.tables.lookups import project_number
from hummock.store.tables.record_codec import decode_held, encode

_HELD = "what is held for review under an id"


class ReviewUnit(ReviewWork):
    """Memories held for review within a unit of work."""

    def __init__(self, txn: Transaction, tables: Tables, number: int, begin: Callable[[], None]) -> None:
        """Arguments as for the unit of work; `begin` is called before any change."""
        self._txn = txn
        self._table = tables.review
        self._number = number
        self._begin = begin
        self.has_put = False
        self.has_removed = False

    def get(self, memory_id: str) -> Quarantined | None:
        key = keys.name_key(self._number, memory_id)
        value = self._txn.get(key, db=self._table)
        return None if value is None else integrity.decoded(_HELD, key, value, decode_held)

    def put(self, held: Quarantined) -> None:
        self._begin()
        key = keys.name_key(self._number, held.memory.id)
        self._txn.put(key, integrity.seal(key, encode(held)), db=self._table)
        self.has_put = True

    def delete(self, memory_id: str) -> bool:
        self._begin()
        is_there = self._txn.pop(keys.name_key(self._number, memory_id), db=self._table) is not None
        self.has_removed |= is_there
        return is_there


class ReviewReads(Review):
    """Memories held for review, read from the tables."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._table = engine.tables.review

    def get(self, project: str, ids: Sequence[str]) -> list[Quarantined | None]:
        with self._engine.answering(project) as txn:
            number = project_number(txn, self._engine, project)
            if number is None:
                return [None] * len(ids)
            values = [(key, txn.get(key, db=self._table)) for key in keys.name_keys(number, ids)]
            return [
                None if value is None else integrity.decoded(_HELD, key, value, decode_held) for key, value in values
            ]

    def page(self, project: str, after: str, limit: int) -> QuarantinedPage:
        with self._engine.answering(project) as txn:
            found = list(islice(self._behind(txn, project, after), limit + 1))
        held = tuple(found[:limit])
        return QuarantinedPage(held=held, next_after=held[-1].memory.id if len(found) > limit else "")

    def _behind(self, txn: Transaction, project: str, after: str) -> Iterator[Quarantined]:
        number = project_number(txn, self._engine, project)
        if number is None:
            return
        start, prefix = keys.name_key(number, after) if after else b"", keys.project_prefix(number)
        found = integrity.sound(txn, self._table, prefix, _HELD, decode_held, self._engine.damage, start)
        yield from (held for key, held in found if key != start)
