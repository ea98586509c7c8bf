"""`python -m bench.recall`: how long a recall takes among N memories, and what N memories cost.

The service runs as users run it, as a process of its own behind loopback; the same store is then opened in this
process for the same questions without the network.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, median
from typing import TypeVar

from google.protobuf.timestamp_pb2 import Timestamp

from bench.corpus import NOW_S, Corpus, Question, Space
from bench.latency import Latency
from bench.machine import Machine
from bench.report import Learnt, Options, Recalls, Report, Restart, Sizes, markdown
from bench.service import Bench, BenchFailed, Serving
from hummock.core.errors import HummockError
from hummock.rpc.parse_recall import recall_query
from hummock.v1 import admin_service_pb2 as admin_pb
from hummock.v1 import context_service_pb2 as pb
from hummock.v1 import memory_pb2, recall_pb2
from hummock.v1.admin_service_pb2_grpc import AdminServiceStub
from hummock.v1.context_service_pb2_grpc import ContextServiceStub
from hummock.wiring import open_use_cases

_BATCH_MEMORIES = 64
_WARM_UP_CALLS = 100
_RESTARTS = 3
_CALL_S = 60.0

Query = TypeVar("Query")
Reply = TypeVar("Reply")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    """What counts of one recall."""

    hits: int
    stages_s: dict[str, float]
    degraded: bool


def measure(options: Options, directory: Path, models_dir: Path | None) -> Report:
    """Runs the whole bench in an empty directory. Raises: BenchFailed."""
    machine = Machine.here(directory)
    bench = Bench.prepare(directory, options.model, models_dir)
    with bench.serving() as service:
        model = AdminServiceStub(service.channel).Status(admin_pb.StatusRequest(), timeout=_CALL_S).model
        space = Space.seeded(model.emb_space, model.dim, options.seed)
        corpus = Corpus(size=options.memories, seed=options.seed, projects=options.projects, space=space)
        learnt = _learn(service, corpus)
    # The questions of the warm-up and of the restarts are none of those that are measured.
    asked = [_request(corpus.question(number), options.preset) for number in range(options.queries)]
    others = range(options.queries, options.queries + _WARM_UP_CALLS)
    warm_up = [_request(corpus.question(number), options.preset) for number in others]
    restarts = []
    for request in warm_up[: _RESTARTS - 1]:
        with bench.serving() as service:
            restarts.append(_restart(service, request))
    with bench.serving() as service:
        restarts.append(_restart(service, warm_up[_RESTARTS - 1]))
        over_grpc = _over_grpc(service, warm_up, asked)
        sizes = _sizes(service, bench.data_dir)
    return Report(
        options=options,
        model=bench.model,
        dim=model.dim,
        warm_up_calls=_WARM_UP_CALLS,
        machine=machine,
        learnt=learnt,
        restarts=tuple(restarts),
        in_process=_in_process(bench, warm_up, asked),
        over_grpc=over_grpc,
        sizes=sizes,
    )


def _learn(service: Serving, corpus: Corpus) -> Learnt:
    requests = [
        pb.LearnStreamRequest(batch=pb.LearnRequest(project=project, memories=memories))
        for project, memories in corpus.batches(_BATCH_MEMORIES)
    ]
    started_s = time.perf_counter()
    replies = list(ContextServiceStub(service.channel).LearnStream(iter(requests)))
    seconds = time.perf_counter() - started_s
    created = 0
    for reply in replies:
        if reply.WhichOneof("outcome") == "failed":
            raise BenchFailed(f"a batch was refused: {reply.failed.field}: {reply.failed.message}")
        created += sum(result.status == pb.LEARN_STATUS_CREATED for result in reply.stored.results)
    if created != corpus.size:
        raise BenchFailed(f"{created} of {corpus.size} memories were created; the rest were taken for duplicates")
    return Learnt(seconds=seconds, memories_per_s=created / seconds, batch_memories=_BATCH_MEMORIES)


def _request(question: Question, preset: str) -> recall_pb2.RecallRequest:
    return recall_pb2.RecallRequest(
        project=question.project,
        query_text=question.text,
        query_vector=question.vector,
        preset=recall_pb2.Preset.Value(f"PRESET_{preset.upper()}"),
        as_of=Timestamp(seconds=NOW_S),
        view=memory_pb2.MEMORY_VIEW_FULL,
    )


def _restart(service: Serving, request: recall_pb2.RecallRequest) -> Restart:
    serving_s = time.perf_counter() - service.started_s
    ContextServiceStub(service.channel).Recall(request, timeout=_CALL_S)
    return Restart(serving_s=serving_s, first_answer_s=time.perf_counter() - service.started_s)


def _over_grpc(
    service: Serving, warm_up: Sequence[recall_pb2.RecallRequest], asked: Sequence[recall_pb2.RecallRequest]
) -> Recalls:
    recall = ContextServiceStub(service.channel).Recall

    def answer(reply: recall_pb2.RecallResponse) -> _Answer:
        stages = {time.stage: time.elapsed.ToNanoseconds() / 1e9 for time in reply.receipt.stages}
        hits = len(reply.hits) + len(reply.code_fragments) + len(reply.domains)
        return _Answer(hits=hits, stages_s=stages, degraded=bool(reply.degraded))

    return _timed(lambda request: recall(request, timeout=_CALL_S), answer, warm_up, asked)


def _in_process(
    bench: Bench, warm_up: Sequence[recall_pb2.RecallRequest], asked: Sequence[recall_pb2.RecallRequest]
) -> Recalls:
    with open_use_cases(bench.settings(), say=lambda line: None) as use_cases:
        queries = [[recall_query(request) for request in requests] for requests in (warm_up, asked)]
        return _timed(
            use_cases.recall,
            lambda found: _Answer(
                hits=len(found.hits) + len(found.code_fragments) + len(found.domains),
                stages_s={time.stage: time.elapsed_s for time in found.receipt.stages},
                degraded=bool(found.degraded),
            ),
            *queries,
        )


def _timed(
    recall: Callable[[Query], Reply],
    answer: Callable[[Reply], _Answer],
    warm_up: Sequence[Query],
    asked: Sequence[Query],
) -> Recalls:
    for query in warm_up:
        recall(query)
    times_s: list[float] = []
    answers: list[_Answer] = []
    for query in asked:
        started_s = time.perf_counter()
        reply = recall(query)
        times_s.append(time.perf_counter() - started_s)
        answers.append(answer(reply))
    degraded = sum(one.degraded for one in answers)
    if degraded:
        raise BenchFailed(f"{degraded} of {len(answers)} recalls had to leave something out")
    return Recalls(
        latency=Latency.of(times_s),
        stages_p50_ms={
            stage: round(median(one.stages_s[stage] for one in answers) * 1000, 4) for stage in answers[0].stages_s
        },
        hits_mean=round(fmean(one.hits for one in answers), 2),
    )


def _sizes(service: Serving, data_dir: Path) -> Sizes:
    storage = AdminServiceStub(service.channel).Status(admin_pb.StatusRequest(), timeout=_CALL_S).storage
    files = [path.stat() for path in data_dir.rglob("*") if path.is_file()]
    return Sizes(
        resident_bytes=service.resident_bytes(),
        index_bytes=storage.loaded_bytes,
        # Blocks, not lengths: a sparse file is as large as what was written.
        disk_bytes=sum(512 * file.st_blocks for file in files),
        live_bytes=storage.used_bytes,
    )


def main() -> None:
    """The command line: the table to stdout, the whole report to the file of --json."""
    parser = argparse.ArgumentParser(prog="python -m bench.recall", description=(__doc__ or "").partition("\n\n")[2])
    parser.add_argument("--memories", type=_positive, default=10_000)
    parser.add_argument("--queries", type=_positive, default=500, help="measured recalls, each another question")
    parser.add_argument("--projects", type=_positive, default=1, help="the memories are dealt to this many projects")
    parser.add_argument("--preset", choices=("agent", "code", "chat"), default="agent")
    parser.add_argument("--seed", type=int, default=7420)
    parser.add_argument("--model", default="tiny", help="decides the vectors' size; tiny is built on the spot")
    parser.add_argument("--models-dir", type=Path, help="where the model is, or is fetched to")
    parser.add_argument("--dir", type=Path, help="an existing directory on the disk to use; unset: the system's")
    parser.add_argument("--json", type=Path, help="write the report there")
    given = parser.parse_args()
    options = Options(
        memories=given.memories,
        queries=given.queries,
        projects=given.projects,
        preset=given.preset,
        seed=given.seed,
        model=given.model,
    )
    try:
        with tempfile.TemporaryDirectory(prefix="hummock-bench-", dir=given.dir) as directory:
            report = measure(options, Path(directory), given.models_dir)
    except (BenchFailed, HummockError, OSError) as failed:
        sys.exit(f"error: {failed}")
    if given.json:
        given.json.write_text(json.dumps(asdict(report), ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
    print(markdown(report))


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is below 1")
    return number


if __name__ == "__main__":
    main()
