"""Recall: the memories that are relevant to a query. Reads only.

Each stage is in the file of its name. They run one after the other on one thread, since a hand-off costs more than a
stage; stages without time left are skipped and reported.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from itertools import chain, islice

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from hummock.core.candidates import Candidates, Gathered
from hummock.core.deadline import Estimate
from hummock.core.embedding import Embedding, EmbeddingSpace, given_embedding
from hummock.core.errors import places_of
from hummock.core.memory import Memory
from hummock.core.recall import (
    CrossEncoding,
    Degradation,
    Hit,
    Intent,
    KeywordMode,
    NothingKnown,
    Plan,
    Recalled,
    RecallPath,
    RecallQuery,
    Receipt,
)
from hummock.ports.models import Clock, Embedder, EmbeddingLate
from hummock.ports.store import Snapshot
from hummock.recall.bridge import (
    add_translation_scores,
    gloss_of,
    glossed_terms,
    in_own_language,
    query_gloss,
    with_bridge,
)
from hummock.recall.diversify import Picked, pick
from hummock.recall.evidence import Unanswered, best_cosine, nothing_known
from hummock.recall.follow_up import FOLLOW_UP, in_session, leans, mean, together
from hummock.recall.fuse import Fused, fuse
from hummock.recall.hits import count, make_hits, with_neighbours, with_replacements
from hummock.recall.intent import AskIntent, at_event, event_query
from hummock.recall.named_code import LONGEST_QUESTION, WHAT_A_CLASS_DOES, with_named_code
from hummock.recall.plan import CODE, DOMAINS, KEEPS_ALL, MAIN, make_plan, parse_event_time
from hummock.recall.prefer import apply_rules
from hummock.recall.query_features import QueryFeatures, group_queries, looks_up_words, query_features
from hummock.recall.rerank import CrossEncode, late_scores
from hummock.recall.spelling import find_corrections, with_corrections, with_spelling
from hummock.recall.stage_budget import DEADLINE, GATHER, GATHER_ALL, GATHER_BY_VECTOR, SCAN, StageBudget, StageCosts
from hummock.text.glossary import Gloss
from hummock.text.question import Question, question_of

_log = logging.getLogger(__name__)
_NO_SIMILARITY = np.empty(0, np.float32)

_LATE = "late_interaction"
_NEIGHBOURS = "context_window"
_TO_LOAD = ("diversify", "load")
_TO_FINISH = ("fuse", *_TO_LOAD)
"""Stages that every recall ends with."""

_PATIENCE = 0.9
"""Share of the time for embedding that is spent waiting, so that after a timeout the other stages still have time."""

_INLINE_S = 0.02
"""A recall that lately took less runs inline; one that waits for a slow disk does not."""

_INLINE_HITS, _INLINE_CANDIDATES = 20, 100
"""Largest group that is answered inline; a larger reply takes too long to build."""


class Ranking(Struct, frozen=True, kw_only=True, eq=False):
    """State of a recall when its hits are chosen; groups are in the plan's order.

    Attributes:
        plan: The plan of the recall.
        features: The query in the forms that the paths need.
        gathered: The candidates of each group.
        fused: The remaining candidates, in order.
        picked: The hits.
        brings_neighbours: Whether there is time for the hits' neighbours, if they were asked for.
        cross_encoded: Number of candidates that the cross-encoder read.
        degraded: Stages that failed or were left out.
    """

    plan: Plan
    features: QueryFeatures
    gathered: Gathered
    fused: tuple[Fused, ...]
    picked: tuple[Picked, ...]
    brings_neighbours: bool
    cross_encoded: int
    degraded: tuple[Degradation, ...]


class Recall:
    """Answers recalls. Safe to call from several threads."""

    def __init__(
        self,
        embedder: Embedder,
        clock: Clock,
        cross_encode: CrossEncode | None = None,
        ask_intent: AskIntent | None = None,
        want: Callable[[str, Sequence[int]], None] | None = None,
    ) -> None:
        """Build a recall. Without `cross_encode` it has no cross-encoder, without `ask_intent` no language model.

        `want` gets a project and the store's numbers of hits that wait for their vectors.
        """
        self._embedder = embedder
        self._space = embedder.space
        self._clock = clock
        self._cross_encode = cross_encode or CrossEncode(None, CrossEncoding.OFF, clock)
        self._ask_intent = ask_intent
        self._want = want
        self._costs = StageCosts()

    def __call__(self, query: RecallQuery, project: Snapshot) -> Recalled:
        """The best memories of each group of the query's preset, with the reasons.

        A query that depends on what was said before is answered by itself and, if there is time, together with that.

        Raises: EmbSpaceMismatch, InvalidRequest.
        """
        if query.session_id:
            query = in_session(query, project)
        alone = self._answer(query, project)
        if not query.before:
            return alone
        if query.until_s is not None and self._clock.monotonic() + alone.receipt.elapsed_s > query.until_s:
            message = "there is no time to ask again, together with what was said before"
            late = Degradation(path=FOLLOW_UP, reason=DEADLINE, message=message)
            return replace(alone, degraded=(*alone.degraded, late))
        return mean(alone, self._answer(together(query), project), query.before)

    def _answer(self, query: RecallQuery, project: Snapshot) -> Recalled:
        """The answer to a query by itself."""
        budget = StageBudget(self._clock, self._costs.of(query.project), query.until_s)
        question = question_of(query.text)
        query, untimed = self._timed(query, question, project, budget)
        plan, features, degraded = self._understand(query, question, project, budget)
        ranking = self._rank(query, project, plan, features, budget)
        hits, docs = _load(query, project, ranking)
        budget.done("load")
        if query.include_superseded:
            hits = with_replacements(project, hits)
        cut: tuple[Degradation, ...] = ()
        if ranking.brings_neighbours:
            hits, cut = with_neighbours(project, query, hits, docs, features.echoes())
            budget.done(_NEIGHBOURS)
        gathered = ranking.gathered
        found, is_han = [ranked.candidates.cosine for ranked in ranking.fused], ranking.features.is_han
        similarity = self._space.calibration.similarity(np.concatenate(found), han=is_han) if found else _NO_SIMILARITY
        unanswered = nothing_known(ranking.fused, ranking.features, query.text, similarity)
        if self._want and project.stale_s is None and sum([found.pending for found in gathered.groups]):
            self._want(query.project, _without_vectors(ranking))
        return Recalled(
            hits=hits.get(MAIN, ()),
            code_fragments=hits.get(CODE, ()),
            domains=hits.get(DOMAINS, ()),
            intent=_with_domains(plan.intent, gathered.groups),
            receipt=_receipt(ranking, hits, budget, self._space),
            degraded=(
                *untimed,
                *degraded,
                *budget.left_out.values(),
                *_not_searched(gathered.groups),
                *ranking.degraded,
                *cut,
                *_not_read(project, ranking, docs),
            ),
            seq=gathered.seq,
            content_seq=gathered.content_seq,
            nothing_known=unanswered and _with_nearest(unanswered, project, ranking.fused, hits, docs),
        )

    def is_inline(self, query: RecallQuery, project: Snapshot) -> bool:
        """Whether it needs no model and no language model, and its stages were fast lately."""
        if query.context_window or query.keyword_mode is not KeywordMode.TERMS:
            return False
        if query.before or (query.session_id and leans(query)):
            return False
        if max(query.top_k or 0, query.code_top_k or 0) > _INLINE_HITS or (query.candidates or 0) > _INLINE_CANDIDATES:
            return False
        if (self._ask_intent and self._ask_intent.is_wanted(query)) or self._cross_encode.is_wanted(query):
            return False
        question = question_of(query.text)
        if parse_event_time(query, question) is not None:
            return False
        costs = self._costs.of(query.project)
        lately_s = Estimate.together_s([costs[stage] for stage in (GATHER_ALL, GATHER_BY_VECTOR, _LATE, *_TO_FINISH)])
        if lately_s >= _INLINE_S:
            return False
        # Last, since it takes longest.
        return (
            query.vector is not None or RecallPath.VECTOR not in query.paths or self._is_known(query, question, project)
        )

    def ranking(self, query: RecallQuery, project: Snapshot) -> Ranking:
        """Rank the candidates without loading the hits and without a deadline.

        Raises: EmbSpaceMismatch, InvalidRequest.
        """
        # Separate costs: this run must not change the estimates for recalls.
        budget = StageBudget(self._clock, StageCosts().of(query.project), None)
        question = question_of(query.text)
        query, _ = self._timed(query, question, project, budget)
        plan, features, degraded = self._understand(query, question, project, budget)
        ranking = self._rank(query, project, plan, features, budget)
        return replace(ranking, degraded=(*degraded, *_not_searched(ranking.gathered.groups), *ranking.degraded))

    def _timed(
        self, query: RecallQuery, question: Question, project: Snapshot, budget: StageBudget
    ) -> tuple[RecallQuery, tuple[Degradation, ...]]:
        """The query with the time of the event it names, which is searched for; or unchanged, with the reason.

        This is the first stage that gives way to the deadline: the query works without it.
        """
        told = parse_event_time(query, question)
        if told is None:
            return query, ()
        left_s = budget.left_s(*2 * ("embed", GATHER_ALL, _LATE, *_TO_FINISH))
        if left_s is not None and left_s < 0:
            message = "there is no time to look for what happened then"
            return query, (Degradation(path="intent", reason=DEADLINE, message=message),)
        ranking = self.ranking(event_query(query, told), project)
        found = [(ranked, places) for ranked, (places, _) in zip(ranking.fused, ranking.picked, strict=True)]
        return at_event(query, told, found), ()

    def _understand(
        self, query: RecallQuery, question: Question, project: Snapshot, budget: StageBudget
    ) -> tuple[Plan, QueryFeatures, tuple[Degradation, ...]]:
        """The plan, the query in the forms that the paths need, and what could not be done."""
        asking = self._ask_intent.begin(query) if self._ask_intent else None
        given = query.intent
        plan = self._plan(query, question, given, budget)
        budget.done("intent")
        space = self._space
        gloss = gloss_of(query, question, project, space)
        embedding, degraded = self._embedding(query, project, plan, gloss, budget)
        budget.done("embed")
        if asking:
            answer = asking.answer(budget.left_s(_LATE, _search_cost(plan, GATHER_ALL), *_TO_FINISH, _NEIGHBOURS))
            if isinstance(answer, Degradation):
                degraded = (answer, *degraded)
            else:
                given = answer
            plan = self._plan(query, question, given, budget)
            budget.done("ask_intent")
        features = query_features(query, question, plan, given, embedding, space, project.rarest)
        features = with_bridge(features, gloss, embedding, plan, space)
        if looks_up_words(plan):
            features = with_spelling(features, find_corrections(features, question, project))
        if len(features.tokens) and not budget.fits(_LATE, _LATE, _search_cost(plan, GATHER_ALL), *_TO_FINISH):
            features = replace(features, tokens=space.no_tokens(), bridge_tokens=space.no_tokens())
        return plan, features, degraded

    def _rank(
        self, query: RecallQuery, project: Snapshot, plan: Plan, features: QueryFeatures, budget: StageBudget
    ) -> Ranking:
        """Gather, fuse, rerank and diversify."""
        queries = group_queries(plan, features)
        gathered = project.search(queries)
        text = query.text
        if ":" in text or ", line " in text or WHAT_A_CLASS_DOES.search(text[-LONGEST_QUESTION:]):
            gathered = with_named_code(gathered, text, project)
        by_meaning = GATHER_ALL if len(features.tokens) else GATHER_BY_VECTOR
        budget.done(GATHER, _search_cost(plan, GATHER if features.vector is None else by_meaning))
        space = self._space
        mark = space.token_mark
        late = [late_scores(found, features, mark, in_own_language(found, space)) for found in gathered.groups]
        if features.bridge is not None:
            pairs = zip(gathered.groups, late, strict=True)
            over = [add_translation_scores(found, scores, features, space) for found, scores in pairs]
            gathered, late = replace(gathered, groups=tuple(found for found, _ in over)), [each for _, each in over]
        if features.spelling is not None:
            corrected = tuple(with_corrections(found, features, query.text) for found in gathered.groups)
            gathered = replace(gathered, groups=corrected)
        if len(features.tokens):
            budget.done(_LATE)
        best = best_cosine(gathered.groups, plan, features, space.calibration)
        fused = []
        for found, scores in zip(gathered.groups, late, strict=True):
            group = fuse(found, scores, plan, features, space.calibration, best)
            fused.append(apply_rules(group, plan, features, space.calibration, query.text, project))
        budget.done("fuse")
        # Decided before the cross-encoder takes what time is left: it gives way to neighbours.
        brings_neighbours = bool(query.context_window) and budget.fits(_NEIGHBOURS, _NEIGHBOURS, *_TO_LOAD)
        # The cross-encoder loads texts before it knows how many it can read.
        until_s = budget.until_s_of_the_least("load", *_TO_LOAD, *[_NEIGHBOURS] * brings_neighbours)
        reranked = self._cross_encode(query, project, fused, until_s)
        if reranked.pairs:
            budget.done("cross_encode")
        picked = [
            pick(plan, group, ranked, features, space.calibration.alike)
            for group, ranked in zip(plan.groups, reranked.fused, strict=True)
        ]
        budget.done("diversify")
        return Ranking(
            plan=plan,
            features=features,
            gathered=gathered,
            fused=reranked.fused,
            picked=tuple(picked),
            brings_neighbours=brings_neighbours,
            cross_encoded=reranked.pairs,
            degraded=reranked.degraded,
        )

    def _is_known(self, query: RecallQuery, question: Question, project: Snapshot) -> bool:
        """Whether the vectors of the query and of its gloss, if any, are cached."""
        gloss = gloss_of(query, question, project, self._space)
        return self._embedder.is_known(query.text, query_gloss(gloss))

    def _plan(self, query: RecallQuery, question: Question, given: Intent | None, budget: StageBudget) -> Plan:
        """The plan, with terms in place of substrings where there is no time to look through texts."""
        plan = make_plan(query, question, given, self._space.calibration.near_twin_bar, self._clock.now())
        if not plan.substrings or budget.fits("keyword", SCAN, *_TO_FINISH):
            return plan
        return replace(plan, substrings=())

    def _embedding(
        self, query: RecallQuery, project: Snapshot, plan: Plan, gloss: Gloss | None, budget: StageBudget
    ) -> tuple[Embedding | None, tuple[Degradation, ...]]:
        """The query's vectors, or why there are none. A model that fails or is late costs its path, not the recall."""
        given = None if query.vector is None else given_embedding("query_vector", query.vector, self._space)
        if RecallPath.VECTOR not in {path for group in plan.groups for path in group.paths}:
            return None, ()
        to_come = (_search_cost(plan, GATHER_BY_VECTOR), *_TO_FINISH)
        if not budget.fits("vector", *to_come):
            return None, ()
        if given is not None or not project.content_seq:
            # Nothing was ever learnt there: there is nothing to compare.
            return given, ()
        try:
            left_s = budget.left_s(*to_come)
            patience_s = None if left_s is None else _PATIENCE * left_s
            return self._embedder.embed_query(query.text, patience_s, query_gloss(gloss)), ()
        except EmbeddingLate as late:
            budget.leave_out("vector", str(late))
            return None, ()
        except Exception as error:  # whatever the runtime raises: the other paths still answer
            _log.error("a query was not embedded: %s at %s", type(error).__name__, places_of(error))
            return None, (Degradation(path="vector", reason="EMBEDDER_FAILED", message=type(error).__name__),)


def _load(query: RecallQuery, project: Snapshot, ranking: Ranking) -> tuple[dict[str, tuple[Hit, ...]], list[int]]:
    """The hits of each group, and the store's numbers of all; fewer than picked where a write took some away."""
    plan, features = ranking.plan, ranking.features
    hits: dict[str, tuple[Hit, ...]] = {}
    present: list[int] = []
    for group, ranked, (places, marks) in zip(plan.groups, ranking.fused, ranking.picked, strict=True):
        docs = ranked.candidates.rows["doc"][ranked.row[places]].tolist()
        memories = project.load(docs, full=query.full)
        hits[group.name] = make_hits(ranked, places, marks, memories, features, plan.as_of)
        present += [doc for doc, memory in zip(docs, memories, strict=True) if memory is not None]
    return hits, present


def _with_nearest(
    unanswered: Unanswered,
    project: Snapshot,
    groups: Sequence[Fused],
    hits: Mapping[str, Sequence[Hit]],
    docs: Sequence[int],
) -> NothingKnown:
    """The finding with the id and the title of the nearest memory, which is loaded if it is no hit.

    `docs` are the store's numbers of all hits, group by group.
    """
    memory: Memory | None = None
    if unanswered.row >= 0:
        doc = int(groups[unanswered.group].candidates.rows["doc"][unanswered.row])
        if doc in docs:
            memory = next(islice(chain.from_iterable(hits.values()), docs.index(doc), None)).memory
        else:
            (memory,) = project.load([doc], full=False)
    return NothingKnown(
        confidence=unanswered.confidence,
        nearest_id=memory.id if memory else "",
        nearest_title=memory.index.title if memory else "",
        reason=unanswered.reason,
    )


def _search_cost(plan: Plan, kind: str) -> str:
    """Return the cost kind of a search by what it reads; reading texts outweighs all else."""
    return SCAN if plan.substrings else kind


def _with_domains(intent: Intent, groups: tuple[Candidates, ...]) -> Intent:
    """The intent with the domains that the store found by name, unless the caller named them."""
    if intent.domains:
        return intent
    found = dict.fromkeys([name for group in groups for name in group.domain_names])
    return replace(intent, domains=tuple(found)) if found else intent


def _not_searched(groups: tuple[Candidates, ...]) -> tuple[Degradation, ...]:
    """The degradations for memories without vectors yet, and for texts too many to be searched for substrings."""
    pending, cut = sum([found.pending for found in groups]), sum([found.is_cut for found in groups])
    left_out: tuple[Degradation, ...] = ()
    if pending:
        searched = sum([found.searched for found in groups])
        message = (
            f"{pending} of {searched} memories have no vectors yet ({pending / searched:.1%}); only words find them"
        )
        left_out = (Degradation(path="vector", reason="VECTORS_PENDING", message=message),)
    if cut:
        message = "the project has more text than is searched for substrings; older memories were not looked at"
        left_out += (Degradation(path="keyword", reason="SCAN_CUT", message=message),)
    return left_out


def _not_read(project: Snapshot, ranking: Ranking, docs: Sequence[int]) -> tuple[Degradation, ...]:
    """The degradations for damaged memories, and for an answer from memory while the store cannot be reached."""
    left_out: tuple[Degradation, ...] = ()
    if count := project.damaged():
        message = f"{count} memories are damaged on the disk and were left out; restore them from a backup or an export"
        left_out = (Degradation(path="memories", reason="RECORDS_DAMAGED", message=message),)
    if project.stale_s is not None:
        message = (
            f"the database cannot be reached; this is what was seen last of the project, as of seq {project.seq}, "
            f"{math.ceil(project.stale_s)} s old at most"
        )
        if missing := sum([len(places) for places, _ in ranking.picked]) - len(docs):
            message += f"; {missing} hits are left out, for their texts are not in memory"
        left_out += (Degradation(path="memories", reason="STALE", message=message),)
    return left_out


def _without_vectors(ranking: Ranking) -> list[int]:
    """The store's numbers of the hits that have none yet, the best last."""
    docs: list[int] = []
    for ranked, (places, _) in zip(ranking.fused, ranking.picked, strict=True):
        rows = ranked.row[places]
        docs += ranked.candidates.rows["doc"][rows[np.isnan(ranked.candidates.cosine[rows])]].tolist()
    return docs[::-1]


def _receipt(
    ranking: Ranking, hits: Mapping[str, tuple[Hit, ...]], budget: StageBudget, space: EmbeddingSpace
) -> Receipt:
    plan, gloss = ranking.plan, ranking.features.gloss
    groups = {found.name: (found, ranked) for found, ranked in zip(ranking.gathered.groups, ranking.fused, strict=True)}
    _, main = groups.get(MAIN, (None, None))
    stages, elapsed_s = budget.end()
    is_bounded = plan.min_similarity > KEEPS_ALL
    return Receipt(
        preset=plan.preset,
        stages=stages,
        groups=tuple([count(found, ranked, hits[name]) for name, (found, ranked) in groups.items()]),
        emb_space=space.id,
        as_of=plan.as_of,
        vector_weight=main.vector_share if main else 0.0,
        late_interaction_weight=main.late_share if main else 0.0,
        elapsed_s=elapsed_s,
        times=plan.times,
        cross_encoded=ranking.cross_encoded,
        gloss=glossed_terms(gloss),
        gloss_version=gloss.version if gloss else "",
        min_similarity=plan.min_similarity if is_bounded else None,
        min_of_best=plan.min_of_best if is_bounded else None,
        min_cosine=space.calibration.cosine(plan.min_similarity, han=ranking.features.is_han) if is_bounded else None,
    )
