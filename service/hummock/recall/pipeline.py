"""Recall: the memories that bear on a query. A pure read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from hummock.core.candidates import Candidates, Gathered
from hummock.core.embedding import Embedding, EmbeddingSpace, given_embedding
from hummock.core.estimate import Estimate
from hummock.core.recall import (
    CrossEncoding,
    Degradation,
    Hit,
    Intent,
    KeywordMode,
    Plan,
    Recalled,
    RecallPath,
    RecallQuery,
    Receipt,
)
from hummock.ports.models import Clock, Embedder, EmbeddingLate
from hummock.ports.store import Recallable
from hummock.recall.fuse import Fused, Picked, fuse, pick
from hummock.recall.hits import count, make_hits, with_neighbours
from hummock.recall.intent import AskIntent, analyse_intent
from hummock.recall.plan import CODE, DOMAINS, MAIN, make_plan
from hummock.recall.query_features import MAX_TERMS, Probe, exact_name, group_queries, is_name
from hummock.recall.rerank import CrossEncode, late_scores
from hummock.recall.stage_budget import GATHER, GATHER_ALL, GATHER_BY_VECTOR, SCAN, StageCosts, Timetable
from hummock.text.analyzer import query_terms
from hummock.text.normalise import is_han, known_share, prose, short_hash, text_hash


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ranking:
    """What a recall knows when its hits are chosen; groups are in the plan's order.

    Attributes:
        plan: What was asked for.
        probe: The query in the forms that the paths need.
        gathered: Every group's candidates.
        fused: Those that are left, in order.
        picked: The hits.
        cross_encoded: How many candidates the cross-encoder read.
        degraded: What could not be done.
    """

    plan: Plan
    probe: Probe
    gathered: Gathered
    fused: tuple[Fused, ...]
    picked: tuple[Picked, ...]
    cross_encoded: int
    degraded: tuple[Degradation, ...]


MOST_BYTES = 14 * 1024 * 1024
"""Room for hits and what stands beside them, as they are stored. A reply may have 16 MiB, and names fields, scores and
terms besides; what stands beside several hits is sent with each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """Hits of one group, and the store's number of each."""

    hits: tuple[Hit, ...]
    docs: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Accompanied:
    """Hits of each group with what stands beside them, and what had to be left out."""

    hits: Mapping[str, tuple[Hit, ...]]
    degraded: tuple[Degradation, ...] = ()


def accompanied(store: Recallable, query: RecallQuery, probe: Probe, loaded: Mapping[str, Loaded]) -> Accompanied:
    """The hits with the neighbours that the query asks for; groups share the room, those of the first come first."""
    docs = [doc for group in loaded.values() for doc in group.docs]
    beside = store.beside(query.project, docs, query.context_window, full=query.full, most_bytes=MOST_BYTES)
    given = iter(beside)
    hits = {
        name: with_neighbours(
            group.hits, list(islice(given, len(group.hits))), query.filter.excluded_ids, probe.text_hashes
        )
        for name, group in loaded.items()
    }
    return Accompanied(hits=hits, degraded=_neighbours_cut(sum(found.is_cut for found in beside), len(docs)))


def _neighbours_cut(cut: int, count: int) -> tuple[Degradation, ...]:
    if not cut:
        return ()
    message = (
        f"neighbours of {cut} of {count} hits were left out, for the reply would be too large; ask for fewer hits, "
        "fewer neighbours or the INDEX view"
    )
    return (Degradation(path="context_window", reason="REPLY_LIMIT", message=message),)


_LATE = "late_interaction"
_NEIGHBOURS = "context_window"
_TO_LOAD = ("diversify", "load")
_TO_FINISH = ("fuse", *_TO_LOAD)
"""Stages that every recall ends with."""

_PATIENCE = 0.9
"""Share of the time for embedding that is waited: a wait in vain ends where the rest must do without any delay."""

_BRIEF_S = 0.02
"""A recall that takes less is brief; one that waits for a slow disk is not."""

_BRIEF_HITS, _BRIEF_CANDIDATES = 20, 100
"""Of each group at most: a reply of more takes its time to be made."""

_ATTEMPTS = 3
"""Searches that a recall makes at most: writes that edit the very memories it has ranked make it search again."""


class Recall:
    """Answers recalls. Safe to call from several threads."""

    def __init__(
        self,
        store: Recallable,
        embedder: Embedder,
        clock: Clock,
        cross_encode: CrossEncode | None = None,
        ask_intent: AskIntent | None = None,
    ) -> None:
        """Without `cross_encode` the service has no cross-encoder, without `ask_intent` no language model."""
        self._store = store
        self._embedder = embedder
        self._clock = clock
        self._cross_encode = cross_encode or CrossEncode(store, None, CrossEncoding.OFF, clock)
        self._ask_intent = ask_intent
        self._costs = StageCosts()

    def __call__(self, query: RecallQuery) -> Recalled:
        """The best memories of each group of the query's preset, and why.

        Raises: EmbSpaceMismatch, InvalidRequest, SeqNotReached.
        """
        timetable = Timetable(self._clock, self._costs.of(query.project), query.until_s)
        asked = self._asked(query, timetable)
        for _ in range(_ATTEMPTS):
            search = self._search(query, asked, timetable)
            if search.is_whole:
                break
        hits, ranking, gathered = search.hits, search.ranking, search.ranking.gathered
        return Recalled(
            hits=hits.get(MAIN, ()),
            code_fragments=hits.get(CODE, ()),
            domains=hits.get(DOMAINS, ()),
            intent=_with_domains(ranking.plan.intent, gathered.groups),
            receipt=_receipt(search, timetable, self._embedder.space),
            degraded=(*asked.degraded, *timetable.left_out, *_cut(gathered.groups), *search.degraded),
            seq=gathered.seq,
            content_seq=gathered.content_seq,
        )

    def is_brief(self, query: RecallQuery) -> bool:
        """Whether no model need be run and nobody be asked for it, and nothing takes long that lately did not."""
        has_vector = (
            query.vector is not None or RecallPath.VECTOR not in query.paths or self._embedder.is_known(query.text)
        )
        if not has_vector or query.context_window or query.keyword_mode is not KeywordMode.TERMS:
            return False
        if max(query.top_k or 0, query.code_top_k or 0) > _BRIEF_HITS or (query.candidates or 0) > _BRIEF_CANDIDATES:
            return False
        if (self._ask_intent and self._ask_intent.is_wanted(query)) or self._cross_encode.is_wanted(query):
            return False
        costs = self._costs.of(query.project)
        lately_s = Estimate.together_s([costs[stage] for stage in (GATHER_ALL, GATHER_BY_VECTOR, _LATE, *_TO_FINISH)])
        return lately_s < _BRIEF_S

    def ranking(self, query: RecallQuery) -> Ranking:
        """The same as far as hits are chosen, whatever time it takes; none is loaded.

        Raises: EmbSpaceMismatch, InvalidRequest, SeqNotReached.
        """
        # Costs of its own: what is asked here is no measure of what recalls take.
        timetable = Timetable(self._clock, StageCosts().of(query.project), None)
        asked = self._asked(query, timetable)
        gathered, fused = self._fused(query, asked, timetable)
        ranking = self._ranking(query, asked, gathered, fused, None, timetable)
        return replace(ranking, degraded=(*asked.degraded, *_cut(gathered.groups), *ranking.degraded))

    def _asked(self, query: RecallQuery, timetable: Timetable) -> _Asked:
        """The plan, and the query in the forms that the paths need."""
        asking = self._ask_intent.begin(query) if self._ask_intent else None
        space = self._embedder.space
        plan = self._plan(query, query.intent, timetable)
        timetable.done("intent")
        embedding, degraded = self._embedding(query, plan, timetable)
        timetable.done("embed")
        given = query.intent
        if asking:
            answer = asking.answer(timetable.left_s(_LATE, _gathering(plan, GATHER_ALL), *_TO_FINISH, _NEIGHBOURS))
            given, degraded = answer.intent or given, (*answer.degraded, *degraded)
            plan = self._plan(query, given, timetable)
            timetable.done("ask_intent")
        probe = _probe(query, plan, given, embedding, space)
        if len(probe.tokens) and not timetable.fits(_LATE, _LATE, _gathering(plan, GATHER_ALL), *_TO_FINISH):
            probe = replace(probe, tokens=space.no_tokens())
        return _Asked(plan=plan, probe=probe, degraded=degraded)

    def _search(self, query: RecallQuery, asked: _Asked, timetable: Timetable) -> _Search:
        """Gather, score late, fuse, cross-encode, diversify and load, once."""
        gathered, fused = self._fused(query, asked, timetable)
        # Decided before the cross-encoder takes what time is left: it gives way to neighbours.
        brings_neighbours = bool(query.context_window) and timetable.fits(_NEIGHBOURS, _NEIGHBOURS, *_TO_LOAD)
        # It loads what it reads, before it knows how much it can read.
        until_s = timetable.until_s_of_the_least("load", *_TO_LOAD, *[_NEIGHBOURS] * brings_neighbours)
        ranking = self._ranking(query, asked, gathered, fused, until_s, timetable)
        loaded = {
            group.name: self._loaded(query, asked, ranked, picked)
            for group, ranked, picked in zip(asked.plan.groups, ranking.fused, ranking.picked, strict=True)
        }
        timetable.done("load")
        found = Accompanied(hits={name: group.hits for name, group in loaded.items()})
        if brings_neighbours:
            found = accompanied(self._store, query, asked.probe, loaded)
            timetable.done(_NEIGHBOURS)
        return _Search(
            ranking=ranking,
            hits=found.hits,
            is_whole=sum(map(len, found.hits.values())) == sum(len(places) for places, _ in ranking.picked),
            degraded=(*ranking.degraded, *found.degraded),
        )

    def _plan(self, query: RecallQuery, given: Intent | None, timetable: Timetable) -> Plan:
        intent = analyse_intent(query.text, given)
        plan = make_plan(query, intent, self._embedder.space.calibration.near_twin_bar, self._clock.now())
        return _in_time(plan, timetable)

    def _fused(self, query: RecallQuery, asked: _Asked, timetable: Timetable) -> tuple[Gathered, tuple[Fused, ...]]:
        """Every group's candidates, and their order."""
        plan, probe = asked.plan, asked.probe
        gathered = self._store.candidates(query.project, group_queries(plan, probe), query.min_seq)
        by_meaning = GATHER_ALL if len(probe.tokens) else GATHER_BY_VECTOR
        timetable.done(GATHER, _gathering(plan, GATHER if probe.vector is None else by_meaning))
        late = [late_scores(found, probe, self._embedder.space.token_mark) for found in gathered.groups]
        if len(probe.tokens):
            timetable.done(_LATE)
        calibration = self._embedder.space.calibration
        fused = tuple(
            fuse(found, scores, plan, probe, calibration) for found, scores in zip(gathered.groups, late, strict=True)
        )
        timetable.done("fuse")
        return gathered, fused

    def _ranking(
        self,
        query: RecallQuery,
        asked: _Asked,
        gathered: Gathered,
        fused: Sequence[Fused],
        until_s: float | None,
        timetable: Timetable,
    ) -> Ranking:
        """Cross-encode, as far as the time allows, and diversify."""
        plan = asked.plan
        read = self._cross_encode(query, [group.name for group in plan.groups], fused, until_s)
        if read.pairs:
            timetable.done("cross_encode")
        picked = tuple(pick(plan, group, ranked) for group, ranked in zip(plan.groups, read.fused, strict=True))
        timetable.done("diversify")
        return Ranking(
            plan=plan,
            probe=asked.probe,
            gathered=gathered,
            fused=read.fused,
            picked=picked,
            cross_encoded=read.pairs,
            degraded=read.degraded,
        )

    def _embedding(
        self, query: RecallQuery, plan: Plan, timetable: Timetable
    ) -> tuple[Embedding | None, tuple[Degradation, ...]]:
        """The query's vectors, or why there are none. A model that fails or is late costs its path, not the recall."""
        given = None if query.vector is None else given_embedding("query_vector", query.vector, self._embedder.space)
        if RecallPath.VECTOR not in query.paths:
            return None, ()
        to_come = (_gathering(plan, GATHER_BY_VECTOR), *_TO_FINISH)
        if not timetable.fits("vector", *to_come):
            return None, ()
        if given is not None or not self._store.generation(query.project).content_seq:
            # Nothing was ever learnt there: there is nothing to compare.
            return given, ()
        try:
            left_s = timetable.left_s(*to_come)
            return self._embedder.embed_query(query.text, None if left_s is None else _PATIENCE * left_s), ()
        except EmbeddingLate as late:
            timetable.leave_out("vector", str(late))
            return None, ()
        except Exception as error:  # whatever the runtime raises: the other paths still answer
            return None, (Degradation(path="vector", reason="EMBEDDER_FAILED", message=type(error).__name__),)

    def _loaded(self, query: RecallQuery, asked: _Asked, fused: Fused, picked: Picked) -> Loaded:
        places, is_twin = picked
        docs = fused.candidates.doc[fused.row[places]].tolist()
        memories = self._store.load(query.project, docs, full=query.full)
        hits = make_hits(fused, places, is_twin, memories, asked.probe.terms, asked.plan.as_of)
        present = tuple(doc for doc, memory in zip(docs, memories, strict=True) if memory is not None)
        return Loaded(hits=hits, docs=present)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Asked:
    """A query as it is understood."""

    plan: Plan
    probe: Probe
    degraded: tuple[Degradation, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Search:
    """What one search found; not whole when a write took a memory away between its ranking and its loading."""

    ranking: Ranking
    hits: Mapping[str, tuple[Hit, ...]]
    is_whole: bool
    degraded: tuple[Degradation, ...]


def _in_time(plan: Plan, timetable: Timetable) -> Plan:
    """The plan with terms in place of substrings where there is no time to look through texts."""
    if not plan.substrings or timetable.fits("keyword", SCAN, *_TO_FINISH):
        return plan
    return replace(plan, substrings=())


def _gathering(plan: Plan, kind: str) -> str:
    """What a search costs depends on what it looks for; where it reads texts, all else is little beside it."""
    return SCAN if plan.substrings else kind


def _probe(
    query: RecallQuery, plan: Plan, given: Intent | None, embedding: Embedding | None, space: EmbeddingSpace
) -> Probe:
    # What is named comes first: a long query has more terms than are looked for.
    words = [*(given.keywords if given else ()), query.text]
    named = given.domains if given else ()
    names_all = query.intent is not None and bool(query.intent.domains)
    hashes = (text_hash(query.text, is_code=is_code) for is_code in (False, True))
    name = exact_name(query.text)
    return Probe(
        vector=None if embedding is None else embedding.vector,
        tokens=embedding.tokens if embedding is not None and plan.late_interaction else space.no_tokens(),
        terms=plan.substrings or tuple(dict.fromkeys(term for text in words for term in query_terms(text)))[:MAX_TERMS],
        domain_names=frozenset(map(prose, named)),
        domain_text="" if names_all else query.text,
        text_hashes=frozenset(map(short_hash, hashes)),
        exact_name=name,
        name_terms=tuple(dict.fromkeys(query_terms(name)))[:MAX_TERMS] if name else (),
        is_name=is_name(query.text),
        known_share=known_share(query.text, space.scripts),
        is_han=is_han(query.text),
    )


def _with_domains(intent: Intent, groups: tuple[Candidates, ...]) -> Intent:
    """The intent with the domains that the store found by name, unless the caller named them."""
    if intent.domains:
        return intent
    found = dict.fromkeys(name for group in groups for name in group.domain_names)
    return replace(intent, domains=tuple(found))


def _cut(groups: tuple[Candidates, ...]) -> tuple[Degradation, ...]:
    """What is said where there were too many texts to look for substrings in all of them."""
    if not any(found.is_cut for found in groups):
        return ()
    message = "the project has more text than is searched for substrings; older memories were not looked at"
    return (Degradation(path="keyword", reason="SCAN_CUT", message=message),)


def _receipt(search: _Search, timetable: Timetable, space: EmbeddingSpace) -> Receipt:
    ranking, plan = search.ranking, search.ranking.plan
    ranked_by_name = {group.name: ranked for group, ranked in zip(plan.groups, ranking.fused, strict=True)}
    main = ranked_by_name.get(MAIN)
    return Receipt(
        preset=plan.preset,
        stages=timetable.times,
        groups=tuple(
            count(found, ranked, len(search.hits[found.name]))
            for found, ranked in zip(ranking.gathered.groups, ranking.fused, strict=True)
        ),
        emb_space=space.id,
        as_of=plan.as_of,
        vector_weight=main.vector_share if main else 0.0,
        late_interaction_weight=main.late_share if main else 0.0,
        elapsed_s=timetable.elapsed_s,
        times=plan.times,
        cross_encoded=ranking.cross_encoded,
    )
