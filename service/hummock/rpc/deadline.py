"""When the caller of the call that is being worked on stops waiting."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import TypeVar

Request = TypeVar("Request")
Reply = TypeVar("Reply")

_UNTIL_S: ContextVar[float | None] = ContextVar("until_s", default=None)


def until_s() -> float | None:
    """Seconds on the monotonic clock; None without a deadline, and outside of a call."""
    return _UNTIL_S.get()


def work_until(at_s: float | None, work: Callable[[Request], Reply], request: Request) -> Reply:
    """Do the work, within which `until_s` is `at_s`."""
    token = _UNTIL_S.set(at_s)
    try:
        return work(request)
    finally:
        _UNTIL_S.reset(token)
