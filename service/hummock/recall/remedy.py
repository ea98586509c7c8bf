"""Explain: why a recall brought back a memory, or did not, and the fewest changes that would. A pure read."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from datetime import UTC, datetime
from enum import IntEnum

from hummock.core.embedding import Calibration
from hummock.core.explain import Change, Explained, ExplainQuery, LossStage, Numbers, Remedy, Verdict
from hummock.core.memory import CodeFragment, Filter, Memory, MemoryKind
from hummock.core.recall import MAX_QUERY_CHARACTERS, MAX_TOP_K, DecayMode, Intent, IntentMode, RecallPath, RecallQuery
from hummock.ports.models import Clock
from hummock.ports.store import Store
from hummock.recall.explain import group_place, judge, lost_unasked, sentence
from hummock.recall.pipeline import Recall
from hummock.recall.plan import CODE, DOMAINS, NO_TWINS, PRESETS, decay_of, tuned
from hummock.recall.query_features import group_queries
from hummock.text.normalise import is_han

_FILTER = "filter."
_PATHS: Mapping[str, str] = {
    "text": "query_text",
    "intent": "intent.keywords",
    "paths": "paths",
    "candidates": "candidates",
    "top_k": "top_k",
    "code_top_k": "code_top_k",
    "domain_top_k": "domain_top_k",
    "min_similarity": "min_similarity",
    "decay_mode": "decay.mode",
    "relevance_weight": "relevance_weight",
    "near_twin_bar": "near_twin_bar",
    "window_turns": "window_turns",
}
_NAMES = {path: name for name, path in _PATHS.items()}


def changes(asked: RecallQuery, changed: RecallQuery) -> tuple[Change, ...]:
    """Every field that differs, by its path in the request, and its new value."""
    own = [
        Change(field=path, value=_text(getattr(changed, name)))
        for name, path in _PATHS.items()
        if getattr(asked, name) != getattr(changed, name)
    ]
    of_filter = [
        Change(field=f"{_FILTER}{field.name}", value=_condition_text(getattr(changed.filter, field.name)))
        for field in fields(Filter)
        if getattr(asked.filter, field.name) != getattr(changed.filter, field.name)
    ]
    return (*own, *of_filter)


def fewest(asked: RecallQuery, changed: RecallQuery, is_enough: Callable[[RecallQuery], bool]) -> RecallQuery:
    """The recall with the changes that are needed: each is taken back where the others are enough."""
    differences = changes(asked, changed)
    for change in differences if len(differences) > 1 else ():
        without = _taken_back(asked, changed, change.field)
        if is_enough(without):
            changed = without
    return changed


def _taken_back(asked: RecallQuery, changed: RecallQuery, path: str) -> RecallQuery:
    if path.startswith(_FILTER):
        name = path.removeprefix(_FILTER)
        return replace(changed, filter=replace(changed.filter, **{name: getattr(asked.filter, name)}))
    name = _NAMES[path]
    return replace(changed, **{name: getattr(asked, name)})


def _condition_text(value: object) -> str:
    """The same for a condition of the filter, where numbers are Unix seconds."""
    return datetime.fromtimestamp(value, UTC).isoformat() if isinstance(value, float) else _text(value)


def _text(value: object) -> str:
    """A value as people write it; empty for none."""
    match value:
        case None:
            return ""
        case Intent(keywords=keywords):
            return ", ".join(keywords)
        case IntEnum():
            return value.name
        case str():
            return value
        case float():
            return f"{value:g}"
        case frozenset():
            return "" if value == frozenset(RecallPath) else ", ".join(map(_text, sorted(value)))
        case Sequence():
            return ", ".join(map(_text, value))
    return str(value)


MAX_CANDIDATES = 1000
MAX_EXCLUDED = 512
MAX_NAMES = 64
_ONLY_RELEVANCE = 1.0
_OTHER_TEXT = "?"
"""At the end of a query it changes what the query equals, and next to nothing of what it means."""


def remedied(query: RecallQuery, verdict: Verdict, memory: Memory) -> RecallQuery | None:
    """The recall with one change that takes the memory past the stage that lost it; None where there is none.

    It may be lost at a later stage then. Only what the contract allows is proposed.

    Args:
        query: As it was asked for.
        verdict: What it did with the memory; its stage is not None.
        memory: It, with its payload.
    """
    if verdict.stage is None:
        return query
    return _REMEDIES[verdict.stage](query, verdict, memory)


def with_room(query: RecallQuery, group: str, room: int) -> RecallQuery:
    """The recall with room for so many hits in a group."""
    if group == CODE:
        return replace(query, code_top_k=room)
    if group == DOMAINS:
        return replace(query, domain_top_k=room)
    return replace(query, top_k=room)


def _say_more(query: RecallQuery, verdict: Verdict, memory: Memory) -> RecallQuery | None:
    del verdict, memory
    return replace(query, intent=Intent(keywords=(query.text.strip(),)))


def _open_group(query: RecallQuery, verdict: Verdict, memory: Memory) -> RecallQuery | None:
    del verdict
    defaults = PRESETS[query.preset]
    if memory.kind is MemoryKind.CODE_FRAGMENT:
        return replace(query, code_top_k=defaults.code_top_k or 1)
    return replace(query, domain_top_k=defaults.domain_top_k or 1)


def _loosen(query: RecallQuery, verdict: Verdict, memory: Memory) -> RecallQuery | None:
    """Every condition that it does not meet takes it in as well, or falls where that cannot be."""
    where = query.filter
    loose: dict[str, Callable[[], Filter]] = {
        "kinds": lambda: replace(where, kinds=where.kinds | {memory.kind}),
        "origins": lambda: replace(where, origins=(where.origins or PRESETS[query.preset].origins) | {memory.origin}),
        "tags": lambda: replace(where, tags=()),
        "session_ids": lambda: replace(where, session_ids=_with(where.session_ids, memory.session_id)),
        "paths": lambda: replace(where, paths=_with(where.paths, _path_of(memory))),
        "speakers": lambda: replace(where, speakers=_with(where.speakers, memory.speaker)),
        "created_after": lambda: replace(where, created_after=None),
        "created_before": lambda: replace(where, created_before=None),
        "excluded_ids": lambda: replace(
            where, excluded_ids=tuple(name for name in where.excluded_ids if name != memory.id)
        ),
    }
    for name in verdict.failed:
        where = loose[name]()
    return replace(query, filter=where)


def _with(names: tuple[str, ...], name: str) -> tuple[str, ...]:
    """With one more; none at all, which is no condition, where the memory has none or there is no room."""
    return (*names, name) if name and len(names) < MAX_NAMES else ()


def _path_of(memory: Memory) -> str:
    detail = memory.payload.detail if memory.payload else None
    return detail.path if isinstance(detail, CodeFragment) else ""


def _shorten_window(query: RecallQuery, verdict: Verdict, memory: Memory) -> RecallQuery | None:
    del memory
    return replace(query, window_turns=int(verdict.value) - 1)


def _widen(query: RecallQuery, verdict: Verdict, memory: Memory) -> RecallQuery | None:
    rank, pool = int(verdict.value), int(verdict.threshold)
    # A prefilter may miss one whose rank would do.
    wanted = rank if rank > pool else 2 * pool
    if rank and wanted <= MAX_CANDIDATES:
        return replace(query, candidates=wanted)
    if query.paths != frozenset(RecallPath):
        return replace(query, paths=frozenset(RecallPath))
    return _narrow(query, verdict, memory)


def _reword(query: RecallQuery, verdict: Verdict, memory: Memory) -> RecallQuery | None:
    del verdict, memory
    return replace(query, text=query.text[: MAX_QUERY_CHARACTERS - len(_OTHER_TEXT)] + _OTHER_TEXT)


def _lower_minimum(query: RecallQuery, verdict: Verdict, memory: Memory) -> RecallQuery | None:
    del memory
    # Down to two digits, which people read and a float32 keeps below the similarity.
    return replace(query, min_similarity=max(-1.0, math.floor(verdict.value * 100 - 1e-3) / 100))


def _exclude_copies(query: RecallQuery, verdict: Verdict, memory: Memory) -> RecallQuery | None:
    del memory
    excluded = (*query.filter.excluded_ids, *verdict.others)
    if len(excluded) > MAX_EXCLUDED:
        return None
    return replace(query, filter=replace(query.filter, excluded_ids=excluded))


def _lengthen(query: RecallQuery, verdict: Verdict, memory: Memory) -> RecallQuery | None:
    numbers = verdict.numbers or Numbers()
    if numbers.place <= MAX_TOP_K:
        # Room beyond the pool makes a larger pool, in which others may come before it.
        room = numbers.place if numbers.place <= numbers.pool else min(2 * numbers.place, MAX_TOP_K)
        return with_room(query, verdict.group, room)
    if numbers.relevance_rank <= MAX_TOP_K:
        return replace(query, relevance_weight=_ONLY_RELEVANCE, near_twin_bar=NO_TWINS)
    if decay_of(query).mode is not DecayMode.OFF:
        return replace(query, decay_mode=DecayMode.OFF)
    return _narrow(query, verdict, memory)


def _keep_twins(query: RecallQuery, verdict: Verdict, memory: Memory) -> RecallQuery | None:
    del verdict, memory
    return replace(query, near_twin_bar=NO_TWINS)


def _by_relevance(query: RecallQuery, verdict: Verdict, memory: Memory) -> RecallQuery | None:
    del verdict, memory
    return replace(query, relevance_weight=_ONLY_RELEVANCE)


def _narrow(query: RecallQuery, verdict: Verdict, memory: Memory) -> RecallQuery | None:
    """The next condition that it meets and others may not: where it is from, then its kind, then when it was made."""
    del verdict
    where, path, second = query.filter, _path_of(memory), float(math.floor(memory.create_time))
    end = second + 1 if where.created_before is None else min(second + 1, where.created_before)
    for is_open, narrower in (
        (path and where.paths != (path,), replace(where, paths=(path,))),
        (
            memory.session_id and where.session_ids != (memory.session_id,),
            replace(where, session_ids=(memory.session_id,)),
        ),
        (memory.index.tags and not where.tags, replace(where, tags=memory.index.tags)),
        (where.kinds != {memory.kind}, replace(where, kinds=frozenset({memory.kind}))),
        (
            where.created_after is None or where.created_after < second,
            replace(where, created_after=second, created_before=end),
        ),
    ):
        if is_open:
            return replace(query, filter=narrower)
    return None


_REMEDIES: Mapping[LossStage, Callable[[RecallQuery, Verdict, Memory], RecallQuery | None]] = {
    LossStage.QUERY: _say_more,
    LossStage.GROUP: _open_group,
    LossStage.FILTER: _loosen,
    LossStage.WINDOW: _shorten_window,
    LossStage.CANDIDATES: _widen,
    LossStage.ECHO: _reword,
    LossStage.MIN_SIMILARITY: _lower_minimum,
    LossStage.DUPLICATE: _exclude_copies,
    LossStage.RANK: _lengthen,
    LossStage.NEAR_TWIN: _keep_twins,
    LossStage.DIVERSITY: _by_relevance,
}


MOST_TRIES = 12
"""Recalls that are tried one after the other, each with one change more."""


class Explain:
    """Runs the recall in question and looks where it loses the memory. Safe to call from several threads."""

    def __init__(self, recall: Recall, store: Store, calibration: Calibration, clock: Clock) -> None:
        """Args are the recall without a cache, the store that it reads, its embedder's calibration, and the clock."""
        self._recall = recall
        self._store = store
        self._calibration = calibration
        self._clock = clock

    def __call__(self, query: ExplainQuery) -> Explained:
        """What became of the memory; where it was lost, what brings it back has been tried out.

        A memory of another project is not found, as one that does not exist.

        Raises: EmbSpaceMismatch, InvalidRequest, SeqNotReached.
        """
        # A deadline decides by the machine's load, and a language model never twice the same: neither can be explained
        # afterwards. Who wants to know of a model's intent sends the one that the recall answered with.
        asked = replace(query.recall, until_s=None, intent_mode=IntentMode.LEXICAL)
        asked, from_project = tuned(asked, self._store.generation(asked.project).settings)
        explained = self._explained(asked, query)
        return replace(explained, project_settings=from_project)

    def _explained(self, asked: RecallQuery, query: ExplainQuery) -> Explained:
        in_chinese = is_han(asked.text)
        (memory,) = self._store.get(asked.project, [query.memory_id], asked.min_seq, full=True)
        verdict = None if memory is None else self._verdict(asked, memory)
        if memory is None or verdict is None or verdict.stage is None:
            return Explained(verdict=verdict, sentence=sentence(verdict, None, in_chinese=in_chinese))
        remedy = self._remedy(asked, verdict, memory, query.recall.until_s)
        return Explained(verdict=verdict, sentence=sentence(verdict, remedy, in_chinese=in_chinese), remedy=remedy)

    def _verdict(self, query: RecallQuery, memory: Memory) -> Verdict | None:
        """What the recall did with the memory; None when it was removed meanwhile."""
        ranking = self._recall.ranking(query)
        lost = lost_unasked(query, ranking.plan, memory.kind)
        place = group_place(ranking.plan, memory.kind)
        if lost is not None or place is None:
            return lost
        group_query = group_queries(ranking.plan, ranking.probe)[place]
        standing = self._store.standing(query.project, group_query, memory.id)
        return None if standing is None else judge(ranking, place, memory, standing, self._calibration)

    def _remedy(self, asked: RecallQuery, verdict: Verdict, memory: Memory, until_s: float | None) -> Remedy | None:
        """The fewest changes that bring the memory back, as far as one change after the other finds them."""
        changed, now = asked, verdict
        for _ in range(MOST_TRIES):
            if until_s is not None and self._clock.monotonic() >= until_s:
                return None  # nobody waits any more
            following = remedied(changed, now, memory)
            then = None if following is None else self._verdict(following, memory)
            if following is None or then is None:
                return None
            changed, now = following, then
            if now.stage is None:
                return self._least(asked, changed, memory)
        return None

    def _least(self, asked: RecallQuery, changed: RecallQuery, memory: Memory) -> Remedy | None:
        """The changes that are needed; None when a write took the memory away meanwhile."""
        recall = fewest(asked, changed, lambda query: self._rank(query, memory) > 0)
        verdict = self._verdict(recall, memory)
        if verdict is None or verdict.stage is not None:
            return None
        rank = int(verdict.value)
        # Where there has to be more room, no more than it needs: less makes a smaller pool, and perhaps a higher rank.
        while (room := with_room(recall, verdict.group, rank)) != recall:
            rank_there = self._rank(room, memory)
            if not rank_there or len(changes(asked, room)) != len(changes(asked, recall)):
                break
            recall, rank = room, rank_there
        return Remedy(changes=changes(asked, recall), recall=recall, rank=rank)

    def _rank(self, query: RecallQuery, memory: Memory) -> int:
        """Its rank among the hits of its group, from 1; 0 when it is none."""
        verdict = self._verdict(query, memory)
        return int(verdict.value) if verdict is not None and verdict.stage is None else 0
