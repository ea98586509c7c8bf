"""Updates turns in the learning log after a message was changed or deleted."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Sequence
from typing import TypeAlias

from msgspec.structs import replace

from hummock.core.learning import LoggedEvent, TurnObserved
from hummock.core.session import PromptRole, SessionMessage
from hummock.ports.learning import LearningUnit
from hummock.text.normalise import text_hash

Change: TypeAlias = tuple[SessionMessage, str]
"""A message before the change, and its new content: empty if it was deleted."""

_Waiting: TypeAlias = dict[tuple[PromptRole, str | bytes], deque[Change]]
"""Changes whose turn was not found yet, by the quoted text or hash; oldest first."""

_EVENTS_AT_ONCE = 64

_EVENTS_BEHIND = 256
"""Events searched after a message: its turn is logged right after it, apart from events of concurrent calls."""

_MOST_EVENTS = 16_384
"""Events that one call reads while all other writes wait: 4 us each. It is enough for 256 turns far from each other."""


def restate(
    learning: LearningUnit, session_id: str, changes: Sequence[Change], used_ids: Sequence[str] | None = None
) -> None:
    """Update the turns that quote messages changed in this order of time. Counts do not change.

    A turn not found within `_EVENTS_BEHIND` events of its message is not updated. `used_ids` are the memories that a
    new answer is based on; None leaves them.
    """
    changed = [one for one in changes if one[0].content != one[1] or used_ids is not None]
    waiting: _Waiting = defaultdict(deque)
    for one in changed:
        waiting[_quoted(one[0])].append(one)
    left = {message.id for message, _ in changed}
    read, read_count, last = 0, 0, learning.state().events if changed else 0
    for message, _ in changed:
        if message.id not in left:
            continue
        read = _first_since(learning, message.send_time, read, last)
        until = min(last, read + _EVENTS_BEHIND)
        while message.id in left and read < until and read_count < _MOST_EVENTS:
            for logged in learning.events(read, _EVENTS_AT_ONCE):
                left -= _restated(learning, session_id, logged, waiting, used_ids)
            read, read_count = read + _EVENTS_AT_ONCE, read_count + _EVENTS_AT_ONCE


def _first_since(learning: LearningUnit, time: float, first: int, last: int) -> int:
    """How many events are older than this time; at least `first`, at most `last`."""

    def is_since(number: int) -> bool:
        logged = learning.events(number, 1)
        return bool(logged) and logged[0].time >= time

    if first >= last or is_since(first):
        return first
    return bisect_left(range(last), True, lo=first, key=is_since)


def _quoted(message: SessionMessage) -> tuple[PromptRole, str | bytes]:
    """Return what a turn stores of a message: the user's text, or the hash of an answer."""
    is_answer = message.role is PromptRole.ASSISTANT
    return message.role, text_hash(message.content, is_code=False) if is_answer else message.content


def _restated(
    learning: LearningUnit, session_id: str, logged: LoggedEvent, waiting: _Waiting, used_ids: Sequence[str] | None
) -> set[str]:
    """Rewrites an event that quotes messages; the ids of these, which wait no longer."""
    event = logged.event
    if not isinstance(event, TurnObserved) or event.scope != session_id:
        return set()
    found = set()
    for quoted in ((PromptRole.USER, event.user_text), (PromptRole.ASSISTANT, event.assistant_hash)):
        of_them = waiting.get(quoted)
        if of_them and of_them[0][0].send_time <= logged.time:
            message, content = of_them.popleft()
            event = _saying(event, message.role, content, used_ids)
            found.add(message.id)
    if found:
        learning.rewrite(logged.number, event)
    return found


def _saying(event: TurnObserved, role: PromptRole, content: str, used_ids: Sequence[str] | None) -> TurnObserved:
    if role is PromptRole.USER:
        return replace(event, user_text=content)
    kept = event.used_ids if used_ids is None else tuple(used_ids)
    if not content:
        return replace(event, assistant_hash=b"", used_ids=())
    return replace(event, assistant_hash=text_hash(content, is_code=False), used_ids=kept)
