"""Review: memories that were sent and are not stored until a person approves them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from msgspec import Struct

from hummock.core.memory import Draft, Memory, Origin

VOUCHED_TRUST: Final = 0.5
"""Least trust of a verified memory, whatever its origin."""

UNPROVEN_TRUST: Final = 0.4
"""Highest trust of INDEXER memories from a token without the index scope: below any vouched trust."""

_OF_NO_HAND: Final = frozenset({Origin.AI_OUTPUT, Origin.SUMMARY})
"""Origins of texts written by a model."""


class ReviewPolicy(IntEnum):
    """OFF holds nothing; HOLD holds unverified memories that read like an instruction to a model."""

    OFF = 1
    HOLD = 2


class Quarantined(Struct, array_like=True, frozen=True, kw_only=True):
    """A memory held for review under one id. It is stored as the array of its fields.

    Attributes:
        memory: The memory, with its payload and without vectors.
        families: Families of instructions that it resembles, at least one.
        hold_time: Unix seconds since which it is held.
    """

    memory: Memory
    families: tuple[str, ...]
    hold_time: float


@dataclass(frozen=True, slots=True, kw_only=True)
class QuarantinedPage:
    """Held memories ordered by the bytes of their ids; `next_after` continues after them, empty on the last page."""

    held: tuple[Quarantined, ...]
    next_after: str = ""


def is_of_no_hand(said: Draft | Memory) -> bool:
    """Whether a memory is unverified: a model wrote it, or its trust is low."""
    return said.origin in _OF_NO_HAND or said.trust < VOUCHED_TRUST


def is_note_of_agent(draft: Draft) -> bool:
    """Whether it is an agent's note for its user, with vouched trust."""
    return draft.origin is Origin.SUMMARY and draft.trust >= VOUCHED_TRUST
