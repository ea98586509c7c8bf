"""Futures of what is made of another future's result."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from typing import Generic, TypeVar

Said = TypeVar("Said")
Result = TypeVar("Result")


def then(awaited: Future[Said], make: Callable[[Said], Result]) -> Future[Result]:
    """A future of the value made from another future's result.

    Args:
        awaited: The other one. To cancel the new one cancels this; where its work has begun, neither is cancelled.
        make: Quick, for it runs on the thread that completes the other one.
    """
    return _Made(awaited, make)


class _Made(Future[Result], Generic[Said, Result]):
    def __init__(self, awaited: Future[Said], make: Callable[[Said], Result]) -> None:
        super().__init__()
        self._make = make
        self._awaited: Future[Said] | None = awaited
        awaited.add_done_callback(self._finish)

    def cancel(self) -> bool:
        awaited = self._awaited
        return awaited is not None and awaited.cancel()

    def _finish(self, awaited: Future[Said]) -> None:
        self._awaited = None
        # Not raised here: an error would keep this frame alive, which keeps the futures that hold it.
        error = CancelledError() if awaited.cancelled() else awaited.exception()
        if error is not None:
            self.set_exception(error)
            return
        try:
            self.set_result(self._make(awaited.result()))
        except BaseException as raised:
            self.set_exception(raised)
