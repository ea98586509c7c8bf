"""Sorted index of the times of the events that memories describe: an interval is two look-ups."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hummock.store.views.columns import Columns

_FEWEST_BEHIND = 4096
_BEHIND_ONE_IN = 16
"""Memories newer than the index are scanned; above this number and this share of all, the index is rebuilt."""

Ordinals = NDArray[np.int64]


def event_times(columns: Columns, first: int = 0) -> NDArray[np.float64]:
    """Event time of each memory from ordinal `first` on, Unix seconds; else a turn's creation time, or NaN."""
    event_time = columns.event_time[first:]
    is_untold = np.isnan(event_time) & (columns.session[first:] != 0)
    return np.where(is_untold, columns.create_time[first:], event_time)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Order:
    """Index of the memories with a time among the first `size`."""

    times: NDArray[np.float64]  # (m,) float64, ascending.
    ordinals: NDArray[np.int32]  # (m,) int32 of the same memories.
    size: int  # Number of memories indexed; higher ordinals are not included.


_NO_ORDER = _Order(times=np.empty(0, np.float64), ordinals=np.empty(0, np.int32), size=0)


class EventTimes:
    """Finds memories by the times of their events. Shared by the views of one lineage.

    The index is built when a query first names a time, and again when too many memories are newer. Thread-safe: it
    is replaced atomically, and the ordinals of a lineage are stable.
    """

    __slots__ = ("_order",)

    def __init__(self) -> None:
        self._order = _NO_ORDER

    def between(self, columns: Columns, start: float, end: float) -> Ordinals:
        """Ordinals with times from `start` to `end`, exclusive, Unix seconds or infinite; removed ones too."""
        order = self._of(columns)
        first, last = np.searchsorted(order.times, (start, end))
        found = order.ordinals[first:last].astype(np.int64)
        if order.size >= len(columns):
            return found[found < len(columns)]
        newer = event_times(columns, order.size)
        return np.concatenate([found, order.size + np.flatnonzero((newer >= start) & (newer < end))])

    def _of(self, columns: Columns) -> _Order:
        order = self._order
        behind = len(columns) - order.size
        if behind > max(_FEWEST_BEHIND, len(columns) // _BEHIND_ONE_IN):
            times = event_times(columns)
            ordinals = np.flatnonzero(~np.isnan(times)).astype(np.int32)
            places = np.argsort(times[ordinals], kind="stable")
            order = _Order(times=times[ordinals][places], ordinals=ordinals[places], size=len(columns))
            self._order = order
        return order
