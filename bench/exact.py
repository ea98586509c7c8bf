"""Part `exact`: what recalls in setting B find against an exact search, and how long they take."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median

import numpy as np
from numpy.typing import NDArray

from bench.asking import in_process_latency, nearest_alone, recall_requests
from bench.command import Options
from bench.corpus import TAG_SHARES, TAGS, Corpus, place_of
from bench.goals import Judge
from bench.recall import NOT_MEASURED
from bench.report import Findings, Row
from bench.stores import B
from hummock.core.recall import Recalled, RecallQuery
from hummock.rpc.recall_messages import recall_query
from hummock.wiring.service import open_use_cases

Vectors = NDArray[np.float32]
Flags = NDArray[np.bool_]
Recall = Callable[[RecallQuery], Recalled]

PART = "exact"
K = 10
_QUERIES = 300
_WARM_UP = 100
_SCANS = 50
_ROUNDING = 1e-4
"""Vectors are kept as float16, which moves a cosine by up to half of this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A filter by tags, and what is asked of it.

    Attributes:
        recall: The least recall@10.
        share: Longest p50 of a recall, as a share of an exact scan of all rows by NumPy.
    """

    name: str
    tags: tuple[str, ...]
    recall: float
    share: float


CASES = (
    Case(name="a filter that 1/64 pass", tags=("narrow",), recall=1.0, share=0.1),
    Case(name="a filter that 75 % pass", tags=("most",), recall=0.99, share=0.2),
    Case(name="no filter", tags=(), recall=0.99, share=0.2),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """Mean share of the true nearest that were found: float16's rounding forgiven, and not."""

    recall: float
    strict: float


def measure(options: Options) -> Findings:
    """Recall@10, numbers of results and times, all in process."""
    filled = options.stores.filled(B)
    corpus, vectors, tagged = filled.corpus, np.asarray(filled.vectors()), filled.tagged()
    rows: list[Row] = []
    with open_use_cases(filled.bench.settings(), say=lambda line: None) as use_cases:
        for case in CASES:
            passing = np.ones(len(vectors), np.bool_)
            for tag in case.tags:
                passing = passing & tagged[tag]
            rows.append(_share_row(case, share_of_nearest(use_cases.recall, corpus, case.tags, vectors, passing)))
        rows.append(_counts_row(use_cases.recall, corpus, tagged))
    measured = max(options.queries // 4, 1)
    scan_ms = _scan_ms(corpus, vectors)
    for case in CASES:
        # The questions above would come from the recall cache.
        requests = recall_requests(corpus, range(_QUERIES, _QUERIES + _WARM_UP + measured), *case.tags)
        latency = in_process_latency(filled.bench, requests[:_WARM_UP], requests[_WARM_UP:])
        what = f"B: recall in process, {case.name}, p50"
        judge = Judge(name="an exact scan by NumPy", value=scan_ms)
        rows.append(Row.beside(what, case.share, latency.p50_ms, judge, latency.line()))
    figures = (("calls before those that count, for each filter", str(_WARM_UP)),)
    return Findings(part=PART, rows=tuple(rows), figures=figures, not_measured=NOT_MEASURED)


def share_of_nearest(recall: Recall, corpus: Corpus, tags: tuple[str, ...], vectors: Vectors, passing: Flags) -> Share:
    """Share of the ten exact nearest that the vector path alone found; other paths have no exact answer."""
    places = np.flatnonzero(passing)
    rows = np.ascontiguousarray(vectors[places])
    forgiving, strict = [], []
    for request in recall_requests(corpus, range(_QUERIES), *tags):
        scores = rows @ np.frombuffer(request.query_vector.values, "<f4")
        hits = recall(recall_query(nearest_alone(request))).hits
        found = np.searchsorted(places, [place_of(hit.memory.id) for hit in hits])
        best = nearest_exactly(scores, K)
        least = scores[best].min() - _ROUNDING
        forgiving.append(np.count_nonzero(scores[found] >= least) / len(best))
        strict.append(len(np.intersect1d(found, best)) / len(best))
    return Share(recall=float(np.mean(forgiving)), strict=float(np.mean(strict)))


def _scan_ms(corpus: Corpus, vectors: Vectors) -> float:
    """Median of what NumPy takes for the ten nearest of all rows in float32, on as many threads as it likes."""
    times_s = []
    for request in recall_requests(corpus, range(_SCANS)):
        query = np.frombuffer(request.query_vector.values, "<f4")
        started_s = time.perf_counter()
        scores = vectors @ query
        np.argpartition(-scores, K)[:K]
        times_s.append(time.perf_counter() - started_s)
    return 1e3 * median(times_s)


def nearest_exactly(scores: Vectors, k: int) -> NDArray[np.int64]:
    """Places of the k largest scores, best first, ties by the smaller place; all where there are fewer."""
    return np.argsort(-scores, kind="stable")[:k]


def scarce(tagged: dict[str, Flags], most: int) -> Iterator[tuple[tuple[str, ...], int]]:
    """Filters by three tags that at most so many memories pass, none included, and how many those are."""
    named = [tag for tag in tagged if tag not in TAG_SHARES]
    for pair in itertools.combinations(named, 2):
        tags = ("narrow", *pair)
        matches = int(np.count_nonzero(np.logical_and.reduce([tagged[tag] for tag in tags])))
        if matches <= most:
            yield tags, matches


def _counts_row(recall: Recall, corpus: Corpus, tagged: dict[str, Flags]) -> Row:
    """Share of recalls that return all matches, up to ten, if few memories pass; for both kinds of recall."""
    asked = kept = 0
    for number, (tags, matches) in enumerate(scarce(tagged, 2 * K)):
        (request,) = recall_requests(corpus, [_QUERIES - 1 - number % _QUERIES], *tags)
        for query in (recall_query(request), recall_query(nearest_alone(request))):
            asked += 1
            kept += len(recall(query).hits) == min(K, matches)
    what = "B: share of recalls with min(10, matches) results, filters that 0 to 20 memories pass"
    return Row.at_least(what, 1.0, kept / asked, "", note=f"{asked} recalls with {len(TAGS)} tags in pairs")


def _share_row(case: Case, share: Share) -> Row:
    what = f"B: recall@10 of the vector path against exact float32, {case.name}"
    note = (
        f"a hit within {_ROUNDING} of the tenth cosine counts, for vectors are kept as float16; else {share.strict:.4f}"
    )
    return Row.at_least(what, case.recall, share.recall, "", note=note)
