"""`python -m bench.bulk`: 100,000 memories into one project through LearnStream, vectors given (row 10)."""

from __future__ import annotations

import time
from pathlib import Path
from tempfile import TemporaryDirectory

import grpc

from bench.asking import RECALL, caller, recall_requests
from bench.command import Options, run_part
from bench.recall import TAG
from bench.rows import Findings, Row
from bench.service import Bench, BenchFailed
from bench.stores import BATCH_MEMORIES, B, say
from hummock.v1 import context_service_pb2 as pb

PART = "bulk"
_PER_S, _CAUGHT_UP_S = 15_000.0, 75.0
_METHOD = "/hummock.v1.ContextService/LearnStream"
NOT_MEASURED = (
    "the making of the stream's requests, which lie ready as bytes",
    "the build of an approximate graph: there is none, sign bits are made as rows come in",
)


def measure(options: Options) -> Findings:
    """Row 10, into an empty store."""
    corpus = options.stores.filled(B).corpus
    say("bulk: making the requests")
    messages = [
        pb.LearnStreamRequest(batch=pb.LearnRequest(project=project, memories=memories)).SerializeToString()
        for project, memories in corpus.batches(BATCH_MEMORIES)
    ]
    (request,) = recall_requests(corpus, [0], TAG)
    with TemporaryDirectory(prefix="bulk-", dir=options.stores.directory) as directory:
        source = options.stores.filled(B).bench
        bench = Bench.with_model(Path(directory), source.model, source.settings().models_dir)
        with bench.serving() as service:
            learn: grpc.StreamStreamMultiCallable[bytes, bytes] = service.channel.stream_stream(_METHOD)
            started_s = time.perf_counter()
            replies = [*learn(iter(messages))]
            learnt_s = time.perf_counter()
            caller(service.channel, RECALL)(request.SerializeToString())
            recalled_s = time.perf_counter()
            cpu_s = service.cpu_s()
    stored = pb.LearnStreamResponse.FromString(replies[-1]).stored_count
    if stored != corpus.size:
        raise BenchFailed(f"{stored} of {corpus.size} memories were stored")
    per_s = corpus.size / (learnt_s - started_s)
    return Findings(
        part=PART,
        rows=(
            Row.at_least(
                10, f"B: LearnStream, vectors given, {BATCH_MEMORIES} memories a batch", _PER_S, per_s, "memories/s"
            ),
            Row.at_most(
                10,
                "B: from the last answer of LearnStream until a recall among all 100,000 is answered",
                _CAUGHT_UP_S,
                recalled_s - learnt_s,
                "s",
                note="sign bits, no graph to build and no build flags; the project is loaded by that recall",
            ),
        ),
        figures=(
            ("all memories durable after, s", f"{learnt_s - started_s:.2f}"),
            ("the service's CPU from its start, s", f"{cpu_s:.1f}"),
        ),
        not_measured=NOT_MEASURED,
    )


if __name__ == "__main__":
    run_part(measure, __doc__)
