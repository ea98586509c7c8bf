"""Acknowledged writes survive the process."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from struct import pack

import grpc
import pytest

from hummock_client.v1 import admin_service_pb2 as admin
from hummock_client.v1 import context_service_pb2 as context
from hummock_client.v1 import memory_pb2 as pb
from hummock_client.v1 import memory_service_pb2 as memory
from hummock_client.v1 import recall_pb2 as recall
from hummock_client.v1 import session_service_pb2 as session
from tests.service.inputs import note
from tests.service.running import Process, Stubs, connected, in_process

pytestmark = pytest.mark.long

PROJECT = "crash"
KILL_AFTER = 5_000
BATCH = 50


def sentence(number: int) -> str:
    return f"memory{number} 记忆 {number}: the lamp on pier {number} was lit"


def batches(space: str, dim: int, start: int = 0) -> Iterator[context.LearnStreamRequest]:
    """Memories from `start` on, without an end; with vectors, so that the test waits for the disk and not the model."""
    for first in count(start, BATCH):
        memories = []
        for number in range(first, first + BATCH):
            values = pack(f"<{dim}f", *(1.0 if place == number % dim else 0.01 for place in range(dim)))
            vector = pb.Embedding(values=values, emb_space=space)
            memories.append(note(sentence(number), id=f"m{number}", vector=vector))
        yield context.LearnStreamRequest(learn=context.LearnRequest(project=PROJECT, memories=memories))


def learn_until_killed(process: Process, stubs: Stubs, kill_after: int) -> list[str]:
    """Ids of all memories that the service acknowledged; it is killed in the middle of the stream."""
    model = stubs.admin.GetStatus(admin.GetStatusRequest()).model
    acknowledged: list[str] = []
    try:
        for reply in stubs.context.LearnStream(batches(model.emb_space, model.dim)):
            acknowledged += [result.id for result in reply.learnt.results]
            if len(acknowledged) >= kill_after:
                process.kill()
    except grpc.RpcError:
        return acknowledged
    raise AssertionError("the stream ended before the service was killed")


def missing(stubs: Stubs, ids: list[str]) -> list[str]:
    """Ids of memories that the service does not have."""
    lost: list[str] = []
    for first in range(0, len(ids), 500):
        part = memory.BatchGetMemoriesRequest(project=PROJECT, ids=ids[first : first + 500])
        lost += stubs.memory.BatchGetMemories(part).missing_ids
    return lost


def recalled(stubs: Stubs, memory_id: str) -> bool:
    number = int(memory_id.removeprefix("m"))
    request = recall.RecallRequest(
        project=PROJECT,
        query_text=f"memory{number}",
        tuning=recall.RecallTuning(top_k=1),
        paths=[recall.RECALL_PATH_KEYWORD],
        view=pb.MEMORY_VIEW_INDEX,
    )
    return [hit.memory.id for hit in stubs.context.Recall(request).hits] == [memory_id]


def test_every_acknowledged_memory_of_a_killed_stream_is_recalled_after_a_restart(
    tmp_path: Path, models_dir: Path, model: str
) -> None:
    """S4-02, S4-04."""
    with in_process(tmp_path, models_dir, model) as process, connected(process.target) as stubs:
        acknowledged = learn_until_killed(process, stubs, kill_after=KILL_AFTER)
    assert len(acknowledged) >= KILL_AFTER
    with in_process(tmp_path, models_dir, model) as process, connected(process.target) as stubs:
        assert missing(stubs, acknowledged) == []
        assert all(recalled(stubs, memory_id) for memory_id in acknowledged)


def append_until_killed(process: Process, stubs: Stubs, writers: int, kill_after: int) -> dict[int, str]:
    """Every message that was acknowledged, by its position; the service is killed while others are on their way."""
    acknowledged: dict[int, str] = {}

    def write(writer: int) -> None:
        for number in count():
            content = f"消息 {writer}/{number}"
            request = session.AppendMessageRequest(
                project=PROJECT, session_id="s", role=context.PROMPT_ROLE_USER, content=content
            )
            try:
                acknowledged[stubs.session.AppendMessage(request).position] = content
            except grpc.RpcError:
                return
            if len(acknowledged) >= kill_after:
                process.kill()

    with ThreadPoolExecutor(writers) as pool:
        list(pool.map(write, range(writers)))
    return acknowledged


def test_every_acknowledged_message_is_in_its_place_after_a_restart(
    tmp_path: Path, models_dir: Path, model: str
) -> None:
    """S4-02, S4-14, S4-33."""
    with in_process(tmp_path, models_dir, model) as process, connected(process.target) as stubs:
        stubs.session.CreateSession(session.CreateSessionRequest(project=PROJECT, id="s"))
        acknowledged = append_until_killed(process, stubs, writers=4, kill_after=200)
    assert len(acknowledged) >= 200
    with in_process(tmp_path, models_dir, model) as process, connected(process.target) as stubs:
        request = session.ListMessagesRequest(project=PROJECT, session_id="s", page_size=1000)
        kept = {one.position: one.content for one in stubs.session.ListMessages(request).messages}
        assert {position: kept.get(position) for position in acknowledged} == acknowledged
        # What was not acknowledged may be there as well, but leaves no gap.
        assert sorted(kept) == list(range(1, len(kept) + 1))


def test_a_restart_answers_as_before(tmp_path: Path, models_dir: Path, model: str) -> None:
    """S4-49 (T3), S4-02."""
    question = recall.RecallRequest(project=PROJECT, query_text="灯塔 lamp on the pier")
    answers = []
    for texts in (["the lamp on the pier is out", "灯塔的灯坏了", "码头 pier 7 has no lamp"], []):
        with in_process(tmp_path, models_dir, model) as process, connected(process.target) as stubs:
            for text in texts:
                stubs.context.Learn(context.LearnRequest(project=PROJECT, memories=[note(text)]))
            reply = stubs.context.Recall(question)
            answers.append([(hit.memory.id, round(hit.score, 5), round(hit.keyword_score, 5)) for hit in reply.hits])
            process.kill()
    assert answers[0] == answers[1]
    assert len(answers[0]) == 3
