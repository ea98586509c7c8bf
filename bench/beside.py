"""Part `beside`: recalls and Learns of others while a stream of memories is learnt.

The stream brings its vectors, so that no model is in the way; it goes to a project of its own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from threading import Event

from bench.asking import LEARN, RECALL, TAG, check_replies, recall_messages
from bench.command import Options
from bench.generator import Generator, Load, NoCompiler
from bench.goals import Judge
from bench.report import Findings, Row
from bench.service import Serving
from bench.stores import BATCH_MEMORIES, A
from hummock_client.v1 import context_service_pb2 as pb
from hummock_client.v1 import memory_pb2
from hummock_client.v1.context_service_pb2_grpc import ContextServiceStub

PART = "beside"
_WARM_UP, _RECALLS, _LEARNS = 1000, 2000, 100
_STREAMED = 16_384
"""Memories of one project of the stream; then it goes on with the same ones in the next project."""
_RECALL_TIMES, _LEARN_TIMES = 2.0, 1.5
_UNDER_WAY, _POLL_S = 1280, 0.01
"""Memories that are stored before calls alongside the stream count."""
NOT_MEASURED = (
    "a stream whose memories the service must embed: see the part `index`",
    "recalls in the project that the stream goes to",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """Recalls, and Learns of one memory each, one after the other."""

    recall: Load
    learn: Load


def measure(options: Options) -> Findings:
    """Recalls and Learns, on a copy of the store, with a reader for each further core; or why they were skipped."""
    try:
        generator = Generator.compiled(options.stores.directory)
    except NoCompiler as none:
        return Findings(part=PART, skipped=(f"calls beside a stream: {none}",))
    with options.stores.filled(A).copied() as filled:
        corpus = filled.corpus
        messages = recall_messages(corpus, range(2 * _WARM_UP + 2 * _RECALLS), TAG)
        learns = [
            pb.LearnRequest(project="notes", memories=[corpus.memory(place)]).SerializeToString()
            for place in range(corpus.size, corpus.size + 2 * _LEARNS)
        ]
        begin = corpus.size + 2 * _LEARNS
        streamed = [corpus.memory(place) for place in range(begin, begin + _STREAMED)]
        with filled.bench.serving((os.cpu_count() or 1) - 1) as service:
            generator.run(service.target, RECALL, messages[: 2 * _WARM_UP], 2)
            half = 2 * _WARM_UP + _RECALLS
            idle = _asked(service, generator, messages[2 * _WARM_UP : half], learns[:_LEARNS])
            with _streaming(service, streamed) as stored:
                beside = _asked(service, generator, messages[half:], learns[_LEARNS:])
                stored_count = stored[0]
    what = "while another project takes a stream of memories"
    return Findings(
        part=PART,
        rows=(
            Row.beside(
                f"A: recall, one client, {what}, p99",
                _RECALL_TIMES,
                beside.recall.latency.p99_ms,
                Judge(name="that of an idle service", value=idle.recall.latency.p99_ms),
            ),
            Row.beside(
                f"a Learn of one memory (vector given) {what}, p50",
                _LEARN_TIMES,
                beside.learn.latency.p50_ms,
                Judge(name="that of an idle service", value=idle.learn.latency.p50_ms),
            ),
        ),
        figures=(
            ("recall, idle", idle.recall.line()),
            ("recall beside the stream", beside.recall.line()),
            ("Learn of one memory, idle", idle.learn.line()),
            ("Learn of one memory beside the stream", beside.learn.line()),
            ("memories of the stream, until the calls beside it had ended", str(stored_count)),
        ),
        not_measured=NOT_MEASURED,
    )


def _asked(service: Serving, generator: Generator, recalls: Sequence[bytes], learns: Sequence[bytes]) -> _Asked:
    asked = _Asked(
        recall=generator.run(service.target, RECALL, recalls, 1), learn=generator.run(service.target, LEARN, learns, 1)
    )
    check_replies(asked.recall.replies)
    return asked


@contextmanager
def _streaming(service: Serving, memories: Sequence[memory_pb2.Memory]) -> Iterator[list[int]]:
    """A stream that goes on until the block ends; gives how many it has stored, in a list of one."""
    is_over, stored = Event(), [0]

    def requests() -> Iterator[pb.LearnStreamRequest]:
        for number in count():
            for start in range(0, len(memories), BATCH_MEMORIES):
                if is_over.is_set():
                    return
                batch = memories[start : start + BATCH_MEMORIES]
                yield pb.LearnStreamRequest(learn=pb.LearnRequest(project=f"streamed-{number}", memories=batch))

    def stream() -> None:
        for reply in ContextServiceStub(service.channel).LearnStream(requests()):
            stored[0] = reply.stored_count

    with ThreadPoolExecutor(1) as executor:
        streaming = executor.submit(stream)
        while stored[0] < _UNDER_WAY and not streaming.done():
            is_over.wait(_POLL_S)
        try:
            yield stored
        finally:
            is_over.set()
            streaming.result()
