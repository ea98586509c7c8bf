"""The finished prompt: a section put into what the caller says to the model."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from hummock.core.prompt import PromptMessage, PromptRole

_SEPARATOR: Final = "\n\n---\n\n"


def joined(original: str, section: str) -> str:
    """The original, a rule, the section; an empty one leaves the other untouched."""
    return _SEPARATOR.join(part for part in (original, section) if part)


def conversation(
    persona: str,
    stable: str,
    history: Iterable[PromptMessage],
    memories: str,
    current: PromptMessage,
) -> tuple[PromptMessage, ...]:
    """The messages of a turn: persona, memories that stay, history by time, memories of this turn, the user's message.

    Args:
        persona: Empty for none.
        stable: What stands before the history; empty for nothing.
        history: Those whose id came before, or is the current message's, are left out. One without a time is as old as
            the one before it; equal times keep their order.
        memories: What stands behind the history; empty for nothing.
        current: The last message.
    """
    system = [PromptMessage(role=PromptRole.SYSTEM, content=text) for text in (persona, stable) if text]
    behind = [PromptMessage(role=PromptRole.SYSTEM, content=memories)] if memories else []
    return (*system, *_by_time(_once(history, current.id)), *behind, current)


def _once(history: Iterable[PromptMessage], current_id: str) -> list[PromptMessage]:
    seen = {current_id}
    kept = []
    for message in history:
        if not message.id or message.id not in seen:
            kept.append(message)
        seen.add(message.id)
    return kept


def _by_time(history: Iterable[PromptMessage]) -> list[PromptMessage]:
    dated = []
    last = float("-inf")
    for message in history:
        last = last if message.send_time is None else message.send_time
        dated.append((last, message))
    return [message for _, message in sorted(dated, key=lambda each: each[0])]
