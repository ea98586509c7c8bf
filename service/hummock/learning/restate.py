"""Turns in the learning log as they are said now, where a message was changed or deleted."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from hummock.core.learning import TurnObserved
from hummock.core.session import PromptRole, SessionMessage
from hummock.ports.learning import LearningUnit
from hummock.text.normalise import text_hash

_EVENTS_AT_ONCE = 64


def restate(
    learning: LearningUnit, session_id: str, before: SessionMessage, content: str, used_ids: Sequence[str] | None = None
) -> None:
    """Lets the turn that a message was observed in quote what it says now. What was counted stays counted.

    Args:
        learning: The log; nothing happens where it does not have the turn.
        session_id: The session.
        before: The message as it was.
        content: What it says now; empty where it was deleted.
        used_ids: Memories that a new answer rests on; None leaves them.
    """
    if before.content == content and used_ids is None:
        return
    found, last = None, learning.state().events
    while last > 0:
        first = max(0, last - _EVENTS_AT_ONCE)
        logged = learning.events(first, last - first)
        said = [one for one in logged if one.time >= before.send_time]
        found = next((one for one in said if _quotes(one.event, session_id, before)), found)
        last = first if len(said) == len(logged) else 0
    if found is not None and isinstance(found.event, TurnObserved):
        learning.rewrite(found.number, _restated(found.event, before.role, content, used_ids))


def _quotes(event: object, session_id: str, message: SessionMessage) -> bool:
    if not isinstance(event, TurnObserved) or event.scope != session_id:
        return False
    if message.role is PromptRole.USER:
        return event.user_text == message.content
    return message.role is PromptRole.ASSISTANT and event.assistant_hash == text_hash(message.content, is_code=False)


def _restated(event: TurnObserved, role: PromptRole, content: str, used_ids: Sequence[str] | None) -> TurnObserved:
    if role is PromptRole.USER:
        return replace(event, user_text=content)
    kept = event.used_ids if used_ids is None else tuple(used_ids)
    if not content:
        return replace(event, assistant_hash=b"", used_ids=())
    return replace(event, assistant_hash=text_hash(content, is_code=False), used_ids=kept)
