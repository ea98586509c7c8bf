"""Render: the prompt section of a recall, or of memories by id."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from hummock.core.errors import HummockError, InvalidRequest
from hummock.core.project import Project
from hummock.core.recall import Degradation, Hit, Recalled, RecallQuery
from hummock.core.render import Locale, PrefixState, Rendered, RenderForm, RenderQuery, StablePrefix, ToolDefinition
from hummock.core.session import (
    HISTORY_CHARACTERS,
    HISTORY_MESSAGES,
    HistoryQuery,
    MessagePage,
    PromptMessage,
    PromptRole,
    PromptTarget,
    PromptTemplate,
)
from hummock.memories.sessions import newest_within
from hummock.ports.models import Clock
from hummock.ports.store import Store
from hummock.render.compose import FORMS, compose, marked
from hummock.render.section import Frame, Section, Selected, Wording, locale_of, search, wording_of
from hummock.render.stable_prefix import render_stable
from hummock.render.turn import Load, RenderTurn, Source, Turn
from hummock.text.tokens import TokenCounter

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


class Render:
    """Writes prompt sections. A pure read, but for turns, which are counted."""

    def __init__(
        self,
        recall: Callable[[RecallQuery], Recalled],
        store: Store,
        counter: TokenCounter,
        clock: Clock,
        turn: RenderTurn,
    ) -> None:
        """Args are what it reads with, and what decides on the entries of turns."""
        self._recall = recall
        self._store = store
        self._counter = counter
        self._clock = clock
        self._turn = turn

    def __call__(self, query: RenderQuery) -> Rendered:
        """Answer with the section that fits the budget; an unknown project gives an empty text.

        Raises: SessionNotFound; what the recall raises on purpose; fields that it finds wrong stand in `recall`. With a
            commit: RequestIdReused, StorageFull.
        """
        return self.prepare(query)()

    def prepare(self, query: RenderQuery) -> Callable[[], Rendered]:
        """Does all that needs the processor; what is returned finishes it, and with a commit waits for the disk.

        Raises: as `__call__`, as far as it has come.
        """
        query = with_history(query, self._store)
        recalled = None if query.recall is None else self._recalled(query.recall, query.form)
        started = self._clock.monotonic()
        project = self._store.project(query.project)
        locale = _locale(query)
        frame = self._frame(query, locale, project)

        def write(source: Source, load: Load) -> Rendered:
            rendered = self._rendered(query, source, frame, locale, load)
            return replace(rendered, render_elapsed_s=self._clock.monotonic() - started)

        load = partial(self._store.get, query.project, min_seq=0, full=True)
        source = self._source(query, recalled, project, load)
        if query.commit is None or query.recall is None:
            rendered = write(source, load)
            return lambda: _spoken(query, rendered, frame)
        turn = Turn(
            project=query.project,
            commit=query.commit,
            text=query.recall.text,
            source=source,
            hits=recalled.hits if isinstance(recalled, Recalled) else (),
            budget_tokens=frame.budget_tokens,
            write=write,
        )
        count = self._turn.prepare(turn)
        return lambda: _spoken(query, count(), frame)

    def _rendered(self, query: RenderQuery, source: Source, frame: Frame, locale: Locale, load: Load) -> Rendered:
        """All but the messages."""
        read, missing_reads = _by_id(load, query.read_ids)
        section, prefix = self._composed(query, source.selected, read, frame, locale, load)
        return Rendered(
            text=section.text,
            token_count=section.token_count,
            budget_tokens=frame.budget_tokens,
            over_budget=section.over_budget,
            memories=section.memories,
            tools=_tools(query, section, frame.wording),
            messages=(),
            instructions=_instructions(section, frame),
            prefix=prefix,
            missing_ids=tuple(dict.fromkeys((*source.missing_ids, *missing_reads))),
            counter=self._counter.name,
            intent=source.intent,
            receipt=source.receipt,
            degraded=source.degraded,
            render_elapsed_s=0.0,
            seq=source.seq,
        )

    def _recalled(self, query: RecallQuery, form: RenderForm) -> Recalled | Degradation:
        """The recall's answer, or why there is none where the form has something to say without it."""
        try:
            return self._recall(replace(query, full=True))
        except InvalidRequest as error:
            error.move_into("recall.")
            raise
        except HummockError:
            raise
        except Exception as error:
            if form is not RenderForm.CONTEXT:
                raise
            return Degradation(path="recall", reason="RECALL_FAILED", message=type(error).__name__)

    def _source(
        self, query: RenderQuery, recalled: Recalled | Degradation | None, project: Project | None, load: Load
    ) -> Source:
        # The seq was read before the memories: what it counts is in them.
        seq = project.seq if project else 0
        if isinstance(recalled, Degradation):
            return Source(selected=(), seq=seq, degraded=(recalled,))
        if recalled is None:
            selected, missing = _by_id(load, query.memory_ids)
            return Source(selected=selected, seq=seq, missing_ids=missing)
        return Source(
            selected=_of_hits(recalled, by_kind=FORMS[query.form].by_kind),
            seq=recalled.seq,
            intent=recalled.intent,
            receipt=recalled.receipt,
            degraded=recalled.degraded,
        )

    def _frame(self, query: RenderQuery, locale: Locale, project: Project | None) -> Frame:
        settings = self._store.generation(query.project).settings
        as_of = query.as_of if query.as_of is not None or query.recall is None else query.recall.as_of
        return Frame(
            wording=wording_of(locale),
            budget_tokens=query.budget_tokens
            or settings.budget_tokens.of(query.form)
            or FORMS[query.form].budget_tokens,
            counter=self._counter,
            info=project.info if project else None,
            as_of=self._clock.now() if as_of is None else as_of,
            utc_offset_minutes=query.utc_offset_minutes,
            quotas=query.quotas.filled(settings.quotas),
            read_tool=query.read_tool,
        )

    def _composed(
        self,
        query: RenderQuery,
        selected: Sequence[Selected],
        read: Sequence[Selected],
        frame: Frame,
        locale: Locale,
        load: Load,
    ) -> tuple[Section, StablePrefix | None]:
        form = FORMS[query.form]
        loaded: list[Selected] = [*selected, *read]

        def select(ids: Sequence[str]) -> Sequence[Selected]:
            found, _ = _by_id(load, ids)
            loaded.extend(found)
            return found

        if query.tail is None:
            section, prefix = compose(selected, read, frame, form), None
        else:
            section, prefix = render_stable(selected, read, frame, form, query.tail, locale, select)
        return replace(section, memories=marked(section.memories, loaded, frame)), prefix


def _by_id(load: Load, asked: Sequence[str]) -> tuple[tuple[Selected, ...], tuple[str, ...]]:
    """The memories of these ids, each once, and the ids that do not exist in this project."""
    ids = tuple(dict.fromkeys(asked))
    found = list(zip(ids, load(ids) if ids else (), strict=True))
    return (
        tuple(Selected(memory=memory) for _, memory in found if memory is not None),
        tuple(memory_id for memory_id, memory in found if memory is None),
    )


def _spoken(query: RenderQuery, rendered: Rendered, frame: Frame) -> Rendered:
    """The rendering with its messages."""
    messages = _messages(query, rendered.text, rendered.instructions, rendered.prefix, frame.wording)
    return replace(rendered, messages=messages)


def _locale(query: RenderQuery) -> Locale:
    kept: PrefixState | None = query.tail.state if query.tail and not query.tail.rebase else None
    return query.locale or (kept.locale if kept else locale_of(query.recall.text if query.recall else None))


def _of_hits(recalled: Recalled, *, by_kind: bool) -> tuple[Selected, ...]:
    """The hits of all groups, each memory once.

    A form that keeps each kind by itself has each group's order, its own groups before the main one. The others take
    the best next hit of any group, so that each group's order holds; equal scores go to the smaller memory id.
    """
    if by_kind:
        hits: Iterable[Hit] = (*recalled.domains, *recalled.code_fragments, *recalled.hits)
    else:
        hits = _merged(recalled.hits, recalled.code_fragments, recalled.domains)
    first: dict[str, Hit] = {}
    for hit in hits:
        first.setdefault(hit.memory.id, hit)
    return tuple(Selected(memory=hit.memory, score=hit.score) for hit in first.values())


def _merged(*groups: Sequence[Hit]) -> list[Hit]:
    # Not heapq.merge: a group that was diversified is not sorted by score.
    queues = [list(reversed(group)) for group in groups]
    merged: list[Hit] = []
    while waiting := [queue for queue in queues if queue]:
        merged.append(min(waiting, key=lambda queue: (-queue[-1].score, queue[-1].memory.id)).pop())
    return merged


def _tools(query: RenderQuery, section: Section, wording: Wording) -> tuple[ToolDefinition, ...]:
    return (search(wording), *section.tools) if query.template is PromptTemplate.CODE_ANALYST else section.tools


def _instructions(section: Section, frame: Frame) -> str:
    if not section.tools:
        return ""
    return f"{frame.wording.data_notice}\n{frame.wording.read_on.format(tool=frame.read_tool)}"


def _messages(
    query: RenderQuery, text: str, instructions: str, prefix: StablePrefix | None, wording: Wording
) -> tuple[PromptMessage, ...]:
    original = wording.code_analyst if query.template is PromptTemplate.CODE_ANALYST else query.prompt
    if query.current is not None:
        stable = text if prefix is None else prefix.text
        behind = text.removeprefix(stable)
        return conversation(original or "", stable, query.history, behind, query.current)
    if original is None:
        return ()
    if query.target is PromptTarget.USER:
        return (PromptMessage(role=PromptRole.USER, content=joined(original, text)),)
    # Behind the text: a stable prefix stays where it is. The waterfall says them itself.
    beside = "" if query.form is RenderForm.WATERFALL else instructions
    section = "\n".join(part for part in (text, beside) if part)
    return (PromptMessage(role=PromptRole.SYSTEM, content=joined(original, section)),)
