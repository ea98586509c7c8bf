"""Candidates written by hand, for tests of ranking."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hummock.core.candidates import Candidates, FoundBy, TokenVectors
from hummock.core.embedding import Calibration
from hummock.core.memory import Filter, MemoryKind, Origin
from hummock.core.recall import (
    CAPPED,
    Decay,
    GroupPlan,
    Intent,
    MmrRelevance,
    Plan,
    Preset,
    RecallPath,
    TimeInterval,
    Wanted,
)
from hummock.recall.evidence import best_cosine
from hummock.recall.fuse import Fused, fuse
from hummock.recall.plan import TIME_SHARE
from hummock.recall.query_features import QueryFeatures
from hummock.recall.rerank import late_scores
from hummock.store.tables.row_codec import speaker_hash
from hummock_kernels.pool import ROW

NOW = 1_750_000_000.0
DAY = 86_400.0
PLAIN = Calibration(unrelated_latin=0.0, unrelated_han=0.0, near_twin_bar=0.9)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One candidate; the defaults are a note found by its vector."""

    id: str
    cosine: float = 0.5
    keyword: float = 0.0
    matched: int = 0
    found_by: FoundBy = FoundBy.VECTOR
    kind: MemoryKind = MemoryKind.NOTE
    origin: Origin = Origin.MANUAL
    age_days: float = 0.0
    text_hash: int | None = None
    vector: tuple[float, ...] = (1.0, 0.0)
    tokens: tuple[int, ...] = ()
    event_time: float = math.nan
    session: int = 0
    session_position: int = -1
    traits: int = 0
    speaker: str = ""
    name: int = 0
    file: int = 0
    helpful: int = 0
    wrong: int = 0
    writer: int = 0


def candidates(rows: Sequence[Row], rarity: Sequence[float] = (1.0, 1.0)) -> Candidates:
    dim = len(rows[0].vector) if rows else 2
    columns = np.zeros(len(rows), ROW)
    for name in ("kind", "origin", "event_time", "session", "session_position", "traits", "file"):
        columns[name] = [getattr(row, name) for row in rows]
    columns["doc"] = np.arange(len(rows))
    columns["create_time"] = [NOW - row.age_days * DAY for row in rows]
    columns["speaker"] = [speaker_hash(row.speaker) for row in rows]
    columns["name_hash"] = [row.name for row in rows]
    columns["text_hash"] = [place + 1 if row.text_hash is None else row.text_hash for place, row in enumerate(rows)]
    columns["copy_hash"] = columns["text_hash"]
    return Candidates(
        name="main",
        searched=len(rows),
        ids=lambda: tuple(row.id for row in rows),
        rows=columns,
        cosine=np.array([row.cosine for row in rows], np.float32),
        keyword=np.array([row.keyword for row in rows], np.float32),
        matched=np.array([row.matched for row in rows], np.uint32),
        found_by=np.array([row.found_by for row in rows], np.uint8),
        vectors=np.array([row.vector for row in rows], np.float16).reshape(len(rows), dim).view(np.uint16),
        vector_row=np.arange(len(rows), dtype=np.int64),
        best_chunk=np.zeros(len(rows), np.int64),
        rarity=np.array(rarity, np.float32),
        helpful=np.array([row.helpful for row in rows], np.uint8),
        wrong=np.array([row.wrong for row in rows], np.uint8),
        writer=np.array([row.writer for row in rows], np.uint32),
        tokens=tokens(rows),
    )


def tokens(rows: Sequence[Row]) -> TokenVectors:
    counts = [len(row.tokens) for row in rows]
    return TokenVectors(
        values=token_values([direction for row in rows for direction in row.tokens]),
        start=np.cumsum([0, *counts]).astype(np.int64),
    )


def token_values(directions: Sequence[int]) -> NDArray[np.int8]:
    """Token vectors along these axes: equal ones have a cosine of 1, others of 0."""
    values = np.zeros((len(directions), 64), np.int8)
    values[np.arange(len(directions)), list(directions)] = 127
    return values


def ranked(found: Candidates, how: Plan, query: QueryFeatures) -> Fused:
    """The candidates as recall orders them, late interaction included."""
    return fuse(found, late_scores(found, query), how, query, PLAIN, best_cosine([found], how, query, PLAIN))


def plan(
    *,
    decay: Decay | None = None,
    min_similarity: float = -1.0,
    min_of_best: float | None = None,
    relevance_weight: float = 1.0,
    near_twin_bar: float = 2.0,
    writer_cap: int = CAPPED,
    mmr_relevance: MmrRelevance = MmrRelevance.SCORE,
    as_of: float = NOW,
    neighbours: bool = True,
    times: tuple[TimeInterval, ...] = (),
    wanted: Wanted = Wanted.NOTHING,
) -> Plan:
    group = GroupPlan(name="main", kinds=frozenset(MemoryKind), top_k=10, paths=frozenset(RecallPath), pool=50)
    return Plan(
        preset=Preset.AGENT,
        groups=(group,),
        filter=Filter(),
        min_similarity=min_similarity,
        code_bar=None,
        min_of_best=min_similarity if min_of_best is None else min_of_best,
        decay=decay or Decay(),
        relevance_weight=relevance_weight,
        near_twin_bar=near_twin_bar,
        writer_cap=writer_cap,
        mmr_relevance=mmr_relevance,
        late_interaction=True,
        neighbours=neighbours,
        substrings=(),
        times=times,
        time_share=TIME_SHARE,
        wanted=wanted,
        intent=Intent(),
        as_of=as_of,
    )


def features(
    *,
    terms: tuple[str, ...] = ("a", "b"),
    hashes: frozenset[int] = frozenset(),
    known: float = 1.0,
    asked: Sequence[int] = (),
    is_name: bool = False,
    term_weights: Sequence[float] = (1.0, 1.0),
) -> QueryFeatures:
    return QueryFeatures(
        vector=np.array([1.0, 0.0], np.float32),
        tokens=token_values(asked),
        terms=terms,
        words=terms,
        term_weights=np.array(term_weights, np.float32),
        domain_names=frozenset(),
        domain_text="",
        echoes=lambda: hashes,
        exact_name="",
        name_terms=(),
        is_name=is_name,
        known_share=known,
        is_han=False,
    )
