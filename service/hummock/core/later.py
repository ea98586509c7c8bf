"""What is not known yet, and what will be made of it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

Result = TypeVar("Result", covariant=True)
Next = TypeVar("Next")


@dataclass(frozen=True, slots=True, eq=False)
class Later(Generic[Result]):
    """The result of a call that has done its part, while another thread does its own: nobody need stand by.

    Attributes:
        awaited: What the other thread is to say.
        finish: Makes the result of that. Quick, for it runs wherever somebody waits.
    """

    awaited: Future[Any]
    finish: Callable[[Any], Result]

    def then(self, make: Callable[[Result], Next]) -> Later[Next]:
        """What is made of the result."""
        return Later(self.awaited, lambda said: make(self.finish(said)))

    def result(self) -> Result:
        """Waits for it. Raises what the other thread says that went wrong."""
        return self.finish(self.awaited.result())
