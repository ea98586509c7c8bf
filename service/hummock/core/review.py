"""What is held for review: sent to be learnt, and no memory until somebody approves it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from msgspec import Struct

from hummock.core.memory import Draft, Memory, Origin

VOUCHED_TRUST: Final = 0.5
"""Below it nobody vouches for a memory, whatever its origin."""

UNPROVEN_TRUST: Final = 0.4
"""Most that is believed of INDEXER by a token that may not index: below what anybody vouches for."""

_OF_NO_HAND: Final = frozenset({Origin.AI_OUTPUT, Origin.SUMMARY})
"""Origins of what a model has written."""


class ReviewPolicy(IntEnum):
    """OFF holds nothing; HOLD holds what reads like an instruction to a model and comes from nobody's hand."""

    OFF = 1
    HOLD = 2


class Held(Struct, array_like=True, frozen=True, kw_only=True):
    """What is held under one id. It lies in the store as the array of its fields.

    Attributes:
        memory: What it would be, with its payload and without vectors.
        families: What it reads like, at least one.
        hold_time: Since when, in Unix seconds.
    """

    memory: Memory
    families: tuple[str, ...]
    hold_time: float


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldPage:
    """Some of what is held, by the bytes of their ids; `next_after` continues behind them, empty on the last page."""

    held: tuple[Held, ...]
    next_after: str = ""


def is_of_no_hand(said: Draft | Memory) -> bool:
    """Whether nobody vouches for what is said: a model wrote it, or it is hardly believed."""
    return said.origin in _OF_NO_HAND or said.trust < VOUCHED_TRUST


def is_note_of_agent(draft: Draft) -> bool:
    """Whether an agent wrote it down for whom it works for, and does not doubt it."""
    return draft.origin is Origin.SUMMARY and draft.trust >= VOUCHED_TRUST
