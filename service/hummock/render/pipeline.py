"""Render: the prompt section of a recall or of memories by id, of the hits that are worth showing.

A recall returns the best hits that exist, and these may be useless. A score compares a hit with the best of its group
and does not show whether that one is good: half the project holds most terms of a question in everyday words ("what is
the ... of"). Two measures do: the calibrated similarity, and the number of content words that the hit holds.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta, timezone, tzinfo
from functools import lru_cache, partial
from typing import Final

from msgspec import structs

from hummock.core.candidates import FoundBy
from hummock.core.errors import HummockError, InvalidRequest, ProjectNotFound, places_of
from hummock.core.memory import Memory, MemoryKind
from hummock.core.project import Project
from hummock.core.recall import Degradation, Hit, Intent, Recalled, RecallQuery
from hummock.core.render import Locale, Quotas, Rendered, RenderForm, RenderQuery, StablePrefix, Tier
from hummock.core.session import PromptTemplate
from hummock.core.settings import ProjectSettings
from hummock.core.time_zone import zone_of
from hummock.core.tools import search_tool
from hummock.ports.models import Clock
from hummock.ports.store import Outdated, Reads, Snapshot
from hummock.recall.follow_up import after
from hummock.recall.plan import names_nothing
from hummock.render.compose import (
    FORMS,
    compose,
    marked,
    with_given_way,
    with_left_out,
    with_nothing_known,
    without,
    without_answer,
)
from hummock.render.exchanges import with_answers
from hummock.render.listing import with_ages
from hummock.render.passage import MOST_KEYWORDS
from hummock.render.pinned import MOST_PINNED, render_pinned
from hummock.render.prompt import said_by_user, with_history, with_messages
from hummock.render.section import Frame, Section, Selected, wording_of
from hummock.render.stable_prefix import render_stable
from hummock.render.turn import Load, RenderTurn, Source, Turn
from hummock.text.analyzer import query_terms
from hummock.text.keywords import keywords
from hummock.text.normalise import is_han
from hummock.text.question import question_of
from hummock.text.tokens import TokenCounter

_log = logging.getLogger(__name__)

_SHORTEST, _LONGEST = 0.4, 2.0
"""How far excerpts follow a budget that is not the form's own."""


class Render:
    """Writes prompt sections. A pure read, but for turns, which are counted."""

    def __init__(
        self,
        recall: Callable[[RecallQuery, Snapshot], Recalled],
        store: Reads,
        counter: TokenCounter,
        clock: Clock,
        turn: RenderTurn,
    ) -> None:
        self._recall = recall
        self._store = store
        self._counter = counter
        self._clock = clock
        self._turn = turn

    def __call__(self, query: RenderQuery) -> Rendered:
        """Answer with the section that fits the budget; an unknown project gives an empty text.

        Raises: ProjectNotFound, if it must exist; SessionNotFound; errors of the recall, whose field paths begin with
            `recall`. With a commit: RequestIdReused, StorageFull.
        """
        return self.prepare(query)()

    def prepare(self, query: RenderQuery) -> Callable[[], Rendered]:
        """Do all the computing. The returned function finishes the rendering and, with a commit, waits for the disk.

        Raises: as `__call__`.
        """
        allow_stale = query.recall is not None and query.recall.allow_stale
        return self._store.read(query.project, partial(self._prepared, query), allow_stale=allow_stale)

    def _prepared(self, query: RenderQuery, snapshot: Snapshot) -> Callable[[], Rendered]:
        if query.must_exist and not snapshot.seq:
            raise ProjectNotFound(query.project)
        settings = snapshot.settings
        if query.session is not None:
            query = with_history(query, query.session, self._store.sessions, settings.history)
        if query.recall is not None and query.history:
            query = replace(query, recall=after(query.recall, said_by_user(query.history)))
        recalled = None if query.recall is None else self._recalled(query.recall, query.form, snapshot)
        project, load = snapshot.project(), snapshot.get
        quotas = query.quotas.filled(settings.quotas)
        source = _source(query, recalled, project, load, quotas)
        # The literal form shows what was found and nothing else.
        if query.recall is not None and not quotas.text_characters:
            if names_nothing(query.recall):
                source = _of_small_talk(source, is_turn=query.commit is not None)
            elif snapshot.has_turns:
                source = with_answers(source, query.recall, snapshot)
        if query.recall is not None and (pinned := snapshot.pinned(query.recall.filter, MOST_PINNED)):
            source = replace(source, pinned=tuple(pinned))
        locale = _locale(query, source)
        together_with = recalled.together_with if isinstance(recalled, Recalled) else ()
        frame = self._frame(query, locale, project, settings, quotas, source.intent, together_with)
        writer = _Writer(query, frame, locale, settings.pinned_tokens(), self._clock)
        if query.commit is None or query.recall is None:
            rendered = writer(source, load)
            return lambda: with_messages(query, rendered, frame.wording)
        turn = Turn(
            project=query.project,
            commit=query.commit,
            text=query.recall.text,
            source=source,
            hits=recalled.hits if isinstance(recalled, Recalled) else (),
            budget_tokens=frame.budget_tokens,
            write=writer,
        )
        count = self._turn.prepare(turn, snapshot)
        return lambda: with_messages(query, count(), frame.wording)

    def _recalled(self, query: RecallQuery, form: RenderForm, snapshot: Snapshot) -> Recalled | Degradation:
        """The recall's answer, or why there is none where the form has something to say without it."""
        try:
            return self._recall(structs.replace(query, full=True), snapshot)
        except InvalidRequest as error:
            error.move_into("recall.")
            raise
        except (HummockError, Outdated):
            raise
        except Exception as error:
            if form is not RenderForm.CONTEXT:
                raise
            _log.error("a prompt is rendered without its recall: %s at %s", type(error).__name__, places_of(error))
            return Degradation(path="recall", reason="RECALL_FAILED", message=type(error).__name__)

    def _frame(
        self,
        query: RenderQuery,
        locale: Locale,
        project: Project | None,
        settings: ProjectSettings,
        quotas: Quotas,
        intent: Intent | None,
        together_with: Sequence[str],
    ) -> Frame:
        own_budget_tokens = FORMS[query.form].budget_tokens
        budget_tokens = query.budget_tokens or settings.budget_tokens.of(query.form) or own_budget_tokens
        as_of = query.as_of if query.as_of is not None or query.recall is None else query.recall.as_of
        keywords_of_intent = intent.keywords if intent else ()
        return Frame(
            wording=wording_of(locale),
            budget_tokens=budget_tokens,
            counter=self._counter,
            info=project.info if project else None,
            as_of=self._clock.now() if as_of is None else as_of,
            zone=_zone(query, settings.times.zone or ""),
            quotas=quotas,
            read_tool=query.read_tool,
            query="" if query.recall is None else " ".join((query.recall.text, *together_with, *keywords_of_intent)),
            passage_scale=min(max(budget_tokens / own_budget_tokens, _SHORTEST), _LONGEST),
        )


def _zone(query: RenderQuery, of_project: str) -> tzinfo:
    if query.utc_offset_minutes:
        return timezone(timedelta(minutes=query.utc_offset_minutes))
    return zone_of((query.recall.time_zone if query.recall else "") or of_project)


def _locale(query: RenderQuery, source: Source) -> Locale:
    """The language of the wording; without a query Chinese, if more than half the memories have Chinese characters."""
    before = query.tail.state if query.tail and not query.tail.rebase else None
    if query.locale:
        return query.locale
    if before:
        return before.locale
    if query.recall:
        return Locale.ZH if is_han(query.recall.text) else Locale.EN
    memories = [item.memory for item in source.selected]
    chinese = sum(is_han(f"{memory.index.title}\n{memory.index.summary}") for memory in memories)
    return Locale.ZH if 2 * chinese > len(memories) else Locale.EN


def _source(
    query: RenderQuery, recalled: Recalled | Degradation | None, project: Project | None, load: Load, quotas: Quotas
) -> Source:
    seq = project.seq if project else 0
    if isinstance(recalled, Degradation):
        return Source(selected=(), seq=seq, degraded=(recalled,))
    if recalled is None:
        selected, missing = _by_id(load, query.memory_ids)
        return Source(selected=selected, seq=seq, missing_ids=missing)
    is_by_kind = FORMS[query.form].by_kind
    selected = _of_hits(recalled, by_kind=is_by_kind)
    if is_by_kind and query.recall and not quotas.text_characters:
        asked = "\n".join((query.recall.text, *recalled.together_with))
        selected = _weighed(selected, recalled, asked, is_turn=query.commit is not None)
    unknown = recalled.nothing_known
    # The literal form shows whatever was found, and a project without memories has nothing to say.
    says_so = unknown is not None and unknown.nearest_id != "" and not quotas.text_characters
    is_turn = query.commit is not None
    # The nearest stays, for a finding may be wrong; entries of a turn are chosen by their use.
    kept = {unknown.nearest_id if unknown else "", *[item.memory.id for item in selected[:1]]}
    is_left_out = [
        says_so and item.memory.id not in kept and not (is_turn and item.memory.kind is MemoryKind.ENTRY)
        for item in selected
    ]
    return Source(
        selected=tuple([item for item, out in zip(selected, is_left_out, strict=True) if not out]),
        seq=recalled.seq,
        intent=recalled.intent,
        receipt=recalled.receipt,
        degraded=recalled.degraded,
        nothing_known=unknown,
        left_out=tuple([item for item, out in zip(selected, is_left_out, strict=True) if out]),
        says_so=says_so,
    )


def _of_small_talk(source: Source, *, is_turn: bool) -> Source:
    """The source of a text that names nothing: what is alike is so by chance, and no question was left unanswered.

    Entries of a turn stay, for they are chosen by their use.
    """
    kept = tuple([item for item in source.selected if is_turn and item.memory.kind is MemoryKind.ENTRY])
    out = tuple([item for item in (*source.selected, *source.left_out) if item not in kept])
    return replace(source, selected=kept, left_out=out, says_so=False)


def _by_id(load: Load, asked: Sequence[str]) -> tuple[tuple[Selected, ...], tuple[str, ...]]:
    """The memories of these ids, each once, and the ids that do not exist in this project."""
    ids = tuple(dict.fromkeys(asked))
    found = list(zip(ids, load(ids) if ids else (), strict=True))
    return (
        tuple(Selected(memory=memory) for _, memory in found if memory is not None),
        tuple(memory_id for memory_id, memory in found if memory is None),
    )


def _of_hits(recalled: Recalled, *, by_kind: bool) -> tuple[Selected, ...]:
    """Return the hits of all groups, each memory once.

    A form that groups by kind keeps each group's order, with the special groups before the main one. Other forms take
    the best next hit of any group, so that each group's order holds; equal scores go to the smaller memory id.
    """
    if by_kind:
        hits: Iterable[Hit] = (*recalled.domains, *recalled.code_fragments, *recalled.hits)
    else:
        hits = _merged(recalled.hits, recalled.code_fragments, recalled.domains)
    first: dict[str, Hit] = {}
    for hit in hits:
        first.setdefault(hit.memory.id, hit)
    return tuple(
        [Selected(memory=hit.memory, score=hit.score, replaced_by=hit.likely_replaced_by) for hit in first.values()]
    )


def _weighed(
    selected: Sequence[Selected], recalled: Recalled, query_text: str, *, is_turn: bool
) -> tuple[Selected, ...]:
    """Add drawbacks to the memories, except to entries of a turn, which are chosen by their use."""
    against: dict[str, str] = {}
    for group in filter(None, (recalled.domains, recalled.code_fragments, recalled.hits)):
        for hit, drawback in zip(group, drawbacks(group, query_text), strict=True):
            against.setdefault(hit.memory.id, drawback)
    return tuple(
        [
            item
            if not against[item.memory.id] or (is_turn and item.memory.kind is MemoryKind.ENTRY)
            else structs.replace(item, drawback=against[item.memory.id])
            for item in selected
        ]
    )


LEAST_SIMILARITY: Final = 0.2
"""Least similarity of a hit worth its tokens. The best hit of unrelated questions in both languages had at most .22,
mostly below .15."""

LEAST_OF_QUESTION: Final = 0.35
"""Least similarity of a hit that only asks: any two questions are alike. In three made chats those that shared no
telling word with the query and had nothing to do with it had .33 at most, but for one of .42; others .36 or more."""

_ONLY_ASKS: Final = re.compile(r"[^.。!！?？\n]*[?？]\s*")

LEAST_SHARE: Final = 0.5
LEAST_WORDS: Final = 2
"""Share of the query's telling words that does instead, and how many of them; one where the query has no more."""

LEAST_OF_BEST: Final = 0.4
"""Share of the best score of its group, ages and verdicts apart, below which a hit only follows because there is room
for ten."""

LEAST_ACROSS: Final = 0.05
"""The similarity that does for the closest hit in the other script: there no word can match, and models see less. Of 13
questions asked in the other language it was the answer in 10, at .05 to .40."""

ANSWERS: Final = 0.5
"""The similarity from which a hit in the query's script counts as an answer, so that none in the other script is
needed. Of 149 Chinese questions whose answer was English, the best of 300 unrelated Chinese texts had .43 at most."""

_NAMED: Final = FoundBy.DOMAIN | FoundBy.KEY_FILE | FoundBy.HOLDER


def drawbacks(hits: Sequence[Hit], query: str) -> list[str]:
    """Explain for each hit of a group why not to show it; empty for those worth showing.

    Chinese and other hits are compared among themselves. The closest of the other script is shown unless one in the
    query's script answers. Hits that the query names are shown, and so are hits without a vector, which can only be
    judged by their words.
    """
    is_chinese = is_han(query)
    titles = [(hit.memory.index.title, hit.memory.index.summary) for hit in hits]
    is_other = [is_han("\n".join(title)) != is_chinese for title in titles]
    own = [hit.similarity for hit, other in zip(hits, is_other, strict=True) if not other]
    is_answered = max(own, default=0.0) >= ANSWERS
    # Their scores, age and verdicts apart.
    bare = [hit.score / (hit.decay * hit.verdict) if hit.decay else hit.score for hit in hits]
    against = [""] * len(hits)
    # A note that tells a change alone is like the question by what it replaces.
    replacing = {hit.likely_replaced_by for hit in hits}
    for side in (False, True):
        places = [place for place, other in enumerate(is_other) if other is side and not hits[place].found_by & _NAMED]
        best = max([bare[place] for place in places], default=0.0)
        closest = max([hits[place].similarity for place in places], default=0.0)
        for place in places:
            is_closest_across = side and LEAST_ACROSS <= hits[place].similarity == closest
            is_answer_across = is_closest_across and not is_answered
            if not is_answer_across and hits[place].memory.id not in replacing:
                against[place] = _drawback(hits[place], bare[place], query, best)
    return against


def _drawback(hit: Hit, score: float, query: str, best: float) -> str:
    if score < LEAST_OF_BEST * best:
        return f"left out: its relevance {score:.2f} is far below the best, {best:.2f}"
    text = hit.memory.payload.content if hit.memory.payload and hit.memory.kind is MemoryKind.NOTE else ""
    least = LEAST_OF_QUESTION if _ONLY_ASKS.fullmatch(text) else LEAST_SIMILARITY
    if not hit.cosine or hit.similarity >= least:
        return ""
    told = told_terms(query)
    said = (*hit.matched_terms, *(correction.asked for correction in hit.corrections))
    words = len(told.intersection(query_terms(" ".join(said))))
    if told and words >= max(LEAST_SHARE * len(told), min(LEAST_WORDS, len(told))):
        return ""
    holds = f"it holds {words} of {len(told)} words"
    return f"left out: its similarity {hit.similarity:.2f} is below {least}, and {holds}"


@lru_cache(64)
def told_terms(query: str) -> frozenset[str]:
    """Return the terms of a query's content words."""
    return frozenset(query_terms(" ".join(keywords(question_of(query), MOST_KEYWORDS))))


def _merged(*groups: Sequence[Hit]) -> list[Hit]:
    # Not heapq.merge: a group that was diversified is not sorted by score.
    queues = [list(reversed(group)) for group in groups]
    merged: list[Hit] = []
    while waiting := [queue for queue in queues if queue]:
        merged.append(min(waiting, key=lambda queue: (-queue[-1].score, queue[-1].memory.id)).pop())
    return merged


@dataclass(frozen=True, slots=True, eq=False)
class _Writer:
    """Writes the section of a query, without its messages, from the selected memories."""

    query: RenderQuery
    frame: Frame
    locale: Locale
    pinned_tokens: int
    clock: Clock

    def __call__(self, source: Source, load: Load) -> Rendered:
        started_s = self.clock.monotonic()
        query, frame = self.query, self.frame
        read, missing_reads = _by_id(load, query.read_ids) if query.read_ids else ((), ())
        selected = with_ages(source.selected, frame.zone, of_pairs=bool(frame.quotas.text_characters))
        if source.pinned:
            section, prefix = self._below_pinned(source, selected, read, load)
        else:
            section, prefix = self._composed(source, selected, read, frame, load)
        has_search = query.template is PromptTemplate.CODE_ANALYST
        return Rendered(
            text=section.text,
            token_count=section.token_count,
            budget_tokens=frame.budget_tokens,
            over_budget=section.over_budget,
            memories=section.memories,
            tools=(search_tool(frame.wording.language), *section.tools) if has_search else section.tools,
            messages=(),
            instructions=_instructions(frame) if section.tools else "",
            prefix=prefix,
            missing_ids=tuple(dict.fromkeys((*source.missing_ids, *missing_reads))),
            counter=frame.counter.name,
            intent=source.intent,
            receipt=source.receipt,
            degraded=source.degraded,
            render_elapsed_s=self.clock.monotonic() - started_s,
            seq=source.seq,
            nothing_known=source.nothing_known,
        )

    def _below_pinned(
        self, source: Source, selected: Sequence[Selected], read: Sequence[Selected], load: Load
    ) -> tuple[Section, StablePrefix | None]:
        """The pinned memories, then the others within the rest of the budget. The former begin a stable prefix."""
        frame, pinned = self.frame, source.pinned
        first = render_pinned(pinned, selected, frame, self.pinned_tokens)
        shown = {one.memory_id for one in first.memories if one.tier is Tier.FULL}
        others, read = without(selected, shown), without(read, shown)
        source = replace(source, left_out=without(source.left_out, shown))
        room = frame.budget_tokens - first.token_count

        def load_others(ids: Sequence[str]) -> Sequence[Memory | None]:
            return [None if memory is None or memory.id in shown else memory for memory in load(ids)]

        while True:
            section, prefix = self._composed(
                source, others, read, replace(frame, budget_tokens=max(room, 1)), load_others
            )
            text = first.text + section.text
            token_count = frame.counter.count(text)
            excess = token_count - frame.budget_tokens
            # A text can have more tokens than its parts.
            if excess <= 0 or section.over_budget or not section.text or room <= 1:
                break
            room -= excess
        reports = marked(first.memories, [Selected(memory=memory) for memory in pinned], frame)
        section = replace(
            section,
            text=text,
            token_count=token_count,
            over_budget=token_count > frame.budget_tokens,
            memories=(*reports[: len(shown)], *section.memories, *reports[len(shown) :]),
        )
        if prefix is not None:
            prefix = replace(
                prefix, text=first.text + prefix.text, token_count=frame.counter.count(first.text + prefix.text)
            )
        return section, prefix

    def _composed(
        self, source: Source, selected: Sequence[Selected], read: Sequence[Selected], frame: Frame, load: Load
    ) -> tuple[Section, StablePrefix | None]:
        form, tail = FORMS[self.query.form], self.query.tail
        loaded: list[Selected] = [*selected, *source.left_out, *read]

        def select(ids: Sequence[str]) -> Sequence[Selected]:
            found, _ = _by_id(load, ids)
            loaded.extend(found)
            return found

        shown = tuple(selected)
        while True:
            if tail is None:
                section, prefix = compose(shown, read, frame, form), None
            else:
                section, prefix = render_stable(shown, read, frame, form, tail, self.locale, select)
            given_way = without_answer(shown, section.memories)
            if not given_way:
                break
            shown = without(shown, given_way)
        if len(shown) < len(selected):
            section = with_given_way(section, selected, shown)
        if source.left_out:
            section = with_left_out(section, source.left_out)
        if source.says_so:
            section = with_nothing_known(section, frame)
        return replace(section, memories=marked(section.memories, loaded, frame)), prefix


def _instructions(frame: Frame) -> str:
    return f"{frame.wording.data_notice}\n{frame.wording.read_on.format(tool=frame.read_tool)}"
