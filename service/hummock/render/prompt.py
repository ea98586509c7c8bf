"""The messages of a prompt around a rendered section: its history, and where the section stands among them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from msgspec import structs

from hummock.core.render import Rendered, RenderForm, RenderQuery
from hummock.core.session import (
    HISTORY_CHARACTERS,
    HISTORY_MESSAGES,
    HistoryQuery,
    PromptMessage,
    PromptRole,
    PromptTarget,
    PromptTemplate,
    SessionMessage,
)
from hummock.core.settings import HistorySettings
from hummock.memories.sessions import newest_within
from hummock.ports.sessions import Sessions
from hummock.render.section import Wording

_SEPARATOR: Final = "\n\n---\n\n"
_MOST_BYTES: Final = 8 * 1024 * 1024
"""Most bytes of stored messages that are read of a session."""


def with_history(query: RenderQuery, asked: HistoryQuery, sessions: Sessions, usual: HistorySettings) -> RenderQuery:
    """Add the messages of the query's session, as it is asked for.

    A recall in that session leaves out what the turns shown were learnt as, and what the current message and those
    after it were, unless `window_turns` is set. `usual` are the project's settings.

    Raises: SessionNotFound.
    """
    current = None
    if query.current is not None and query.current.id:
        current = sessions.message(query.project, asked.session_id, query.current.id)
    shown = _shown(query, asked, current, sessions, usual)
    recall = query.recall
    if recall is not None and recall.session_id == asked.session_id and recall.window_turns is None:
        since: tuple[SessionMessage, ...] = ()
        if current is not None:
            since = sessions.behind(query.project, asked.session_id, current.position - 1, _MOST_BYTES)
        turns = sum([message.role is PromptRole.USER and bool(message.memory_id) for message in (*shown, *since)])
        recall = structs.replace(recall, window_turns=turns)
    history = tuple(
        PromptMessage(id=message.id, role=message.role, content=message.content, send_time=message.send_time)
        for message in shown
    )
    return replace(query, session=None, history=history, recall=recall)


def _shown(
    query: RenderQuery, asked: HistoryQuery, current: SessionMessage | None, sessions: Sessions, usual: HistorySettings
) -> tuple[SessionMessage, ...]:
    """Return the newest messages; those before the current one if the session already holds it."""
    before = None if current is None else current.position
    most_messages = _first_said(asked.max_messages, usual.max_messages, HISTORY_MESSAGES)
    page = sessions.before(query.project, asked.session_id, before, most_messages, _MOST_BYTES)
    return newest_within(page, _first_said(asked.max_characters, usual.max_characters, HISTORY_CHARACTERS)).messages


def _first_said(asked: int | None, of_project: int | None, usual: int) -> int:
    return asked if asked is not None else of_project if of_project is not None else usual


def with_messages(query: RenderQuery, rendered: Rendered, wording: Wording) -> Rendered:
    """The rendering with its messages: none where the query names nothing to put the section into."""
    original = wording.code_analyst if query.template is PromptTemplate.CODE_ANALYST else query.prompt
    text, prefix = rendered.text, rendered.prefix
    if query.current is not None:
        stable = text if prefix is None else prefix.text
        behind = text.removeprefix(stable)
        return replace(rendered, messages=_conversation(original or "", stable, query.history, behind, query.current))
    if original is None:
        return rendered
    if query.target is PromptTarget.USER:
        message = PromptMessage(role=PromptRole.USER, content=_joined(original, text))
    else:
        # After the text, so that a stable prefix does not move. The waterfall contains the instructions itself.
        beside = "" if query.form is RenderForm.WATERFALL else rendered.instructions
        section = "\n".join([part for part in (text, beside) if part])
        message = PromptMessage(role=PromptRole.SYSTEM, content=_joined(original, section))
    return replace(rendered, messages=(message,))


def _joined(original: str, section: str) -> str:
    """The original, a rule, the section; an empty one leaves the other untouched."""
    return _SEPARATOR.join(part for part in (original, section) if part)


def _conversation(
    persona: str, stable: str, history: Iterable[PromptMessage], memories: str, current: PromptMessage
) -> tuple[PromptMessage, ...]:
    """Return a turn's messages: persona, stable memories, history by time, memories of this turn, the user's message.

    Args:
        persona: Empty for none.
        stable: Text before the history; empty for none.
        history: Repeated ids and the current message's id are left out. A message without a time is as old as the one
            before it; equal times keep their order.
        memories: Text after the history; empty for none.
        current: The last message.
    """
    system = [PromptMessage(role=PromptRole.SYSTEM, content=text) for text in (persona, stable) if text]
    behind = [PromptMessage(role=PromptRole.SYSTEM, content=memories)] if memories else []
    return (*system, *_by_time(_once(history, current.id)), *behind, current)


def _once(history: Iterable[PromptMessage], current_id: str) -> list[PromptMessage]:
    seen = {current_id}
    first = []
    for message in history:
        if not message.id or message.id not in seen:
            first.append(message)
        seen.add(message.id)
    return first


def said_by_user(history: Iterable[PromptMessage]) -> list[str]:
    """The user's messages, newest first."""
    return [message.content for message in reversed(_by_time(history)) if message.role is PromptRole.USER]


def _by_time(history: Iterable[PromptMessage]) -> list[PromptMessage]:
    dated = []
    last = float("-inf")
    for message in history:
        last = last if message.send_time is None else message.send_time
        dated.append((last, message))
    return [message for _, message in sorted(dated, key=lambda each: each[0])]
