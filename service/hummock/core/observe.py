"""Turns that are over, for those who learn from them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ObserveCommand:
    """A turn as its caller tells of it.

    Attributes:
        scope: A session's id, or empty for the project itself.
        turn: Its number in the scope, at most MAX_TURN.
        user_text: What the user said.
        assistant_text: The answer; empty when there was none.
        used_ids: Memories that the answer rests on, as the caller says; they may not exist.
        request_id: UUID; empty when repeats are turns of their own.
        fingerprint: Hash of the request but for its id.
    """

    project: str
    scope: str
    turn: int
    user_text: str
    assistant_text: str
    used_ids: tuple[str, ...]
    request_id: str
    fingerprint: bytes
