"""Search: code and knowledge in one list, for agents; earlier questions of the session are taken into account."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Final

from msgspec.structs import replace

from hummock.core.memory import CodeFragment, DomainKnowledge, LearningRecord, Memory, MemoryKind
from hummock.core.recall import NothingKnown, Preset, Recalled, RecallQuery
from hummock.core.render import Locale, Searched, SearchQuery, SearchResult, SearchScope
from hummock.ports.store import Reads, Snapshot
from hummock.recall.follow_up import MOST_BEFORE, cut, leans_back, leant_on
from hummock.recall.plan import PRESETS, apply_settings
from hummock.recall.query_features import echo_hashes
from hummock.render.context import domain_texts
from hummock.render.escape import MODEL, bracketed_id, clean, disarmed, inline, said_by
from hummock.render.exchanges import with_replies
from hummock.render.listing import with_ages
from hummock.render.passage import passage_of
from hummock.render.section import Selected, Wording, wording_of
from hummock.text.normalise import is_han

_CODE: Final = frozenset({MemoryKind.CODE_FRAGMENT})
_KINDS: Final[Mapping[SearchScope, frozenset[MemoryKind]]] = {
    SearchScope.CODE: _CODE,
    SearchScope.KNOWLEDGE: frozenset(MemoryKind) - _CODE,
    SearchScope.BOTH: frozenset(MemoryKind),
}
_CODE_TYPE: Final = "code"
_CONTENT_CHARACTERS: Final = 200
_FILES: Final = 5


class Search:
    """The agent's one search tool. A pure read, but for the trail of the session that a query names."""

    def __init__(self, recall: Callable[[RecallQuery], Recalled], trails: SearchTrails, store: Reads) -> None:
        self._recall = recall
        self._trails = trails
        self._store = store

    def __call__(self, query: SearchQuery) -> Searched:
        """Answer with at most `top_k` results by falling score, equal scores by memory id.

        There are no results if the scope and the filter have no kind in common. All kinds compete in one group,
        regardless of the project's groups. A question that depends on earlier ones is searched alone and together with
        them, and the mean of both scores counts. The answer to a question that was found follows it with its score; if
        there is room for one of them only, it is the answer.

        Raises: what the recall raises.
        """
        before = self._trails.before(query.project, query.session_id, query.text) if query.session_id else Before()
        found = self._recall(replace(_recall_query(query), before=before.texts))
        asked = "\n".join((query.text, *before.texts))
        items, nothing_known = self._with_answers(query, found)
        results = tuple(_result(item, before, asked) for item in items)
        if query.unseen_first:
            results = tuple(sorted(results, key=lambda result: result.seen_before))
        if query.session_id:
            ids = tuple(result.memory_id for result in results)
            self._trails.add(query.project, query.session_id, query.text, ids)
        wording = wording_of(Locale.ZH if is_han(query.text) else Locale.EN)
        return Searched(
            results=results,
            text=text_of(results, wording, is_unknown=nothing_known is not None),
            receipt=found.receipt,
            degraded=found.degraded,
            together_with=found.together_with,
            nothing_known=nothing_known,
        )

    def _with_answers(self, query: SearchQuery, found: Recalled) -> tuple[Sequence[Selected], NothingKnown | None]:
        """The hits with the answers to questions among them and to the query's own text, and what is nearly known."""
        # A diversified recall is not sorted by score; a mixed list is.
        hits = sorted(found.hits, key=lambda hit: (-hit.score, hit.memory.id))
        items = [Selected(memory=hit.memory, score=hit.score, replaced_by=hit.likely_replaced_by) for hit in hits]

        def answered(project: Snapshot) -> tuple[Sequence[Selected], NothingKnown | None]:
            asked, _ = apply_settings(_recall_query(query), project.settings)
            if not project.has_turns:
                return with_ages(items, asked.zone), found.nothing_known
            first = project.replies_to(echo_hashes(query.text), asked.filter, None)
            said = [item.memory.id for item in items if item.memory.session_id]
            exchanges = dict(zip(said, project.exchanges(said, asked.filter, None), strict=True))
            most = asked.top_k or PRESETS[Preset.AGENT].top_k
            replied = with_replies(first, items, exchanges, most)
            return with_ages(replied, asked.zone), None if first else found.nothing_known

        return self._store.read(query.project, answered, allow_stale=query.allow_stale)


def _recall_query(query: SearchQuery) -> RecallQuery:
    kinds = _KINDS[query.scope] & (query.filter.kinds or frozenset(MemoryKind))
    # An empty set of kinds would let all pass, so "none" is expressed by a time before all times.
    where = replace(query.filter, kinds=kinds) if kinds else replace(query.filter, created_before=-math.inf)
    return RecallQuery(
        project=query.project,
        text=query.text,
        preset=Preset.AGENT,
        top_k=query.top_k,
        code_top_k=0,
        domain_top_k=0,
        filter=where,
        as_of=query.as_of,
        min_seq=query.min_seq,
        allow_stale=query.allow_stale,
        until_s=query.until_s,
        time_zone=query.time_zone,
        full=True,
    )


def text_of(results: Sequence[SearchResult], wording: Wording, *, is_unknown: bool = False) -> str:
    """Text of the results for a model: a numbered line each, with the content indented below it.

    With `is_unknown` it begins with a line that says that none of them answers.
    """
    if not results:
        return f"{wording.no_results}\n"
    text = "".join(_text_of(number, result, wording) for number, result in enumerate(results, start=1))
    first = f"{wording.nothing_known}\n" if is_unknown else ""
    return f"{first}{text}{wording.results_notice}\n"


def _result(item: Selected, before: Before, asked: str) -> SearchResult:
    memory = item.memory
    return SearchResult(
        type=_CODE_TYPE if memory.kind is MemoryKind.CODE_FRAGMENT else "knowledge",
        memory_id=memory.id,
        title=memory.index.title,
        content=_shown(_content(memory), asked),
        score=item.score or 0.0,
        seen_before=memory.id in before.seen,
        likely_replaced_by=item.replaced_by,
        notes=said_by(memory, MODEL) + (f" ({item.told})" if item.told else ""),
        metadata={name: value for name, value in _metadata(memory).items() if value},
    )


def _shown(content: str, asked: str) -> str:
    if len(content) <= _CONTENT_CHARACTERS:
        return content
    return passage_of(clean(content), asked, _CONTENT_CHARACTERS, len).text


def _content(memory: Memory) -> str:
    if memory.payload is None:
        return memory.index.summary
    match memory.payload.detail:
        case LearningRecord(answer=answer):
            return answer
        case DomainKnowledge() as detail:
            return "\n".join(domain_texts(memory, detail))
        case _:
            return memory.payload.content


def _metadata(memory: Memory) -> dict[str, object]:
    """The facts of a memory; what does not apply is empty or 0."""
    facts: dict[str, object] = {"kind": memory.kind.name, "origin": memory.origin.name, "tags": list(memory.index.tags)}
    match memory.payload.detail if memory.payload else None:
        case CodeFragment(path=path, start_line=start_line, end_line=end_line, language=language, symbol=symbol):
            facts.update(path=path, start_line=start_line, end_line=end_line, language=language, symbol=symbol)
        case DomainKnowledge(domain=domain, key_files=files):
            facts.update(domain=domain, key_files=list(files))
        case LearningRecord(source_files=files):
            facts["source_files"] = list(files)
    return facts


def _text_of(number: int, result: SearchResult, wording: Wording) -> str:
    """Return a numbered line and below it, indented, the source, the id and the content.

    Stored text cannot forge a numbered line, nor a chat's.
    """
    replaced = f" ({wording.replaced})" if result.likely_replaced_by else ""
    head = f"{number}. [{result.type}] {inline(result.title)} (score={result.score:.2f}){result.notes}{replaced}\n"
    source = f"{_source(result.metadata, wording)} {bracketed_id(result.memory_id)}".lstrip()
    content = disarmed(result.content)
    return head + "".join(f"   {line}\n" for line in (source, *content.split("\n")) if line.strip())


def _source(facts: Mapping[str, object], wording: Wording) -> str:
    """The path and lines of code; the files that knowledge rests on."""
    match facts:
        case {"path": str(path), "start_line": int(first), "end_line": int(last)}:
            return f"{inline(path)}:{first}-{last}"
        case {"path": str(path)}:
            return inline(path)
        case {"source_files": list(files)}:
            label = wording.source_files
        case {"key_files": list(files)}:
            label = wording.key_files
        case _:
            return ""
    return f"{label} {', '.join(map(inline, files[:_FILES]))}"


TTL_S = 1800.0
"""Half an hour after its last search a conversation is over."""

MAX_SESSIONS = 4096
MAX_STEPS = MOST_BEFORE
"""Searches that a session keeps."""

MAX_IDS = 50
"""Results of each search that count as seen: the best."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One search: the question, shortened, and its best results."""

    text: str
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """Context of a search: the earlier questions that it depends on, newest first, and the ids already shown."""

    texts: tuple[str, ...] = ()
    seen: frozenset[str] = frozenset()


@dataclass(slots=True)
class _Trail:
    steps: tuple[Step, ...]
    expires_at: float


class SearchTrails:
    """The last searches of many sessions. Safe to call from several threads."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        """Keeps none yet; `monotonic` gives seconds from some start."""
        self._monotonic = monotonic
        self._lock = Lock()
        self._trails: OrderedDict[tuple[str, str], _Trail] = OrderedDict()

    def before(self, project: str, session_id: str, text: str) -> Before:
        """Return the context of this question in its session.

        A repeated question keeps the context of the first time, so that it gets the same answer.
        """
        steps = self._steps(project, session_id)
        asked = cut(text)
        earlier = [step for step in steps if step.text != asked]
        seen = frozenset(memory_id for step in earlier for memory_id in step.ids)
        texts = leant_on([step.text for step in reversed(earlier)]) if leans_back(text) else ()
        return Before(texts=texts, seen=seen)

    def add(self, project: str, session_id: str, text: str, ids: tuple[str, ...]) -> None:
        """Notes a search that was answered; it takes the place of an equal one."""
        step = Step(text=cut(text), ids=ids[:MAX_IDS])
        with self._lock:
            now = self._monotonic()
            others = [one for one in self._live((project, session_id), now) if one.text != step.text]
            self._trails[project, session_id] = _Trail((*others, step)[-MAX_STEPS:], now + TTL_S)
            self._trails.move_to_end((project, session_id))
            self._forget(now)

    def forget(self, project: str) -> None:
        """A project was deleted."""
        with self._lock:
            for key in [key for key in self._trails if key[0] == project]:
                del self._trails[key]

    def _steps(self, project: str, session_id: str) -> tuple[Step, ...]:
        with self._lock:
            return self._live((project, session_id), self._monotonic())

    def _live(self, key: tuple[str, str], now: float) -> tuple[Step, ...]:
        trail = self._trails.get(key)
        return trail.steps if trail is not None and now < trail.expires_at else ()

    def _forget(self, now: float) -> None:
        """Drop expired sessions and those beyond the limit, the longest idle first."""
        while self._trails:
            oldest = next(iter(self._trails.values()))
            if now < oldest.expires_at and len(self._trails) <= MAX_SESSIONS:
                return
            self._trails.popitem(last=False)
