"""Search: code and knowledge in one list, for agents."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from hummock.core.memory import CodeFragment, DomainKnowledge, LearningRecord, Memory, MemoryKind
from hummock.core.recall import (
    MAX_QUERY_CHARACTERS,
    Degradation,
    Hit,
    Preset,
    Recalled,
    RecallQuery,
    Receipt,
    StageTime,
)
from hummock.core.search import Searched, SearchQuery, SearchResult, SearchScope
from hummock.render import locale_of, wording_of
from hummock.render.fence import disarmed, inline
from hummock.usecases.search_trail import Before, SearchTrails

_CODE: Final = frozenset({MemoryKind.CODE_FRAGMENT})
_KINDS: Final[Mapping[SearchScope, frozenset[MemoryKind]]] = {
    SearchScope.CODE: _CODE,
    SearchScope.KNOWLEDGE: frozenset(MemoryKind) - _CODE,
    SearchScope.BOTH: frozenset(MemoryKind),
}
_CODE_TYPE: Final = "code"
_CONTENT_CHARACTERS: Final = 200


class Search:
    """The agent's one search tool. A pure read, but for the trail of the session that a query names."""

    def __init__(self, recall: Callable[[RecallQuery], Recalled], trails: SearchTrails) -> None:
        self._recall = recall
        self._trails = trails

    def __call__(self, query: SearchQuery) -> Searched:
        """Answer with at most `top_k` results by falling score, equal scores by memory id.

        Nothing passes when the scope and the filter have no kind in common. All kinds compete in one group,
        whatever the project says of its groups. A question that leans on earlier ones is answered by itself and
        together with them, and the mean of both scores counts.

        Raises: what the recall raises.
        """
        before = self._trails.before(query.project, query.session_id, query.text) if query.session_id else Before()
        found = self._found(query, before)
        results = tuple(_result(hit, score, before) for hit, score in found.hits)
        if query.unseen_first:
            results = tuple(sorted(results, key=lambda result: result.seen_before))
        if query.session_id:
            ids = tuple(result.memory_id for result in results)
            self._trails.add(query.project, query.session_id, query.text, ids)
        return Searched(
            results=results,
            text=_text(query, results),
            receipt=found.receipt,
            degraded=found.degraded,
            together_with=before.texts,
        )

    def _found(self, query: SearchQuery, before: Before) -> _Found:
        kinds = _KINDS[query.scope] & (query.filter.kinds or frozenset(MemoryKind))
        asked = _recall_query(query, kinds)
        alone = self._recall(asked)
        if not before.texts:
            # A diversified recall is not sorted by score; a mixed list is.
            hits = sorted(alone.hits, key=lambda hit: (-hit.score, hit.memory.id))
            return _Found(hits=[(hit, hit.score) for hit in hits], receipt=alone.receipt, degraded=alone.degraded)
        text = "\n".join((query.text, *before.texts))[:MAX_QUERY_CHARACTERS]
        return _mean(alone, self._recall(replace(asked, text=text)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """Hits with their scores, best first, and the report."""

    hits: Sequence[tuple[Hit, float]]
    receipt: Receipt
    degraded: tuple[Degradation, ...]


def _mean(alone: Recalled, together: Recalled) -> _Found:
    """The hits of both by the mean of their scores, 0 where one of them has none; as many as the longer list has."""
    scores: defaultdict[str, float] = defaultdict(float)
    hits: dict[str, Hit] = {}
    for recalled in (together, alone):
        for hit in recalled.hits:
            scores[hit.memory.id] += hit.score / 2
            hits[hit.memory.id] = hit
    best = sorted(hits, key=lambda memory_id: (-scores[memory_id], memory_id))
    most = max(len(alone.hits), len(together.hits))
    follow_up = StageTime(stage="follow_up", elapsed_s=together.receipt.elapsed_s)
    return _Found(
        hits=[(hits[memory_id], scores[memory_id]) for memory_id in best[:most]],
        receipt=replace(
            alone.receipt,
            stages=(*alone.receipt.stages, follow_up),
            elapsed_s=alone.receipt.elapsed_s + together.receipt.elapsed_s,
        ),
        degraded=tuple(dict.fromkeys((*alone.degraded, *together.degraded))),
    )


def _recall_query(query: SearchQuery, kinds: frozenset[MemoryKind]) -> RecallQuery:
    # A filter without kinds lets all of them pass, so that none is said by a time before all times.
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
        until_s=query.until_s,
        full=True,
    )


def _text(query: SearchQuery, results: tuple[SearchResult, ...]) -> str:
    text = "".join(_text_of(number, result) for number, result in enumerate(results, start=1))
    return text or wording_of(locale_of(query.text)).no_results + "\n"


def _result(hit: Hit, score: float, before: Before) -> SearchResult:
    memory = hit.memory
    return SearchResult(
        type=_CODE_TYPE if memory.kind is MemoryKind.CODE_FRAGMENT else "knowledge",
        memory_id=memory.id,
        title=memory.index.title,
        content=_content(memory)[:_CONTENT_CHARACTERS],
        score=score,
        seen_before=memory.id in before.seen,
        metadata={name: value for name, value in _metadata(memory).items() if value},
    )


def _content(memory: Memory) -> str:
    if memory.payload is None:
        return memory.index.summary
    match memory.payload.detail:
        case LearningRecord(answer=answer):
            return answer
        case DomainKnowledge(summary=summary):
            return summary
        case _:
            return memory.payload.content


def _metadata(memory: Memory) -> dict[str, object]:
    """The facts of a memory; what does not apply is empty or 0."""
    facts: dict[str, object] = {"kind": memory.kind.name, "origin": memory.origin.name, "tags": list(memory.index.tags)}
    match memory.payload.detail if memory.payload else None:
        case CodeFragment(path=path, start_line=start_line, end_line=end_line, language=language, symbol=symbol):
            facts.update(path=path, start_line=start_line, end_line=end_line, language=language, symbol=symbol)
        case DomainKnowledge(domain=domain):
            facts["domain"] = domain
    return facts


def _text_of(number: int, result: SearchResult) -> str:
    """One numbered line, and the content below it, indented: stored text cannot forge a numbered line, nor a chat's."""
    head = f"{number}. [{result.type}] {inline(result.title)} (score={result.score:.2f})\n"
    content = disarmed(result.content, is_code=result.type == _CODE_TYPE)
    return head + "".join(f"   {line}\n" for line in content.split("\n") if line.strip())
