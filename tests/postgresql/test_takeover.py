"""A service that is killed leaves its work to the others, which need no restart for it."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from hummock_client.v1 import admin_service_pb2 as admin
from hummock_client.v1 import context_service_pb2 as context
from hummock_client.v1 import project_service_pb2 as project_pb
from tests.service.calls import ask, await_vectors
from tests.service.inputs import note
from tests.service.models import install_model
from tests.service.running import Stubs, connected, in_process, in_thread, settings

pytestmark = pytest.mark.long

MEMORIES, AT_ONCE = 1536, 512


def learn_deferred(service: Stubs, project: str) -> None:
    for start in range(0, MEMORIES, AT_ONCE):
        notes = [
            note(f"the tide of day {number} rose by {number} feet", id=f"m{number}")
            for number in range(start, start + AT_ONCE)
        ]
        request = context.LearnRequest(project=project, memories=notes, embedding=context.EMBEDDING_MODE_DEFERRED)
        assert service.context.Learn(request, timeout=120).pending_count


def pending(service: Stubs, project: str) -> int:
    return service.project.GetProject(project_pb.GetProjectRequest(project=project)).project.pending_count


def test_what_a_killed_service_had_taken_is_embedded_by_the_other(tmp_path: Path, database: str) -> None:
    model = install_model(tmp_path)
    with in_thread(settings(tmp_path / "two", tmp_path, model, store=database)) as other:
        with in_process(tmp_path / "one", tmp_path, model, {"HUMMOCK_STORE": database}) as process:
            with connected(process.target) as dying:
                learn_deferred(dying, "p")
            process.kill()
        left = pending(other, "p")
        assert left
        with psycopg.connect(database, autocommit=True) as connection:
            # As in some seconds, when its lease has run out.
            connection.execute("UPDATE hummock.service SET until = clock_timestamp()")
        await_vectors(other, "p")
        embedding = other.admin.GetStatus(admin.GetStatusRequest()).embedding
        assert (embedding.pending_count, embedding.embedded_count) == (0, left)
        assert not ask(other, "p", "how high was the tide").degraded
