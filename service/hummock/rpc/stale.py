"""Calls that allow it are answered from memory while the store cannot be reached."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from hummock.core.errors import SeqNotReached, StoreUnreachable

if TYPE_CHECKING:  # a reader has nothing but its recall, and loads nothing else
    from hummock.recall.cache import CachedRecall
    from hummock.render.pipeline import Render
    from hummock.render.search import Search

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class FromMemory:
    """Answers from memory with the data read last, and marks each answer as stale."""

    away: Callable[[], StoreUnreachable | None]
    """Why the store cannot be reached; None while it can, as far as is known."""
    recall: CachedRecall
    render: Render
    search: Search


def answered(
    from_memory: FromMemory | None,
    fresh: Callable[[], Answer],
    stale: Callable[[FromMemory], Answer],
    *,
    is_allowed: bool,
) -> Answer:
    """The store's answer, or one from memory if the store cannot be reached and the caller allows it.

    Once the store is known to be away, calls do not wait for it.

    Raises: StoreUnreachable: nothing answers; and what the store's answer raises.
    """
    if from_memory is None or not is_allowed:
        return fresh()
    away = from_memory.away()
    if away is None:
        try:
            return fresh()
        except StoreUnreachable as error:
            away = error
    try:
        return stale(from_memory)
    except (SeqNotReached, StoreUnreachable) as error:
        raise away from error
