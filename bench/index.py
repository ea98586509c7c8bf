"""Part `index`: this repository indexed alongside recalls and Learns of others.

First it is found by words, then by meaning, by the default model. REPO names another folder.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.asking import LEARN, RECALL, Call, Latency, caller
from bench.command import Options
from bench.goals import Judge
from bench.model import default_model, no_model
from bench.report import Findings, Row
from bench.service import Bench, BenchFailed, Serving, say
from hummock_client.v1 import admin_service_pb2, memory_pb2, project_service_pb2, recall_pb2
from hummock_client.v1 import context_service_pb2 as pb
from hummock_client.v1.admin_service_pb2_grpc import AdminServiceStub
from hummock_client.v1.context_service_pb2_grpc import ContextServiceStub
from hummock_client.v1.project_service_pb2_grpc import ProjectServiceStub
from hummock_tools.indexing.chunker import fragments
from hummock_tools.indexing.sync import SyncReport, sync
from hummock_tools.indexing.walk import walk

PART = "index"
_ROOT = Path(os.environ.get("REPO", Path(__file__).parent.parent))
_PROJECT, _OTHER = "indexed", "asked"
_WARM_UP, _RECALLS, _LEARNS = 50, 400, 100
_VECTORS_S = 240.0
"""Guide."""
_CUT_TIMES, _AGAIN_TIMES = 4.0, 2.0
_BESIDE, _LEARN_BESIDE = 2.0, 1.5
_RENAMED = 100
_NOTES = 400
NOT_MEASURED = (
    "a cold page cache: the files may have been read before",
    "an index run after a few files changed",
    "recalls through readers",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Beside:
    """Recalls of texts and Learns of one memory each, one after the other."""

    recall: Latency
    learn: Latency


def measure(options: Options, root: Path = _ROOT) -> Findings:
    """Indexing and calls beside it, or why they were skipped."""
    model = default_model(options.models_dir)
    if model is None:
        return Findings(part=PART, skipped=(no_model("indexing", options.models_dir),))
    with TemporaryDirectory(prefix="hummock-bench-", dir=options.stores.directory) as name:
        copy = Path(name) / "repository"
        _copy(root, copy)
        bench = Bench.with_model(Path(name), model.name, options.models_dir)
        with bench.serving() as service:
            return _measured(service, copy, model.name)


def _measured(service: Serving, root: Path, model: str) -> Findings:
    texts = _questions(root)
    _learn_notes(service, islice(texts, _NOTES))
    ask = partial(_asked, service, texts)
    idle = ask()
    cut_s = _cut_s(root)
    cpu_s, started_s = service.cpu_s(), time.perf_counter()
    first = _index(service, root, _PROJECT)
    words_s = time.perf_counter() - started_s
    beside = ask()
    if not _pending(service, _PROJECT):
        raise BenchFailed("all vectors were there before the recalls beside them had been made; index a larger folder")
    _await_vectors(service, _PROJECT)
    vectors_s, cpu_s = time.perf_counter() - started_s, service.cpu_s() - cpu_s
    again_s = _again(service, root)
    renamed, embedded, reused = _renamed(service, root)
    sent = first.sent
    words = Judge(name="reading and cutting the folder", value=cut_s, unit="s")
    again = Judge(name="reading and cutting the folder", value=cut_s, unit="s")
    return Findings(
        part=PART,
        rows=(
            Row.beside(f"{sent} fragments and entries of a repository found by words", _CUT_TIMES, words_s, words),
            Row.guide(f"the same by meaning, {model}", _VECTORS_S, vectors_s, "s", note="other calls beside it"),
            Row.beside("indexed again, nothing changed", _AGAIN_TIMES, again_s, again),
            Row.at_most(f"a folder of {renamed} files renamed: fragments embedded", 0, embedded, ""),
            Row.at_most(
                "a recall of text while vectors are made, p99, in those of an idle service",
                _BESIDE,
                beside.recall.p99_ms / idle.recall.p99_ms,
                "times",
                note=f"p99 {idle.recall.p99_ms:.2f} ms idle, {beside.recall.p99_ms:.2f} beside",
            ),
            Row.at_most(
                "a Learn of one sentence while vectors are made, p50, in those of an idle service",
                _LEARN_BESIDE,
                beside.learn.p50_ms / idle.learn.p50_ms,
                "times",
                note=f"p50 {idle.learn.p50_ms:.2f} ms idle, {beside.learn.p50_ms:.2f} beside",
            ),
        ),
        figures=(
            ("fragments and entries a second, by words", f"{sent / words_s:.0f}"),
            ("the same by meaning", f"{sent / vectors_s:.0f}"),
            ("processor time of the service until then, a fragment", f"{cpu_s / sent * 1000:.1f} ms"),
            ("recall of text, idle", idle.recall.line()),
            ("recall of text while vectors are made", beside.recall.line()),
            ("Learn of one sentence, idle", idle.learn.line()),
            ("Learn of one sentence while vectors are made", beside.learn.line()),
            ("of the renamed files, fragments whose vectors were there", str(reused)),
            ("files that were left out", str(first.walked.skipped_total)),
        ),
        not_measured=NOT_MEASURED,
    )


def _copy(root: Path, to: Path) -> None:
    """The files that are indexed, without what git knows of them."""
    for file in walk(root, lambda path, reason: None):
        target = to / file.path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.data)


def _questions(root: Path) -> Iterator[str]:
    """Names of the repository's code as words, no two alike."""
    symbols = (fragment.symbol for file in walk(root, lambda path, reason: None) for fragment in fragments(file))
    named = dict.fromkeys(symbol for symbol in symbols if symbol)
    return (f"where is {symbol.replace('.', ' ').replace('_', ' ')} made, and what for" for symbol in named)


def _cut_s(root: Path) -> float:
    """Seconds to read the folder and cut it, without sending anything."""
    started_s = time.perf_counter()
    for file in walk(root, lambda path, reason: None):
        fragments(file)
    return time.perf_counter() - started_s


def _index(service: Serving, root: Path, project: str) -> SyncReport:
    report = sync(root, project, service.channel, on_progress=lambda progress: None, on_skip=lambda path, reason: None)
    if report.failures:
        raise BenchFailed(f"{len(report.failures)} batches were refused; the first: {report.failures[0].message}")
    if not report.fragments + report.domain_entries:
        raise BenchFailed(f"there is nothing to index in {root}")
    return report


def _await_vectors(service: Serving, project: str) -> None:
    request = project_service_pb2.WatchProjectRequest(project=project)
    for reply in ProjectServiceStub(service.channel).WatchProject(request):
        if not reply.pending_count:
            return


def _pending(service: Serving, project: str) -> int:
    request = project_service_pb2.GetProjectRequest(project=project)
    return int(ProjectServiceStub(service.channel).GetProject(request).project.pending_count)


def _asked(service: Serving, texts: Iterator[str]) -> _Beside:
    """Recalls of texts that were not asked for before, in a project that has its vectors, and Learns."""
    recalls = [
        recall_pb2.RecallRequest(project=_OTHER, query_text=text).SerializeToString()
        for text in islice(texts, _WARM_UP + _RECALLS)
    ]
    learns = [
        pb.LearnRequest(project="notes", memories=[_note(text)]).SerializeToString()
        for text in islice(texts, _WARM_UP + _LEARNS)
    ]
    if len(learns) < _WARM_UP + _LEARNS:
        raise BenchFailed("the repository has too few names to ask for")
    recall = _times(caller(service.channel, RECALL), recalls)
    return _Beside(recall=recall, learn=_times(caller(service.channel, LEARN), learns))


def _times(call: Call, messages: Sequence[bytes]) -> Latency:
    times_s = []
    for message in messages:
        started_s = time.perf_counter()
        call(message)
        times_s.append(time.perf_counter() - started_s)
    return Latency.of(times_s[_WARM_UP:])


def _note(text: str) -> memory_pb2.Memory:
    return memory_pb2.Memory(kind=memory_pb2.MEMORY_KIND_NOTE, content=f"It was asked {text}.")


def _learn_notes(service: Serving, texts: Iterator[str]) -> None:
    """Learns the sentences that are asked during the indexing; they have their vectors when this returns."""
    request = pb.LearnRequest(project=_OTHER, memories=map(_note, texts), embedding=pb.EMBEDDING_MODE_INLINE)
    ContextServiceStub(service.channel).Learn(request)


def _again(service: Serving, root: Path) -> float:
    started_s = time.perf_counter()
    again = _index(service, root, _PROJECT)
    if again.sent or again.deleted:
        raise BenchFailed(f"nothing changed, and {again.sent} were sent, {again.deleted} deleted")
    return time.perf_counter() - started_s


def _renamed(service: Serving, root: Path) -> tuple[int, int, int]:
    """Files that were moved to another folder, fragments that were embedded for it, and those that were not."""
    moved = [file.path for file in walk(root, lambda path, reason: None) if fragments(file)][:_RENAMED]
    for path in moved:
        target = root / "renamed" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(root / path, target)
    before = AdminServiceStub(service.channel).GetStatus(admin_service_pb2.GetStatusRequest()).embedding
    report = _index(service, root, _PROJECT)
    _await_vectors(service, _PROJECT)
    after = AdminServiceStub(service.channel).GetStatus(admin_service_pb2.GetStatusRequest()).embedding
    say(f"{len(moved)} files renamed: {report.sent} sent, {report.deleted} deleted")
    embedded = after.embedded_count - before.embedded_count
    return len(moved), embedded, after.reused_count - before.reused_count
