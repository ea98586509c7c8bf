"""Cursor over the rows of a table in the order of their keys; an engine's `Cursor`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Self

from hummock.store.postgresql.exchange import int4

if TYPE_CHECKING:
    from hummock.store.postgresql.transaction import Row, RowTable, RowTransaction

_FEW, _MANY = 16, 8192  # Rows read first and at most per statement: an iteration that continues is likely to go far.
_TIMES = 8


class RowCursor:
    """Cursor over the rows of one project, or over those of no project; it never leaves them."""

    def __init__(self, transaction: RowTransaction, table: RowTable) -> None:
        self._transaction = transaction
        self._table = table
        self._project = 0 if table.is_shared or len(transaction.numbers) != 1 else transaction.numbers[0]
        self._rows: list[Row] = []
        self._at = -1
        self._most = _FEW
        self._is_all_ahead = True  # Whether no row follows those that were read.

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *args: object) -> None:
        self._rows, self._at = [], -1

    def set_range(self, key: bytes) -> bool:
        project = self._table.project_of(key)
        if project != self._project and not self._table.is_shared:
            if project not in self._transaction.numbers and self._project:
                # The key is after all rows of the entered project, or before them.
                return project < self._project and self.first()
            self._project = project
        self._most = _FEW
        ahead = self._transaction.rows_ahead(self._table, key)
        if ahead is None:
            return self._ahead(self._table.up_from, key)
        self._rows, self._is_all_ahead = ahead
        self._at = 0 if self._rows else -1
        return bool(self._rows)

    def first(self) -> bool:
        self._most = _FEW
        return self._ahead(self._table.up_from, b"")

    def last(self) -> bool:
        self._most = _FEW
        return self._back(self._table.down_from_end, ())

    def next(self) -> bool:
        if self._at < 0:
            return self.first()
        if self._at + 1 < len(self._rows):
            self._at += 1
            return True
        if self._is_all_ahead:
            self._at = -1
            return False
        self._most = min(self._most * _TIMES, _MANY)
        return self._ahead(self._table.up, self._rows[-1][0])

    def prev(self) -> bool:
        if self._at < 0:
            return self.last()
        if self._at > 0:
            self._at -= 1
            return True
        self._most = min(self._most * _TIMES, _MANY)
        return self._back(self._table.down, (self._rows[0][0],))

    def key(self) -> bytes:
        return self._rows[self._at][0] if self._at >= 0 else b""

    def value(self) -> bytes:
        return self._rows[self._at][1] if self._at >= 0 else b""

    def item(self) -> tuple[bytes, bytes]:
        return self._rows[self._at] if self._at >= 0 else (b"", b"")

    def iternext(self, keys: bool = True, values: bool = True) -> Iterator[Any]:
        is_there = self._at >= 0 or self.first()
        while is_there:
            yield self.item() if keys and values else self.key() if keys else self.value()
            is_there = self.next()

    def iterprev(self, keys: bool = True, values: bool = True) -> Iterator[Any]:
        is_there = self._at >= 0 or self.last()
        while is_there:
            yield self.item() if keys and values else self.key() if keys else self.value()
            is_there = self.prev()

    def getmulti(self, keys: Sequence[bytes]) -> list[tuple[bytes, bytes]]:
        return self._transaction.several(self._table, keys)

    def putmulti(self, items: Sequence[tuple[bytes, bytes]]) -> None:
        for key, value in items:
            self._transaction.put(key, value, db=self._table)

    def _ahead(self, statement: bytes, key: bytes) -> bool:
        self._rows = self._transaction.rows(statement, self._table, (int4(self._project), key), self._most)
        self._is_all_ahead = len(self._rows) < self._most
        self._at = 0 if self._rows else -1
        return bool(self._rows)

    def _back(self, statement: bytes, key: tuple[bytes, ...]) -> bool:
        self._rows = self._transaction.rows(statement, self._table, (int4(self._project), *key), self._most)[::-1]
        self._is_all_ahead = False
        self._at = len(self._rows) - 1
        return bool(self._rows)
