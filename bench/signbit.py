"""`python -m bench.signbit`: recall of sign bits and of hnswlib against an exact scan, on vectors of real texts."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

import numpy as np
from numpy.typing import NDArray

from bench.machine import Machine
from bench.texts import Cached, Texts, Vectors
from hummock.core.errors import HummockError
from hummock.models.embedder import open_embedder
from hummock.models.registry import find
from hummock.store.views.sign_bits import SignBits, packed_query
from hummock_kernels.cosine import Chunks, scan, score_rows
from hummock_kernels.signbit import nearest_signs
from hummock_kernels.topk import top_k

Rows = NDArray[np.int64]
Bits = NDArray[np.uint64]
Finder = Callable[[Vectors, int], Rows]

_MODELS = ("bge-small-zh-v1.5", "all-MiniLM-L6-v2")
_POOLS = (500, 1000, 2000, 4000)
_EF = (64, 128)
_MOST = 50
_COLUMNS = (
    *("model", "rows", "method", "recall@10", "worst set", "recall@50", "worst set"),
    *("p50 ms", "index MiB", "build s", "read MiB"),
)
NOT_MEASURED = (
    "more than the rows given: 1,000,000 rows are extrapolated from the bytes that a query touches",
    "recall of hnswlib after removals, and of filters inside it",
    "a corpus of one domain, where all texts are near each other",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """One way to find the nearest rows, ready to be asked.

    Attributes:
        index_bytes: What it keeps beside the float16 rows.
        build_s: To make that.
        touched_bytes: What one query reads of index and rows; None where it depends on the query.
    """

    name: str
    finder: Finder
    index_bytes: int
    build_s: float
    touched_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """Recall of a method against an exact scan: mean of all queries, and of the set of queries that did worst."""

    model: str
    rows: int
    method: str
    recall_at_10: float
    recall_at_10_worst_set: float
    recall_at_50: float
    recall_at_50_worst_set: float
    p50_ms: float
    index_mib: float
    build_s: float
    touched_mib: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """All results; `real_rows` are chunks of texts, rows beyond them are made up between real ones."""

    machine: Machine
    real_rows: dict[str, int]
    queries: dict[str, int]
    results: list[Result]
    not_measured: tuple[str, ...] = NOT_MEASURED


def padded(real: Vectors, count: int) -> Vectors:
    """The real vectors and, up to `count`, others between one and a fairly near one, with noise; all of length 1."""
    random = np.random.default_rng(20)
    blocks = [real]
    missing = count - len(real)
    while missing > 0:
        take = min(missing, 4096)
        base = real[random.integers(0, len(real), take)]
        others = real[random.integers(0, len(real), (take, 32))]
        near = others[np.arange(take), np.einsum("nd,nkd->nk", base, others).argmax(axis=1)]
        weight = random.uniform(0.5, 0.9, (take, 1)).astype(np.float32)
        noise = random.standard_normal(base.shape).astype(np.float32) * (0.3 / base.shape[1] ** 0.5)
        blocks.append(weight * base + (1 - weight) * near + noise)
        missing -= take
    rows = np.concatenate(blocks)
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


def measured(model: str, rows: Vectors, queries: dict[str, Vectors]) -> Iterator[Result]:
    """Every method on these rows."""
    halves = _halves(rows)
    every = np.ones(len(rows), np.uint8)
    chunks = Chunks(halves, np.arange(len(rows)), np.ones(len(rows), np.int32))

    def exact(query: Vectors, k: int) -> Rows:
        return scan(chunks, every, query, -np.inf, k)[0]

    truth = {name: [exact(query, _MOST) for query in each] for name, each in queries.items()}
    scanned = Method(name="exact scan", finder=exact, index_bytes=0, build_s=0.0, touched_bytes=halves.nbytes)
    for method in (scanned, *_signs(rows), *_hnsw(rows)):
        yield _result(model, len(rows), method, queries, truth)


def _result(model: str, rows: int, method: Method, queries: dict[str, Vectors], truth: dict[str, list[Rows]]) -> Result:
    at_10, at_50, seconds = [], [], []
    for name, each in queries.items():
        shares: dict[int, list[float]] = {10: [], _MOST: []}
        for query, true in zip(each, truth[name], strict=True):
            started_s = time.perf_counter()
            found = method.finder(query, _MOST)
            seconds.append(time.perf_counter() - started_s)
            for k, share in shares.items():
                share.append(len(np.intersect1d(found[:k], true[:k])) / len(true[:k]))
        at_10.append(shares[10])
        at_50.append(shares[_MOST])
    return Result(
        model=model,
        rows=rows,
        method=method.name,
        recall_at_10=float(np.mean(np.concatenate(at_10))),
        recall_at_10_worst_set=min(float(np.mean(each)) for each in at_10),
        recall_at_50=float(np.mean(np.concatenate(at_50))),
        recall_at_50_worst_set=min(float(np.mean(each)) for each in at_50),
        p50_ms=median(seconds) * 1e3,
        index_mib=method.index_bytes / 2**20,
        build_s=method.build_s,
        touched_mib=None if method.touched_bytes is None else method.touched_bytes / 2**20,
    )


def _signs(rows: Vectors) -> Iterator[Method]:
    """The store's way, differing signs that all count the same, signs around the mean, and rotated ones."""
    dim = rows.shape[1]
    rotation = np.linalg.qr(np.random.default_rng(21).standard_normal((dim, dim)))[0].astype(np.float32)
    yield from _sign_methods("signs", rows, rows, packed_query, _POOLS)
    yield from _sign_methods("signs, unweighted", rows, rows, _unweighted, _POOLS)
    yield from _sign_methods("signs around the mean", rows, rows - rows.mean(axis=0), packed_query, _POOLS[2:3])
    turned = rows @ rotation
    yield from _sign_methods("rotated signs", rows, turned, lambda query: packed_query(query @ rotation), _POOLS[2:3])


def _sign_methods(
    name: str, rows: Vectors, signed: Vectors, pack: Callable[[Vectors], Bits], pools: Sequence[int]
) -> Iterator[Method]:
    """Pools from the signs of `signed`, scored by `rows`."""
    halves, signed_halves = _halves(rows), _halves(signed)
    every = np.ones(len(halves), np.uint8)
    row_doc = np.arange(len(halves), dtype=np.int32)
    started_s = time.perf_counter()
    bits = SignBits.of(signed_halves).blocks
    build_s = time.perf_counter() - started_s
    for pool in pools:

        def finder(query: Vectors, k: int, *, pool: int = pool) -> Rows:
            picks = nearest_signs(bits, row_doc, every, pack(query), pool)
            return picks[top_k(score_rows(halves, query, picks), every[: len(picks)], k)]

        touched = bits.nbytes + row_doc.nbytes + every.nbytes + pool * halves.shape[1] * 2
        yield Method(
            name=f"{name}, {pool}", finder=finder, index_bytes=bits.nbytes, build_s=build_s, touched_bytes=touched
        )


def _unweighted(query: Vectors) -> Bits:
    packed = packed_query(query)
    packed[1], packed[2] = np.uint64(2**64 - 1), np.uint64(0)
    return packed


def _hnsw(rows: Vectors) -> Iterator[Method]:
    """Graphs of M=16, efC=200, built and asked by one thread; nothing where hnswlib is not installed."""
    try:
        import hnswlib
    except ImportError:
        print("hnswlib is not installed: skipped", file=sys.stderr)
        return
    index = hnswlib.Index(space="ip", dim=rows.shape[1])
    index.init_index(max_elements=len(rows), ef_construction=200, M=16, random_seed=20)
    started_s = time.perf_counter()
    index.add_items(rows, num_threads=1)
    build_s = time.perf_counter() - started_s
    for ef in _EF:

        def finder(query: Vectors, k: int, *, ef: int = ef) -> Rows:
            index.set_ef(ef)
            return np.asarray(index.knn_query(query, k=k, num_threads=1)[0][0], np.int64)

        yield Method(
            name=f"hnswlib, ef {ef}",
            finder=finder,
            index_bytes=index.index_file_size(),
            build_s=build_s,
            touched_bytes=None,
        )


def _halves(values: Vectors) -> NDArray[np.uint16]:
    return np.ascontiguousarray(values, np.float16).view(np.uint16)


def markdown(report: Report) -> str:
    """The report as Markdown."""
    lines = [
        "## Sign bits and hnswlib against an exact scan",
        "",
        *report.machine.lines(),
        *(f"- {model}: {rows} rows of real texts, more are made up" for model, rows in report.real_rows.items()),
        f"- queries: {', '.join(f'{count} of {name}' for name, count in report.queries.items())}",
        "",
        f"| {' | '.join(_COLUMNS)} |",
        f"|---|---:|---{'|---:' * (len(_COLUMNS) - 3)}|",
    ]
    for each in report.results:
        touched = "" if each.touched_mib is None else f"{each.touched_mib:.1f}"
        recalls = (each.recall_at_10, each.recall_at_10_worst_set, each.recall_at_50, each.recall_at_50_worst_set)
        cells = [each.model, str(each.rows), each.method, *(f"{recall:.4f}" for recall in recalls)]
        cells += [f"{each.p50_ms:.2f}", f"{each.index_mib:.1f}", f"{each.build_s:.2f}", touched]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, "", "Not measured:", *(f"- {each}" for each in report.not_measured)])


def measure(models: list[str], models_dir: Path, shared: Path, cache: Path, sizes: Sizes) -> Report:
    """Embeds what is not in the cache and measures every method, on the real rows and among the made-up ones too."""
    cache.mkdir(parents=True, exist_ok=True)
    machine = Machine.here(cache)
    texts = Texts.read(shared, sizes.queries)
    results: list[Result] = []
    real_rows = {}
    for name in models:
        embedder = open_embedder(find(name, models_dir), models_dir)
        try:
            cached = Cached(embedder=embedder, folder=cache)
            real = np.concatenate([cached.chunks(texts.documents), cached.chunks(texts.pieces(sizes.pieces))])
            queries = {each: cached.queries(asked) for each, asked in texts.queries.items()}
        finally:
            embedder.close()
        real_rows[name] = len(real)
        for rows in (real, padded(real, sizes.rows))[: 2 if sizes.rows > len(real) else 1]:
            results.extend(measured(name, rows, queries))
    counts = {each: len(asked) for each, asked in texts.queries.items()}
    return Report(machine=machine, real_rows=real_rows, queries=counts, results=results)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How much: queries of each set, pieces of texts embedded as distractors, rows with the made-up ones."""

    queries: int
    pieces: int
    rows: int


def main() -> None:
    """The command line: the table to stdout, the whole report to the file of --json."""
    parser = argparse.ArgumentParser(prog="python -m bench.signbit", description=(__doc__ or "").partition(": ")[2])
    parser.add_argument("--models-dir", type=Path, required=True, help="where the models are")
    parser.add_argument("--shared", type=Path, required=True, help="the folder that holds datasets/")
    parser.add_argument("--cache", type=Path, required=True, help="where vectors are kept for the next run")
    parser.add_argument("--models", nargs="+", default=list(_MODELS), help="names of models")
    parser.add_argument("--queries", type=int, default=300, help="of each data set")
    parser.add_argument("--pieces", type=int, default=49_152, help="distractors that are embedded")
    parser.add_argument("--rows", type=int, default=100_000, help="rows with the made-up ones")
    parser.add_argument("--json", type=Path, help="write the report there")
    given = parser.parse_args()
    sizes = Sizes(queries=given.queries, pieces=given.pieces, rows=given.rows)
    try:
        report = measure(given.models, given.models_dir, given.shared, given.cache, sizes)
    except (HummockError, OSError) as failed:
        sys.exit(f"error: {failed}")
    if given.json:
        values = asdict(report)
        given.json.write_text(json.dumps(values, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
    print(markdown(report))


if __name__ == "__main__":
    main()
