"""Context of a call, for the servicers' methods."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from hummock.core.access import LOCAL, Caller
from hummock.core.deadline import NO_DEADLINE, Deadline

Reply = TypeVar("Reply")

SecondHalf: TypeAlias = Reply | Callable[[], Reply]
"""A reply, or what makes it: that runs in the lane that the method's policy names for its second half."""


@dataclass(frozen=True, slots=True)
class CallContext:
    """The second argument of every servicer's method.

    Attributes:
        caller: The authenticated caller, with its rights.
        deadline: The call's deadline, which ends early if the caller hangs up.
    """

    caller: Caller = LOCAL
    deadline: Deadline = NO_DEADLINE
