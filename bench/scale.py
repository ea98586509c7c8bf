"""Parts `start`, `growth` and `projects`: a start, one project that grows, very many projects."""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from statistics import median

from bench.asking import RECALL, TAG, WARM_UP_CALLS, Latency, caller, check_replies, recall_messages, timed
from bench.command import Options
from bench.goals import Headline, Judge
from bench.peers.running import QDRANT_EDGE, run_peer
from bench.recall import NOT_MEASURED
from bench.report import Findings, Row
from bench.service import Serving
from bench.stores import DIM, A, B, Filled, Setting
from hummock.store.lmdb.saved_views import SAVED_VIEWS
from hummock_client.v1 import admin_service_pb2 as admin_pb
from hummock_client.v1.admin_service_pb2_grpc import AdminServiceStub

START, GROWTH, PROJECTS = "start", "growth", "projects"
_MIB = 1 << 20
_MIB_NOTE = "1 MB is 1,048,576 bytes here"

_STARTS = 3
_RECALLS = 640
_MEMORY_TIMES = 3.0
_LIBRARIES = "import grpc, lmdb, msgspec, numba, numpy, onnxruntime, tokenizers, google.protobuf.message"
_START_NOT_MEASURED = (
    "a start with a real model: a stub stands for it, whose file is 40 KB; onnxruntime itself is loaded and counted",
    "a start from a cold page cache, and one that compiles the kernels",
)

_SIZES = (
    Setting(name="tenth-of-B", memories=10_000, projects=1),
    B,
    Setting(name="ten-times-B", memories=1_000_000, projects=1),
)
_START_S = 5.0
_GROWTH = 2.5

_MANY = Setting(name="many-projects", memories=1_000_000, projects=10_000)
_WARM_UP = 100
_IDLE_S = 10.0
_TOUCH_TIMES = 3.0


def measure_start(options: Options) -> Findings:
    """Seconds from exec to the first answer, with a stub for the model; memory with all projects loaded."""
    filled = options.stores.filled(A)
    messages = recall_messages(filled.corpus, range(_RECALLS + _STARTS), TAG)
    serving_s, first_answer_s = [], []
    for start, message in enumerate(messages[:_STARTS], 1):
        with filled.bench.serving() as service:
            serving_s.append(time.perf_counter() - service.started_s)
            first_answer_s.append(_first_answer_s(service, message))
            if start == _STARTS:
                one_mib = service.anonymous_bytes() / _MIB
                # Questions go to the projects in turn, so that these load all of them.
                check_replies(timed(caller(service.channel, RECALL), (), messages[_STARTS:]).replies)
                all_mib, resident_mib = service.anonymous_bytes() / _MIB, service.resident_bytes() / _MIB
    libraries = Judge(
        name=f"Python {platform.python_version()} with the same libraries", value=_libraries_s(), unit="s"
    )
    vectors = Judge(name="its vectors in float32", value=A.memories * DIM * 4 / _MIB, unit="MB")
    memory = "A: anonymous resident memory (RssAnon) with all 16 projects loaded, after 640 recalls"
    return Findings(
        part=START,
        headlines=(Headline.of("start", median(first_answer_s), libraries),),
        rows=(Row.beside(memory, _MEMORY_TIMES, all_mib, vectors, _MIB_NOTE),),
        figures=(
            ("exec to serving, s", _listed(serving_s)),
            ("exec to the first answer, s", _listed(first_answer_s)),
            ("anonymous memory with one project loaded, MB", f"{one_mib:.0f}"),
            ("resident memory with all loaded, libraries and the mapped store included, MB", f"{resident_mib:.0f}"),
        ),
        not_measured=_START_NOT_MEASURED,
    )


def _libraries_s() -> float:
    """Seconds from exec to the exit of a Python that imports the service's libraries, median."""
    times_s = []
    for _ in range(_STARTS):
        started_s = time.perf_counter()
        subprocess.run([sys.executable, "-c", _LIBRARIES], check=True)
        times_s.append(time.perf_counter() - started_s)
    return median(times_s)


def _listed(seconds: list[float]) -> str:
    return ", ".join(f"{each:.2f}" for each in seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grown:
    """One size: recalls with a filter that a quarter passes and without one, and what the memories take.

    `loaded_s` is from exec to the first answer of a service that makes its view of the tables, `first_answer_s` that of
    the next one, which finds the view of a large project saved.
    """

    memories: int
    loaded_s: float
    first_answer_s: float
    recall: Latency
    unfiltered: Latency
    anonymous_bytes: int
    disk_bytes: int
    live_bytes: int

    def line(self) -> str:
        """A line for people."""
        return (
            f"{self.recall.line()}; without a filter {self.unfiltered.line()}; "
            f"first answer {self.first_answer_s:.1f} s behind exec, {self.loaded_s:.1f} s without a saved view; "
            f"anonymous memory {self.anonymous_bytes / _MIB:.0f} MB; "
            f"disk {self.disk_bytes / self.memories:.0f} bytes a memory, live {self.live_bytes / self.memories:.0f}"
        )


def measure_growth(options: Options) -> Findings:
    """Recalls, starts, memory and disk at each size."""
    grown = [_grown(options.stores.filled(setting), options.queries) for setting in _SIZES]
    _, base, largest = grown
    filled = options.stores.filled(_SIZES[-1])
    rows, figures, skipped = [], [], []
    for name, tag, ours, before in (
        ("filter project + tag (1/4)", TAG, largest.recall, base.recall),
        ("no filter but the project", "", largest.unfiltered, base.unfiltered),
    ):
        what = f"1,000,000 memories in one project: recall, {name}, over gRPC, p50"
        peer = run_peer(QDRANT_EDGE, filled, filled.setting.memories, options.stores.directory, tag)
        if isinstance(peer, str):
            skipped.append(f"1,000,000 memories beside a peer: {peer}")
        else:
            judge = Judge(name=f"{peer.package} {peer.version} in process", value=peer.p50_ms)
            rows.append(Row.beside(what, 1.0, ours.p50_ms, judge, peer.line()))
            figures.append((f"{peer.package} {peer.version}, {name}", peer.line()))
        rows.append(Row.beside(what, _GROWTH, ours.p50_ms, Judge(name="that of B", value=before.p50_ms)))
    start = "1,000,000 memories in one project: from exec to the first answer over gRPC"
    rows.append(Row.guide(f"{start}, its view saved", _START_S, largest.first_answer_s, "s"))
    figures.append((f"{start}, its view made of the tables, s", f"{largest.loaded_s:.2f}"))
    return Findings(
        part=GROWTH,
        rows=tuple(rows),
        figures=(*((f"{each.memories:,} memories in one project", each.line()) for each in grown), *figures),
        skipped=tuple(skipped),
        not_measured=NOT_MEASURED,
    )


def _grown(filled: Filled, queries: int) -> Grown:
    messages = recall_messages(filled.corpus, range(WARM_UP_CALLS + queries), TAG)
    unfiltered = recall_messages(filled.corpus, range(queries))
    shutil.rmtree(filled.bench.data_dir / SAVED_VIEWS, ignore_errors=True)
    with filled.bench.serving() as service:
        loaded_s = _first_answer_s(service, messages[0])
    with filled.bench.serving() as service:
        first_answer_s = _first_answer_s(service, messages[0])
        recall = caller(service.channel, RECALL)
        made = timed(recall, messages[1:WARM_UP_CALLS], messages[WARM_UP_CALLS:])
        all_pass = timed(recall, (), unfiltered)
        status = AdminServiceStub(service.channel).GetStatus(admin_pb.GetStatusRequest())
        anonymous_bytes = service.anonymous_bytes()
    check_replies(made.replies + all_pass.replies)
    files = [path.stat() for path in filled.bench.data_dir.rglob("*") if path.is_file()]
    return Grown(
        memories=filled.setting.memories,
        loaded_s=loaded_s,
        first_answer_s=first_answer_s,
        recall=Latency.of(made.times_s),
        unfiltered=Latency.of(all_pass.times_s),
        anonymous_bytes=anonymous_bytes,
        # Blocks, not lengths: a sparse file is as large as what was written.
        disk_bytes=sum(512 * file.st_blocks for file in files),
        live_bytes=status.storage.used_bytes,
    )


def _first_answer_s(service: Serving, message: bytes) -> float:
    """Seconds from exec to the first answer."""
    check_replies([caller(service.channel, RECALL)(message)])
    return time.perf_counter() - service.started_s


def measure_projects(options: Options) -> Findings:
    """Every project is asked once, which loads it, then the service is left alone."""
    filled = options.stores.filled(_MANY)
    # Questions go to the projects in turn: the first of these touch other projects than those that count.
    messages = recall_messages(filled.corpus, range(_MANY.projects))
    with filled.bench.serving() as service:
        before_mib = service.anonymous_bytes() / _MIB
        cold = timed(caller(service.channel, RECALL), messages[:_WARM_UP], messages[_WARM_UP:])
        check_replies(cold.replies)
        time.sleep(_IDLE_S)
        after_mib = service.anonymous_bytes() / _MIB
        again = recall_messages(filled.corpus, range(2 * _MANY.projects - _WARM_UP, 2 * _MANY.projects))
        second = Latency.of(timed(caller(service.channel, RECALL), (), again).times_s)
    touch = Latency.of(cold.times_s)
    warm = Judge(name="the p50 of a second one", value=second.p50_ms)
    vectors = Judge(name="all vectors in float32", value=_MANY.memories * DIM * 4 / _MIB, unit="MB")
    what = "10,000 projects × 100: first recall of a cold project, over gRPC"
    idle = f"10,000 projects × 100: anonymous memory (RssAnon), idle {_IDLE_S:.0f} s after each was asked once"
    return Findings(
        part=PROJECTS,
        rows=(
            Row.beside(f"{what}, p50", _TOUCH_TIMES, touch.p50_ms, warm),
            Row.beside(f"{what}, p99", _TOUCH_TIMES, touch.p99_ms, warm),
            Row.beside(idle, 1.0, after_mib, vectors, _MIB_NOTE),
        ),
        figures=(
            ("first recall of a cold project", touch.line()),
            ("second recall, with another question", second.line()),
            ("anonymous memory before the first call, MB", f"{before_mib:.0f}"),
        ),
        not_measured=NOT_MEASURED,
    )
