"""A corpus as the service has learnt it, and its answers to every question by every path."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import grpc
from google.protobuf import field_mask_pb2

from bench import toy_models
from bench.eval.made import half_of
from bench.eval.metrics import Judged
from bench.eval.sets import Corpus, Question, Slice
from bench.eval.ways import PATHS_COMPARED, RecallPath, Way, recall_of
from bench.machine import Machine
from bench.service import Bench, BenchFailed, Serving
from hummock import models
from hummock.config import load_settings
from hummock.core.errors import HummockError
from hummock_client.v1 import admin_service_pb2 as admin_pb
from hummock_client.v1 import context_service_pb2 as pb
from hummock_client.v1 import memory_pb2, recall_pb2, settings_pb2
from hummock_client.v1 import project_service_pb2 as project_pb
from hummock_client.v1.admin_service_pb2_grpc import AdminServiceStub
from hummock_client.v1.context_service_pb2_grpc import ContextServiceStub
from hummock_client.v1.project_service_pb2_grpc import ProjectServiceStub

REPOSITORY = Path(__file__).parents[2]
Say = Callable[[str], None]

_BATCH_MEMORIES = 32
_LEARN_S = 600.0
_CALL_S = 60.0
_QUESTIONS_SAID = 200
_RECORD = "learnt.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Directories of a model's stores and of the models."""

    directory: Path
    models_dir: Path
    model: str

    def of(self, corpus: Corpus) -> Path:
        """The directory of one corpus; another text of a memory makes another one."""
        return self.directory / "data" / self.model / f"{corpus.name}-{corpus.fingerprint}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Learnt:
    """Record of a store's content, written when all of it is learnt."""

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
    if not record.exists():
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
        _take_all(service, project)
        for start in range(0, len(memories), _BATCH_MEMORIES):
            batch = memories[start : start + _BATCH_MEMORIES]
            reply = learn(pb.LearnRequest(project=project, memories=batch), timeout=_LEARN_S)
            refused = [result for result in reply.results if result.status != pb.LEARN_STATUS_CREATED]
            if refused:
                why = pb.LearnStatus.Name(refused[0].status).removeprefix("LEARN_STATUS_")
                raise BenchFailed(f"{refused[0].id} of {corpus.name} is not stored: {why}")
            if done // 500 < (done + len(batch)) // 500:
                say(f"{corpus.name}: {done + len(batch)} of {corpus.memory_count} memories learnt")
            done += len(batch)
    for project in corpus.projects:
        _await_vectors(service, project)
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


def _take_all(service: Serving, project: str) -> None:
    """Switches off review and secret redaction: retrieval is measured, so every memory is stored as it is."""
    settings = settings_pb2.ProjectSettings(
        secrets=settings_pb2.SecretSettings(policy=settings_pb2.SECRET_POLICY_WARN),
        review=settings_pb2.ReviewSettings(policy=settings_pb2.REVIEW_POLICY_OFF),
    )
    request = project_pb.UpdateProjectSettingsRequest(
        project=project, settings=settings, update_mask=field_mask_pb2.FieldMask(paths=["secrets", "review"])
    )
    ProjectServiceStub(service.channel).UpdateProjectSettings(request, timeout=_CALL_S)


def _await_vectors(service: Serving, project: str) -> None:
    """Waits for vectors: what an indexer sends is embedded after the reply."""
    watched = project_pb.WatchProjectRequest(project=project)
    for reply in ProjectServiceStub(service.channel).WatchProject(watched):
        if not reply.pending_count:
            return


def _bench(place: Place, corpus: Corpus) -> Bench:
    return Bench.prepare(place.of(corpus), place.model, place.models_dir)


def emb_space(service: Serving) -> str:
    """The space in which this service embeds."""
    status = AdminServiceStub(service.channel).GetStatus(admin_pb.GetStatusRequest(), timeout=_CALL_S)
    return str(status.model.emb_space)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Result of one path for one question: ids and scores, best first, and how sure it is that none answers."""

    question: Question
    path: RecallPath
    hits: tuple[str, ...]
    scores: tuple[float, ...]
    unknown: float | None = None

    @property
    def judged(self) -> Judged:
        """Against what is right."""
        return Judged.of(self.hits, self.question.relevant)


def request(question: Question, path: RecallPath, way: Way = PATHS_COMPARED) -> recall_pb2.RecallRequest:
    """The recall of one path."""
    asked = recall_of(way, path)
    asked.project, asked.query_text, asked.view = question.project, question.text, memory_pb2.MEMORY_VIEW_INDEX
    asked.session_id = question.session
    if question.as_of is not None:
        asked.as_of.CopyFrom(question.as_of)
    return asked


def answers(channel: grpc.Channel, asked: Slice, say: Callable[[str], None]) -> Iterator[Answer]:
    """One for each question and path, in that order. Raises: BenchFailed where a recall had to leave something out."""
    recall = ContextServiceStub(channel).Recall
    for done, question in enumerate(asked.questions, start=1):
        for path in asked.way.paths:
            reply = recall(request(question, path, asked.way), timeout=_CALL_S)
            if reply.degraded:
                raise BenchFailed(f"{question.id}: {reply.degraded[0].message}")
            # A preset with groups besides the main one asks for code first.
            hits = (*reply.code_fragments, *reply.hits, *reply.domains)
            yield Answer(
                question=question,
                path=path,
                hits=tuple(hit.memory.id for hit in hits),
                scores=tuple(hit.score for hit in hits),
                unknown=reply.nothing_known.confidence if reply.HasField("nothing_known") else None,
            )
        if done % _QUESTIONS_SAID == 0 or done == len(asked.questions):
            say(f"{asked.key}: {done} of {len(asked.questions)} questions")


def as_json(answers_of_slice: list[Answer]) -> list[dict[str, object]]:
    """A value for each question: what is relevant, and each path's hits with their scores."""
    by_question: dict[str, list[Answer]] = {}
    for each in answers_of_slice:
        by_question.setdefault(each.question.id, []).append(each)
    return [
        {
            "id": same[0].question.id,
            "half": half_of(same[0].question.id),
            "text": same[0].question.text,
            "relevant": sorted(same[0].question.relevant),
            "paths": {
                each.path: {
                    "ranks": each.judged.ranks,
                    "hits": each.hits,
                    "scores": [round(score, 5) for score in each.scores],
                    **({} if each.unknown is None else {"unknown": round(each.unknown, 4)}),
                }
                for each in same
            },
        }
        for same in by_question.values()
    ]


def arguments_parser(description: str | None) -> argparse.ArgumentParser:
    """A parser that knows what is common to what is asked of data sets."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    shared = Path(os.environ.get("HUMMOCK_SHARED", REPOSITORY.parent / "shared"))
    parser.add_argument("--model", action="append", help="a model's name, more than once for several; unset: installed")
    parser.add_argument("--models-dir", type=Path, default=load_settings().models_dir, help="where models are")
    parser.add_argument("--shared", type=Path, default=shared, help="the folder that holds datasets/")
    parser.add_argument("--dir", type=Path, default=REPOSITORY / ".eval", help="where stores and answers are kept")
    return parser


def installed(models_dir: Path) -> list[str]:
    """Names of the models whose files are there, the service's default first; the toy model is none."""
    folders = sorted(path.name for path in models_dir.iterdir()) if models_dir.is_dir() else []
    names = [
        *(model.name for model in models.candidates(models.AUTO, models_dir)),
        *models.REGISTRY,
        *models.PAIRS,
        *folders,
    ]
    return [name for name in dict.fromkeys(names) if name != toy_models.TINY and _is_there(name, models_dir)]


def _is_there(name: str, models_dir: Path) -> bool:
    try:
        return models.is_here(models.find(name, models_dir), models_dir)
    except HummockError:  # a folder that describes no model
        return False
