"""Parts `learn` and `bulk`: durable writes one by one and from 64 writers, and as one stream."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from tempfile import NamedTemporaryFile, TemporaryDirectory
from threading import Barrier
from typing import TypeVar

import grpc

from bench.asking import LEARN, RECALL, TAG, Latency, caller, recall_messages, recall_requests, settled, timed
from bench.command import Options
from bench.corpus import Corpus
from bench.generator import Generator, Load, NoCompiler
from bench.goals import Headline, Judge
from bench.lmdb_alone import LMDB, lmdb_alone
from bench.report import Findings
from bench.service import Bench, BenchFailed, Serving, say
from bench.stores import BATCH_MEMORIES, A, B
from hummock.core.memory import LearnCommand, Learned, LearnStatus
from hummock.rpc.memory_messages import learn_command
from hummock.rpc.recall_messages import recall_query
from hummock.wiring.service import open_use_cases
from hummock_client.v1 import context_service_pb2 as pb
from hummock_client.v1 import recall_pb2
from hummock_client.v1.context_service_pb2_grpc import ContextServiceStub

Given = TypeVar("Given")

PART, BULK = "learn", "bulk"
_WRITERS = 64
_ALONE, _WARM_UP = 300, 100
_TOGETHER = 100 * _WRITERS
_CHECKED = 20
_LMDB_MEMORIES = 25_600
_GROUP = 256
"""Memories that the writer takes into one transaction at most."""
_PAGE_BYTES = 4096
_PAGES = 256
_LEARN_STREAM = "/hummock.v1.ContextService/LearnStream"
NOT_MEASURED = (
    "learning while others recall, and memories that the service must embed",
    "a disk that loses what it has acknowledged: fsync is believed",
)
_BULK_NOT_MEASURED = (
    "the making of the stream's requests, which lie ready as bytes",
    "the build of an approximate graph: there is none, sign bits are made as rows come in",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Alone:
    """Writes one after the other, and the fsyncs between them."""

    learn: Latency
    fsync: Latency


def measure(options: Options) -> Findings:
    """Single Learns and 64 writers, on a copy of the store, with all its projects in memory."""
    generator, skipped = _generator(options)
    with options.stores.filled(A).copied() as filled:
        fresh = fresh_requests(filled.corpus)
        with filled.bench.serving() as service:
            timed(caller(service.channel, RECALL), recall_messages(filled.corpus, range(A.projects)), ())
            alone, together = _messages(fresh, _WARM_UP + _ALONE), _messages(fresh, _TOGETHER)
            over_grpc = _alone(caller(service.channel, LEARN), alone, filled.bench.directory)
            _check_recallable(service, islice(fresh, _CHECKED))
            load = generator.run(service.target, LEARN, together, _WRITERS) if generator else None
        if load is not None:
            _check_all_created(load)
        with open_use_cases(filled.bench.settings(), say=lambda line: None) as use_cases:
            for request in recall_requests(filled.corpus, range(A.projects)):
                use_cases.recall(recall_query(request))
            commands = [learn_command(request) for request in islice(fresh, _WARM_UP + _ALONE + _TOGETHER)]

            def learn(command: LearnCommand) -> Learned:
                return use_cases.learn(command).result()

            with settled():
                in_process = _alone(learn, commands[:-_TOGETHER], filled.bench.directory)
                per_s = _together(learn, commands[-_TOGETHER:])
    with lmdb_alone(options.stores.directory) as lmdb:
        one, together_per_s = lmdb.one(_ALONE), lmdb.per_s(_TOGETHER, _WRITERS)
    commit = Judge(name=f"a commit of as many bytes by {LMDB}", value=one.p50_ms)
    headlines = [Headline.of("learn", over_grpc.learn.p50_ms, commit)]
    if load is not None:
        judge = Judge(name=f"{LMDB}, {_WRITERS} a commit", value=together_per_s, unit="memories/s")
        headlines.append(Headline.of("writers", load.calls_per_s, judge))
    return Findings(
        part=PART,
        headlines=tuple(headlines),
        figures=(
            ("one Learn over gRPC", over_grpc.learn.line()),
            ("one Learn in process", in_process.learn.line()),
            ("fsync of 4 KiB written in place, between the Learns", in_process.fsync.line()),
            ("the same bytes written by LMDB alone", one.line()),
            ("64 writers over gRPC", load.line() if load else skipped[0]),
            ("64 writers in process, memories a second", f"{per_s:.0f}"),
            ("calls before those that count", str(_WARM_UP)),
        ),
        skipped=skipped,
        not_measured=NOT_MEASURED,
    )


def _generator(options: Options) -> tuple[Generator | None, tuple[str, ...]]:
    """The load generator, or why there is none."""
    try:
        return Generator.compiled(options.stores.directory), ()
    except NoCompiler as none:
        return None, (f"64 writers over gRPC: {none}",)


def fresh_requests(corpus: Corpus) -> Iterator[pb.LearnRequest]:
    """Memories beyond those of the store, each to be learnt alone."""
    for place in count(corpus.size):
        yield pb.LearnRequest(project=corpus.project_name(place), memories=[corpus.memory(place)])


def _messages(fresh: Iterator[pb.LearnRequest], number: int) -> list[bytes]:
    return [request.SerializeToString() for request in islice(fresh, number)]


def _alone(learn: Callable[[Given], object], given: Sequence[Given], directory: Path) -> Alone:
    """Each in its turn, and an fsync after each, for a disk is not the same at all times."""
    learns_s, syncs_s = [], []
    with NamedTemporaryFile(dir=directory) as file:
        file.write(bytes(_PAGES * _PAGE_BYTES))
        os.fsync(file.fileno())
        for number, one in enumerate(given):
            started_s = time.perf_counter()
            learn(one)
            learnt_s = time.perf_counter()
            os.pwrite(file.fileno(), os.urandom(_PAGE_BYTES), number % _PAGES * _PAGE_BYTES)
            written_s = time.perf_counter()
            os.fsync(file.fileno())
            learns_s.append(learnt_s - started_s)
            syncs_s.append(time.perf_counter() - written_s)
    return Alone(learn=Latency.of(learns_s[_WARM_UP:]), fsync=Latency.of(syncs_s[_WARM_UP:]))


def _together(learn: Callable[[LearnCommand], Learned], commands: Sequence[LearnCommand]) -> float:
    """Memories a second that as many threads as there are writers learn, each the next one as soon as it may."""
    ready = Barrier(_WRITERS + 1)

    def write(first: int) -> None:
        ready.wait()
        for command in commands[first::_WRITERS]:
            (result,) = learn(command).results
            if result.status != LearnStatus.CREATED:
                raise BenchFailed(f"a memory was not created: {result}")

    with ThreadPoolExecutor(_WRITERS) as writers:
        running = [writers.submit(write, first) for first in range(_WRITERS)]
        ready.wait()
        started_s = time.perf_counter()
        for each in running:
            each.result()
        return len(commands) / (time.perf_counter() - started_s)


def _check_all_created(load: Load) -> None:
    """Raises: BenchFailed: a call had no reply, or a reply that was kept says that its memory is not new."""
    if load.failed:
        raise BenchFailed(f"{load.failed} of {load.calls} writes failed")
    for data in load.replies:
        check_created(data)


def check_created(data: bytes) -> None:
    """Raises: BenchFailed: a reply says that its one memory is not new."""
    (result,) = pb.LearnResponse.FromString(data).results
    if result.status != pb.LEARN_STATUS_CREATED:
        raise BenchFailed(f"a memory was not created: {result}")


def _check_recallable(service: Serving, requests: Iterable[pb.LearnRequest]) -> None:
    """Raises: BenchFailed: a recall right after the answer does not find what was learnt."""
    context = ContextServiceStub(service.channel)
    for request in requests:
        seq = context.Learn(request).seq
        memory = request.memories[0]
        asked = recall_pb2.RecallRequest(
            project=request.project, query_text=memory.id, query_vector=memory.vector, min_seq=seq
        )
        if memory.id not in {hit.memory.id for hit in context.Recall(asked).hits}:
            raise BenchFailed(f"{memory.id} was acknowledged and is not recalled")


def measure_bulk(options: Options) -> Findings:
    """LearnStream into an empty store."""
    source = options.stores.filled(A)
    corpus = B.corpus(source.corpus.space)
    say("bulk: making the requests")
    messages = [
        pb.LearnStreamRequest(learn=pb.LearnRequest(project=project, memories=memories)).SerializeToString()
        for project, memories in corpus.batches(BATCH_MEMORIES)
    ]
    (question,) = recall_messages(corpus, [0], TAG)
    with TemporaryDirectory(prefix="bulk-", dir=options.stores.directory) as directory:
        bench = Bench.with_model(Path(directory), source.bench.model, source.bench.settings().models_dir)
        with bench.serving() as service:
            learn: grpc.StreamStreamMultiCallable[bytes, bytes] = service.channel.stream_stream(_LEARN_STREAM)
            started_s = time.perf_counter()
            replies = [*learn(iter(messages))]
            learnt_s = time.perf_counter()
            caller(service.channel, RECALL)(question)
            recalled_s = time.perf_counter()
            cpu_s = service.cpu_s()
    stored = pb.LearnStreamResponse.FromString(replies[-1]).stored_count
    if stored != corpus.size:
        raise BenchFailed(f"{stored} of {corpus.size} memories were stored")
    per_s = corpus.size / (learnt_s - started_s)
    with lmdb_alone(options.stores.directory) as lmdb:
        judge = Judge(name=f"{LMDB}, {_GROUP} a commit", value=lmdb.per_s(_LMDB_MEMORIES, _GROUP), unit="memories/s")
    return Findings(
        part=BULK,
        headlines=(Headline.of("stream", per_s, judge),),
        figures=(
            (f"B, {BATCH_MEMORIES} memories a batch: all durable after, s", f"{learnt_s - started_s:.2f}"),
            ("from then until a recall among all is answered, s", f"{recalled_s - learnt_s:.2f}"),
            ("the service's CPU from its start, s", f"{cpu_s:.1f}"),
        ),
        not_measured=_BULK_NOT_MEASURED,
    )
