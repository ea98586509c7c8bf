"""Answers that are kept for a while, and equal questions that are answered once."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from dataclasses import dataclass
from threading import Lock
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

_LARGEST_SHARE = 8
"""An answer above this part of the room is not kept: a few of them would push everybody else's out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept(Generic[Value]):
    value: Value
    nbytes: int
    expires_at: float


class AnswerCache(Generic[Key, Value]):
    """Keeps answers by key, those used last for longest, each for a fixed time. Safe to call from several threads.

    An answer that is too old goes when it is looked up; those that nobody looks up any more go with a later one that
    is put, so that what was deleted does not stay in memory for as long as there is room.
    """

    def __init__(self, *, monotonic: Callable[[], float], ttl_s: float, max_entries: int, max_bytes: int) -> None:
        """Opens an empty cache; `monotonic` gives seconds from some start."""
        self._monotonic = monotonic
        self._ttl_s = ttl_s
        self._max_entries = max_entries
        self._max_bytes = max_bytes
        self._lock = Lock()
        self._kept: OrderedDict[Key, _Kept[Value]] = OrderedDict()
        self._under_way: dict[Key, Future[Value]] = {}
        self._nbytes = 0
        self._sweep_at = monotonic() + ttl_s

    def answer(
        self,
        key: Key,
        compute: Callable[[], Value],
        *,
        is_usable: Callable[[Value], bool],
        weigh: Callable[[Value], int | None],
        patience_s: float | None = None,
    ) -> tuple[Value, bool]:
        """The answer, and whether somebody else had computed it or was doing so.

        What `compute` raises goes to all who wait for it, to each an exception of its own, and is not kept. Nor is what
        a caller computes for itself, since what was under way does not serve it.

        Args:
            key: Equal for equal questions.
            compute: Called when there is no answer and none is under way. Must not ask for the same key.
            is_usable: Whether another's answer serves this caller; if not, it is computed anew.
            weigh: Bytes of a new answer; None when it shall not be kept.
            patience_s: How long to wait for an answer that is under way; None means as long as it takes.
        """
        with self._lock:
            kept = self._find(key)
            if kept is not None and is_usable(kept):
                return kept, True
            waiting = self._under_way.get(key)
            if waiting is None:
                promised = self._under_way[key] = Future[Value]()
        if waiting is not None:
            shared = _result_of(waiting, patience_s)
            return (shared, True) if shared is not None and is_usable(shared) else (compute(), False)
        try:
            value = compute()
            nbytes = weigh(value)
        except BaseException as error:
            self._end(key)
            promised.set_exception(error)
            # The error keeps this frame alive, and would keep itself alive through it.
            del promised
            raise
        self._end(key, value, nbytes)
        promised.set_result(value)
        return value, False

    def usage(self) -> tuple[int, int]:
        """Answers kept, and their bytes."""
        with self._lock:
            return len(self._kept), self._nbytes

    def _find(self, key: Key) -> Value | None:
        kept = self._kept.get(key)
        if kept is None:
            return None
        if self._monotonic() >= kept.expires_at:
            self._drop(key)
            return None
        self._kept.move_to_end(key)
        return kept.value

    def _end(self, key: Key, value: Value | None = None, nbytes: int | None = None) -> None:
        """In one step, so that whoever asks finds the answer either under way or kept."""
        with self._lock:
            del self._under_way[key]
            if value is not None and nbytes is not None and nbytes <= self._max_bytes // _LARGEST_SHARE:
                self._keep(key, value, nbytes)

    def _keep(self, key: Key, value: Value, nbytes: int) -> None:
        now = self._monotonic()
        if now >= self._sweep_at:
            self._sweep(now)
        if key in self._kept:
            self._drop(key)
        self._kept[key] = _Kept(value=value, nbytes=nbytes, expires_at=now + self._ttl_s)
        self._nbytes += nbytes
        while len(self._kept) > self._max_entries or self._nbytes > self._max_bytes:
            self._drop(next(iter(self._kept)))

    def _sweep(self, now: float) -> None:
        for key in [key for key, kept in self._kept.items() if now >= kept.expires_at]:
            self._drop(key)
        self._sweep_at = now + self._ttl_s

    def _drop(self, key: Key) -> None:
        self._nbytes -= self._kept.pop(key).nbytes


def _result_of(waiting: Future[Value], patience_s: float | None) -> Value | None:
    """Waits for it; None where that took too long.

    Raises a copy of its exception: a caller may change what it catches, as `move_into` does.
    """
    try:
        error = waiting.exception(patience_s)
    except TimeoutError:
        return None
    if error is None:
        return waiting.result()
    kind = type(error)
    # Not copy.copy: it would call __init__ with the message instead of what the message was made of.
    own = kind.__new__(kind, *error.args)
    own.__dict__.update(error.__dict__)
    raise own from error
