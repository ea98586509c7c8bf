"""Replies made of a cached answer's bytes are those that encoding the whole answer gives."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from hummock.core.memory import CodeFragment, Draft, LearningRecord, MemoryIndex, MemoryKind, Origin, Payload
from hummock.core.recall import Preset
from hummock.core.settings import PresetSettings, ProjectSettings
from hummock.projects.projects import Settings
from hummock.recall.cache import Answer, CachedRecall
from hummock.recall.pipeline import Recall
from hummock.rpc.recall_messages import recall_query
from hummock.rpc.recall_reply import recall_reply
from hummock.rpc.status import to_bytes
from hummock.rpc.values import wants_raw
from hummock_client.v1 import memory_pb2
from hummock_client.v1.recall_pb2 import RecallRequest, RecallResponse
from tests.rpc.plain_replies import recall_response
from tests.strategies import SPACE
from tests.workplace import Workplace, note

DAY_S = 86_400.0
PROJECTS = ("p", "tuned", "unknown")
VIEWS = (memory_pb2.MEMORY_VIEW_INDEX, memory_pb2.MEMORY_VIEW_FULL, memory_pb2.MEMORY_VIEW_RAW)
FIELDS: tuple[dict[str, Any], ...] = (
    {},
    {"include_superseded": True},
    {"context_window": 2},
    {"paths": ["RECALL_PATH_KEYWORD"]},
    {"echo_window": {"seconds": 3}},
    {"keyword_mode": "KEYWORD_MODE_SUBSTRING"},
    {"tuning": {"decay_mode": "DECAY_MODE_EXPONENTIAL", "half_life_days": 3.0, "top_k": 30}},
    {"query_text": "the 潮汐 tide yesterday"},
    {"as_of": {"seconds": 1_800_000_000}},
    {"query_text": "nothing like it", "tuning": {"min_similarity": 0.9}},
)


@pytest.fixture
def recall(work: Workplace) -> CachedRecall:
    said = [
        Draft(
            id=f"t{number}",
            kind=MemoryKind.NOTE,
            origin=Origin.USER_INPUT,
            index=MemoryIndex(title=f"tide {number}", tags=("sea", "潮")),
            payload=Payload(content=f"the 潮汐 tide of day {number} is low", raw=f"raw {number}"),
            session_id="s",
            speaker="林",
            create_time=work.clock.now() - number * DAY_S,
            metadata=tuple((f"fact-{each}", str(number)) for each in range(5)),
            supersedes=("t1",) if number == 2 else (),
        )
        for number in range(6)
    ]
    code = Draft(
        id="c",
        kind=MemoryKind.CODE_FRAGMENT,
        payload=Payload(content="def tide(): ...", detail=CodeFragment(path="src/tide.py", start_line=1, end_line=2)),
    )
    record = Draft(
        id="r",
        kind=MemoryKind.LEARNING_RECORD,
        payload=Payload(detail=LearningRecord(question="when is the tide low", answer="at nine", source_files=("a",))),
    )
    for project in PROJECTS[:2]:
        work.teach(*said, code, record, note("parse_date reads ISO dates"), project=project)
    named = ("agent.top_k", "agent.min_similarity")
    tuned = ProjectSettings(agent=PresetSettings(top_k=3, min_similarity=0.01))
    Settings(work.store, near_twin_bar=0.9).change("tuned", "", tuned, named, b"f")
    return CachedRecall(Recall(work.embedder, work.clock), work.store, SPACE.id, work.clock)


def encoded(answer: Answer, request: RecallRequest) -> tuple[RecallResponse, RecallResponse]:
    """The reply that is sent, and the whole answer as a message."""
    with_raw = wants_raw(request.view)
    return (
        RecallResponse.FromString(to_bytes(recall_reply(answer, with_raw=with_raw))),
        recall_response(answer.recalled(), with_raw=with_raw),
    )


@pytest.mark.long
@pytest.mark.parametrize("project", PROJECTS)
def test_a_reply_from_the_cache_is_the_answer_encoded(work: Workplace, recall: CachedRecall, project: str) -> None:
    reused = 0
    for (preset, view), fields in product(product(Preset, VIEWS), FIELDS):
        request = RecallRequest(
            **{"project": project, "query_text": "潮汐 tide", "preset": preset, "view": view, **fields}
        )
        # The first is fresh; then the clock has moved on, stood still, and moved on again.
        for pause_s in (0.0, 7.25, 0.0, 60.0):
            work.clock.move(pause_s)
            answer = recall.answer(recall_query(request))
            reused += answer.is_cached
            sent, whole = encoded(answer, request)
            assert sent == whole, (request, answer.is_cached)
    assert reused > 200


def test_each_view_of_a_cached_answer_has_a_reply_of_its_own(recall: CachedRecall) -> None:
    raws = []
    for view in (*VIEWS[1:], *VIEWS[1:]):
        request = RecallRequest(project="p", query_text="潮汐 tide", view=view)
        reply, _ = encoded(recall.answer(recall_query(request)), request)
        raws.append(any(hit.memory.raw for hit in reply.hits))
    assert raws == [False, True, False, True]
