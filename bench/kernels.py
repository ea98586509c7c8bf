"""Part `kernels`: the scoring kernel against the memory's bandwidth, and the choice of hits."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median

import numpy as np
from numpy.typing import NDArray

from bench.command import Options
from bench.goals import Judge
from bench.peers.work import different
from bench.report import Findings, Row
from bench.stores import DIM, SEED
from hummock_kernels import reference
from hummock_kernels.cosine import Chunks, scan
from hummock_kernels.mmr import NO_CAP, mmr
from hummock_kernels.pool import ROW

# After the kernels, which prepare its environment.
import numba  # isort: skip

PART = "kernels"
_ROWS = 100_000
_KEEP = 50
_ROUNDS = 60
_CHOSEN = 10
_CHOICES = 4000
_BANDWIDTH_PERCENT, _CHOICE_SHARE = 80.0, 0.1
NOT_MEASURED = ("kernels on more than one core at a time, or on rows that are in no cache: see the machine's L3",)


@numba.njit("uint64(uint64[::1])", nogil=True)
def read_once(words: NDArray[np.uint64]) -> int:
    """Reads an array from one end to the other and does as little with it as lets the compiler keep the reads."""
    total = np.uint64(0)
    for place in range(words.shape[0]):
        total ^= words[place]
    return int(total)


def measure(options: Options) -> Findings:
    """The kernel and the reading take turns, so that both meet the same machine."""
    random = np.random.default_rng(SEED)
    rows = _unit(random.standard_normal((_ROWS, DIM)))
    halves = np.ascontiguousarray(rows, np.float16).view(np.uint16)
    words = halves.view(np.uint64).reshape(-1)
    chunks, allowed = Chunks(halves, np.arange(_ROWS), np.ones(_ROWS, np.int32)), np.ones(_ROWS, np.uint8)
    queries = _unit(random.standard_normal((_ROUNDS, DIM)))
    scans_s, reads_s = [], []
    for query in queries:
        reads_s.append(_seconds(lambda: read_once(words)))
        scans_s.append(_seconds(lambda: scan(chunks, allowed, query, -np.inf, _KEEP)))  # noqa: B023 - called now
    scan_s, read_s = median(scans_s), median(reads_s)
    reference_s = _seconds(lambda: reference.scan(chunks, allowed, queries[0], -np.inf, _KEEP))
    choice_us, numpy_us, reference_us = _choice_us(random)
    scan_what = "scoring kernel (filter, cosine, top 50), float16, 100,000 rows of 384: of one thread's read bandwidth"
    return Findings(
        part=PART,
        rows=(
            Row.at_least(scan_what, _BANDWIDTH_PERCENT, 100 * read_s / scan_s, "%"),
            Row.beside(
                "maximal marginal relevance, 10 of 50 at 384 dims, p50 of a call",
                _CHOICE_SHARE,
                choice_us,
                Judge(name="NumPy's", value=numpy_us, unit="µs"),
            ),
        ),
        figures=(
            ("scoring kernel, p50", f"{1e3 * scan_s:.3f} ms, {halves.nbytes / scan_s / 1e9:.1f} GB/s"),
            ("reading the same array once, p50", f"{1e3 * read_s:.3f} ms, {halves.nbytes / read_s / 1e9:.1f} GB/s"),
            ("scoring kernel's reference twin in NumPy, once", f"{1e3 * reference_s:.1f} ms"),
            ("choice of 10 of 50, reference twin, p50", f"{reference_us:.0f} µs"),
        ),
        not_measured=NOT_MEASURED,
    )


def _choice_us(random: np.random.Generator) -> tuple[float, float, float]:
    """Microseconds of the kernel, of plain NumPy and of the reference twin, for candidates that resemble each other."""
    centre = _unit(random.standard_normal((1, DIM)))
    vectors = _unit(centre + _unit(random.standard_normal((_KEEP, DIM))))
    relevance = np.ascontiguousarray(np.sort(random.random(_KEEP))[::-1], np.float32)
    rows = np.zeros(_KEEP, ROW)
    rows["name_hash"] = 1
    halves, every = vectors.astype(np.float16).view(np.uint16), np.arange(_KEEP)
    arguments = (halves, every, rows, every, relevance, 0.7, 0.6, 0.9, _CHOSEN, NO_CAP)
    times_s = [_seconds(lambda: mmr(*arguments)) for _ in range(_CHOICES)]
    reference_s = [_seconds(lambda: reference.mmr(*arguments)) for _ in range(20)]
    numpy_s = [_seconds(lambda: different(centre[0], vectors)) for _ in range(_CHOICES // 10)]
    return 1e6 * median(times_s), 1e6 * median(numpy_s), 1e6 * median(reference_s)


def _unit(values: NDArray[np.floating]) -> NDArray[np.float32]:
    return np.ascontiguousarray(values / np.linalg.norm(values, axis=-1, keepdims=True), np.float32)


def _seconds(work: Callable[[], object]) -> float:
    started_s = time.perf_counter()
    work()
    return time.perf_counter() - started_s
