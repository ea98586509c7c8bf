"""The stored history of a session, put into a rendering."""

from __future__ import annotations

from dataclasses import replace

from hummock.core.prompt import PromptMessage, PromptRole
from hummock.core.render import RenderQuery
from hummock.core.session import HISTORY_CHARACTERS, HISTORY_MESSAGES, HistoryQuery, MessagePage
from hummock.ports import Store
from hummock.usecases.sessions import newest_within

_MOST_BYTES = 8 * 1024 * 1024


def with_history(query: RenderQuery, store: Store) -> RenderQuery:
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
        recall = replace(recall, window_turns=sum(message.role is PromptRole.USER for message in shown))
    return replace(query, session=None, history=shown, recall=recall)


def _shown(query: RenderQuery, asked: HistoryQuery, store: Store) -> tuple[PromptMessage, ...]:
    """The newest messages; of a session that holds the current one already, those before it."""
    sessions, said = store.sessions, store.generation(query.project).settings.history
    known = None
    if query.current is not None and query.current.id:
        known = sessions.message(query.project, asked.session_id, query.current.id)
    before = None if known is None else known.position
    most_messages = _first_said(asked.max_messages, said.messages, HISTORY_MESSAGES)
    page = sessions.before(query.project, asked.session_id, before, most_messages, _MOST_BYTES)
    return _as_prompt(newest_within(page, _first_said(asked.max_characters, said.characters, HISTORY_CHARACTERS)))


def _first_said(asked: int | None, of_project: int | None, usual: int) -> int:
    return asked if asked is not None else of_project if of_project is not None else usual


def _as_prompt(page: MessagePage) -> tuple[PromptMessage, ...]:
    return tuple(
        PromptMessage(id=message.id, role=message.role, content=message.content, send_time=message.send_time)
        for message in page.messages
    )
