"""Memories that wait for their vectors survive the process: none is lost, none is there twice."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hummock.core.memory import Draft, MemoryKind, Payload
from hummock_client.v1 import context_service_pb2 as context
from hummock_client.v1 import recall_pb2 as recall
from tests.crash.killing import is_killed
from tests.service.calls import await_vectors
from tests.service.inputs import note
from tests.service.running import connected, in_process
from tests.sure import sure
from tests.workplace import Workplace, workplace

pytestmark = pytest.mark.long

POINTS = 20
DRAFTS = [
    Draft(id=f"m{number:02}", kind=MemoryKind.NOTE, payload=Payload(content=f"memory{number} " * (number + 1)))
    for number in range(32)
]


def vectors(work: Workplace) -> dict[str, list[bytes]]:
    """All vectors of each memory."""
    found: dict[str, list[bytes]] = {}
    seq = work.store.generation("p").seq
    for one in work.store.export("p", 0, seq, with_vectors=True).memories:
        assert one.memory.id not in found
        assert len(one.embeddings) == one.memory.chunk_count
        found[one.memory.id] = [part.vector.tobytes() + part.tokens.tobytes() for part in one.embeddings]
    return found


def test_kills_at_twenty_points_of_embedding_lose_nothing_and_double_nothing(tmp_path: Path) -> None:
    """S4-02."""
    with workplace(tmp_path / "waiting") as work:
        work.teach(*DRAFTS, is_deferred=True)
    with workplace(tmp_path / "inline") as inline:
        inline.teach(*DRAFTS)
        wanted = vectors(inline)
    counts = set()
    for point in range(0, 2 * POINTS, 2):
        directory = tmp_path / str(point)
        shutil.copytree(tmp_path / "waiting", directory)
        assert is_killed("embed", point, directory)
        with workplace(directory) as work:
            there = vectors(work)
            stored = sure(work.store.project("p"))
            assert sorted(there) == sorted(wanted)
            assert all(there[name] in ([], wanted[name]) for name in wanted)
            assert stored.pending_count == work.store.status().pending_count == list(there.values()).count([])
            assert stored.memory_count == len(DRAFTS)
            counts.add(stored.pending_count)
            work.backfill.wake("p")
            work.embed_pending()
            assert vectors(work) == wanted
    # The kills have met the work at its beginning, and far into it.
    assert {32, 24, 16} <= counts


def test_a_killed_service_goes_on_embedding_where_it_was(tmp_path: Path, models_dir: Path, model: str) -> None:
    """S4-02, S4-04."""
    memories = [note(f"memory{number}: the lamp on pier {number} was lit", id=f"m{number}") for number in range(200)]
    deferred = context.LearnRequest(project="p", memories=memories, embedding=context.EMBEDDING_MODE_DEFERRED)
    with in_process(tmp_path, models_dir, model) as process, connected(process.target) as stubs:
        learned = stubs.context.Learn(deferred)
        process.kill()
    assert learned.pending_count == 200
    with in_process(tmp_path, models_dir, model) as process, connected(process.target) as stubs:
        await_vectors(stubs, "p")
        by_meaning = recall.RecallRequest(
            project="p",
            query_text="the lamp on pier 7",
            tuning=recall.RecallTuning(top_k=200),
            paths=[recall.RECALL_PATH_VECTOR],
        )
        reply = stubs.context.Recall(by_meaning)
        assert len({hit.memory.id for hit in reply.hits}) == len(reply.hits) == 200
        assert not reply.degraded
