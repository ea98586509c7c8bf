"""The messages of a prompt: persona, what was said before, memories, and what the user says now."""

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
)
from hummock.memories.sessions import newest_within
from hummock.ports.store import Readable
from hummock.render.section import Wording

_SEPARATOR: Final = "\n\n---\n\n"
_MOST_BYTES: Final = 8 * 1024 * 1024
"""Most bytes of stored messages that are read of a session."""


def with_history(query: RenderQuery, store: Readable) -> RenderQuery:
    """The rendering with the messages that its session names; untouched where it names none.

    A recall in that session leaves out as many turns as are shown, unless it says otherwise.

    Raises: SessionNotFound.
    """
    asked = query.session
    if asked is None:
        return query
    shown = _shown(query, asked, store)
    recall = query.recall
    if recall is not None and recall.session_id == asked.session_id and recall.window_turns is None:
        recall = structs.replace(recall, window_turns=sum(message.role is PromptRole.USER for message in shown))
    return replace(query, session=None, history=shown, recall=recall)


def _shown(query: RenderQuery, asked: HistoryQuery, store: Readable) -> tuple[PromptMessage, ...]:
    """The newest messages; of a session that holds the current one already, those before it."""
    sessions, said = store.sessions, store.generation(query.project).settings.history
    known = None
    if query.current is not None and query.current.id:
        known = sessions.message(query.project, asked.session_id, query.current.id)
    before = None if known is None else known.position
    most_messages = _first_said(asked.max_messages, said.max_messages, HISTORY_MESSAGES)
    page = sessions.before(query.project, asked.session_id, before, most_messages, _MOST_BYTES)
    page = newest_within(page, _first_said(asked.max_characters, said.max_characters, HISTORY_CHARACTERS))
    return tuple(
        PromptMessage(id=message.id, role=message.role, content=message.content, send_time=message.send_time)
        for message in page.messages
    )


def _first_said(asked: int | None, of_project: int | None, usual: int) -> int:
    return asked if asked is not None else of_project if of_project is not None else usual


def with_messages(query: RenderQuery, rendered: Rendered, wording: Wording) -> Rendered:
    """The rendering with its messages: none where the query names nothing to put the section into."""
    return replace(rendered, messages=_messages(query, rendered, wording))


def _messages(query: RenderQuery, rendered: Rendered, wording: Wording) -> tuple[PromptMessage, ...]:
    original = wording.code_analyst if query.template is PromptTemplate.CODE_ANALYST else query.prompt
    text, prefix = rendered.text, rendered.prefix
    if query.current is not None:
        stable = text if prefix is None else prefix.text
        return _conversation(original or "", stable, query.history, text.removeprefix(stable), query.current)
    if original is None:
        return ()
    if query.target is PromptTarget.USER:
        return (PromptMessage(role=PromptRole.USER, content=_joined(original, text)),)
    # Behind the text: a stable prefix stays where it is. The waterfall says them itself.
    beside = "" if query.form is RenderForm.WATERFALL else rendered.instructions
    section = "\n".join(part for part in (text, beside) if part)
    return (PromptMessage(role=PromptRole.SYSTEM, content=_joined(original, section)),)


def _joined(original: str, section: str) -> str:
    """The original, a rule, the section; an empty one leaves the other untouched."""
    return _SEPARATOR.join(part for part in (original, section) if part)


def _conversation(
    persona: str, stable: str, history: Iterable[PromptMessage], memories: str, current: PromptMessage
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
    first = []
    for message in history:
        if not message.id or message.id not in seen:
            first.append(message)
        seen.add(message.id)
    return first


def _by_time(history: Iterable[PromptMessage]) -> list[PromptMessage]:
    dated = []
    last = float("-inf")
    for message in history:
        last = last if message.send_time is None else message.send_time
        dated.append((last, message))
    return [message for _, message in sorted(dated, key=lambda each: each[0])]
