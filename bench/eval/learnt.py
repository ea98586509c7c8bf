"""The service over a corpus: learnt once for each model and kept, since embedding takes minutes."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.eval.sets import Corpus
from bench.machine import Machine
from bench.service import Bench, BenchFailed, Serving
from hummock.v1 import admin_service_pb2 as admin_pb
from hummock.v1 import context_service_pb2 as pb
from hummock.v1.admin_service_pb2_grpc import AdminServiceStub
from hummock.v1.context_service_pb2_grpc import ContextServiceStub

Say = Callable[[str], None]

_BATCH_MEMORIES = 32
_CALL_S = 600.0
_STATUS_S = 60.0
_RECORD = "learnt.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a model's stores are kept, and where the models are."""

    directory: Path
    models_dir: Path
    model: str
    fresh: bool = False

    def of(self, corpus: Corpus) -> Path:
        """The directory of one corpus; another text of a memory makes another one."""
        return self.directory / "data" / self.model / f"{corpus.name}-{corpus.fingerprint}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Learnt:
    """What a store holds: written when all of it is learnt."""

    emb_space: str
    memories: int
    seconds: float
    time: str
    commit: str


@contextmanager
def serving(place: Place, corpus: Corpus, say: Say) -> Iterator[Serving]:
    """The service with the corpus: the kept store where it still opens in the same embedding space, else learnt anew.

    Raises: BenchFailed.
    """
    with ExitStack() as stack:
        yield _kept(stack, place, corpus, say) or _learn(stack, place, corpus, say)


def _kept(stack: ExitStack, place: Place, corpus: Corpus, say: Say) -> Serving | None:
    record = place.of(corpus) / _RECORD
    if place.fresh or not record.exists():
        return None
    learnt = Learnt(**json.loads(record.read_text(encoding="utf-8")))
    try:
        service = stack.enter_context(_bench(place, corpus).serving())
    except BenchFailed as refused:
        say(f"{corpus.name}: the kept store does not open ({refused}); learning again")
        return None
    if (space := emb_space(service)) != learnt.emb_space:
        say(f"{corpus.name}: the kept store is of space {learnt.emb_space}, not {space}; learning again")
        stack.pop_all().close()
        return None
    say(f"{corpus.name}: {learnt.memories} memories, learnt {learnt.time} at commit {learnt.commit}, used again")
    return service


def _learn(stack: ExitStack, place: Place, corpus: Corpus, say: Say) -> Serving:
    shutil.rmtree(place.of(corpus), ignore_errors=True)
    place.of(corpus).mkdir(parents=True)
    service = stack.enter_context(_bench(place, corpus).serving())
    learn = ContextServiceStub(service.channel).Learn
    started_s = time.perf_counter()
    done = 0
    for project, memories in corpus.projects.items():
        for start in range(0, len(memories), _BATCH_MEMORIES):
            batch = memories[start : start + _BATCH_MEMORIES]
            reply = learn(pb.LearnRequest(project=project, memories=batch), timeout=_CALL_S)
            refused = [result for result in reply.results if result.status != pb.LEARN_STATUS_CREATED]
            if refused:
                raise BenchFailed(f"{refused[0].id} of {corpus.name} was taken for a duplicate")
            if done // 500 < (done + len(batch)) // 500:
                say(f"{corpus.name}: {done + len(batch)} of {corpus.memory_count} memories learnt")
            done += len(batch)
    machine = Machine.here(place.directory)
    learnt = Learnt(
        emb_space=emb_space(service),
        memories=done,
        seconds=round(time.perf_counter() - started_s, 1),
        time=machine.time,
        commit=machine.commit,
    )
    say(f"{corpus.name}: {done} memories learnt in {learnt.seconds} s")
    (place.of(corpus) / _RECORD).write_text(json.dumps(asdict(learnt), indent=2) + "\n", encoding="utf-8")
    return service


def _bench(place: Place, corpus: Corpus) -> Bench:
    return Bench.prepare(place.of(corpus), place.model, place.models_dir)


def emb_space(service: Serving) -> str:
    """The space in which this service embeds."""
    status = AdminServiceStub(service.channel).Status(admin_pb.StatusRequest(), timeout=_STATUS_S)
    return str(status.model.emb_space)
