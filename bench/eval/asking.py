"""Every question by every path, over gRPC."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

import grpc

from bench.eval.halves import half_of
from bench.eval.metrics import DEPTH, Judged
from bench.eval.sets import Question, Slice
from bench.service import BenchFailed
from hummock.v1 import memory_pb2, recall_pb2
from hummock.v1.context_service_pb2_grpc import ContextServiceStub

_CALL_S = 60.0
_EVERY = 200
_NO_DIFFERENCE = 1.0
_NO_TWINS = 2.0


class Path(StrEnum):
    """How candidates are found and ordered."""

    VECTOR = "vector"
    KEYWORD = "keyword"
    FUSED = "fused"
    RERANKED = "reranked"


SETTING = (
    "preset AGENT (50 candidates a path, no decay), MMR and near-twins off, titles and summaries not given, paths by "
    "RecallRequest.paths and late_interaction; reranked: all paths and late interaction"
)

_ONLY = {Path.VECTOR: (recall_pb2.RECALL_PATH_VECTOR,), Path.KEYWORD: (recall_pb2.RECALL_PATH_KEYWORD,)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What one path found for one question: ids and scores, best first."""

    question: Question
    path: Path
    hits: tuple[str, ...]
    scores: tuple[float, ...]

    @property
    def judged(self) -> Judged:
        """Against what is right."""
        return Judged.of(self.hits, self.question.relevant)


def request(question: Question, path: Path) -> recall_pb2.RecallRequest:
    """The recall of one path."""
    return recall_pb2.RecallRequest(
        project=question.project,
        query_text=question.text,
        preset=recall_pb2.PRESET_AGENT,
        top_k=DEPTH,
        paths=_ONLY.get(path, ()),
        late_interaction=path is Path.RERANKED,
        relevance_weight=_NO_DIFFERENCE,
        near_twin_bar=_NO_TWINS,
        as_of=question.as_of,
        view=memory_pb2.MEMORY_VIEW_INDEX,
    )


def answers(channel: grpc.Channel, asked: Slice, say: Callable[[str], None]) -> Iterator[Answer]:
    """One for each question and path, in that order. Raises: BenchFailed where a recall had to leave something out."""
    recall = ContextServiceStub(channel).Recall
    for done, question in enumerate(asked.questions, start=1):
        for path in Path:
            reply = recall(request(question, path), timeout=_CALL_S)
            if reply.degraded:
                raise BenchFailed(f"{question.id}: {reply.degraded[0].message}")
            yield Answer(
                question=question,
                path=path,
                hits=tuple(hit.memory.id for hit in reply.hits),
                scores=tuple(hit.score for hit in reply.hits),
            )
        if done % _EVERY == 0 or done == len(asked.questions):
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
                }
                for each in same
            },
        }
        for same in by_question.values()
    ]
