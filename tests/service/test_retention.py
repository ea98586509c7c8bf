"""Retention of a project, from outside: memories are removed in the background, and watches are told."""

from __future__ import annotations

from pathlib import Path

import grpc
import pytest
from google.protobuf.field_mask_pb2 import FieldMask

from hummock_client.v1 import memory_pb2 as pb
from hummock_client.v1 import memory_service_pb2 as memory
from hummock_client.v1 import project_service_pb2 as projects
from hummock_client.v1 import settings_pb2
from tests.rpc.edge import refusal_of
from tests.service.calls import ask, learn
from tests.service.inputs import fragment, note
from tests.service.running import Stubs, in_thread, settings
from tests.service.test_watch import told, watching


def keep(service: Stubs, project: str, **values: float) -> None:
    """Sets what a project keeps."""
    chosen = settings_pb2.RetentionSettings(**values)  # type: ignore[arg-type]  # by their names
    request = projects.UpdateProjectSettingsRequest(
        project=project,
        settings=settings_pb2.ProjectSettings(retention=chosen),
        update_mask=FieldMask(paths=["retention"]),
    )
    service.project.UpdateProjectSettings(request)


def test_what_is_too_much_is_forgotten_and_told(tmp_path: Path, models_dir: Path, model: str) -> None:
    """A start looks at every project at once; what is written later waits for the next look."""
    chosen = settings(tmp_path, models_dir, model)
    with in_thread(chosen) as service:
        code = fragment("lamp.py", "lamp", "def lamp(): ...")
        code.origin = pb.ORIGIN_INDEXER
        learn(service, "p", note("the lamp on pier one", id="one"), code, note("the lamp on pier two", id="two"))
        seq = learn(service, "q", note("the lamp on pier one", id="one"), note("the lamp on pier two", id="two")).seq
        assert seq == 1
        keep(service, "p", max_memories=1, max_age_days=90, max_bytes=1000)
    with in_thread(chosen) as service, watching(service, "p", after_seq=2) as news:
        assert told(next(news)) == [(memory.MEMORY_EVENT_TYPE_DELETED, "one")]
        found = [hit.memory.id for hit in ask(service, "p", "the lamp on pier one", min_similarity=0).hits]
        assert "two" in found
        assert "one" not in found
        listed = service.memory.ListMemories(memory.ListMemoriesRequest(project="p")).memories
        assert [one.kind for one in listed] == [pb.MEMORY_KIND_CODE_FRAGMENT, pb.MEMORY_KIND_NOTE]
        others = service.memory.ListMemories(memory.ListMemoriesRequest(project="q")).memories
        assert [one.id for one in others] == ["one", "two"]


@pytest.mark.parametrize(
    "values", [{"max_age_days": 0}, {"max_age_days": 40_000}, {"max_memories": 0}, {"max_bytes": 0}]
)
def test_what_would_keep_nothing_is_refused(service: Stubs, project: str, values: dict[str, float]) -> None:
    learn(service, project, note("the lamp on pier one", id="one"))
    with pytest.raises(grpc.RpcError) as error:
        keep(service, project, **values)
    assert refusal_of(error.value).code is grpc.StatusCode.INVALID_ARGUMENT
