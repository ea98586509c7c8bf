"""Records of calls: the audit log's lines over a real server, and slow calls."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from structlog.testing import capture_logs

from hummock.access.audit import FILE_NAME, AuditFailed, AuditLog, verify
from hummock.access.authenticator import Authenticator, Exposure
from hummock.access.tokens import TokenFile
from hummock.core.access import Scope
from hummock.core.project import DeletedProject
from hummock.rpc.interceptor import Interceptor
from hummock.rpc.server import Access
from hummock_client.v1 import context_service_pb2 as context_pb
from hummock_client.v1 import memory_pb2, recall_pb2
from hummock_client.v1 import memory_service_pb2 as memory_pb
from hummock_client.v1 import project_service_pb2 as project_pb
from tests.fakes import FakeClock
from tests.rpc.edge import edge, refused, use_cases

pytestmark = pytest.mark.timed

SECRET = "不可记录 hunter2"
LEARN = context_pb.LearnRequest(project="shop", memories=[memory_pb2.Memory(id="m1", content=SECRET, title=SECRET)])
DELETE_PROJECT = project_pb.DeleteProjectRequest(project="shop")


def lines(directory: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (directory / FILE_NAME).read_text(encoding="utf-8").splitlines()]


@contextmanager
def audited(directory: Path) -> Iterator[Access]:
    clock = FakeClock()
    with closing(AuditLog(directory)) as audit:
        yield Access(interceptor=Interceptor(Authenticator(directory, Exposure.MACHINE), audit, now=clock.now))


class Removing:
    """Projects of which one can be deleted."""

    def __init__(self) -> None:
        self.removed: list[str] = []

    def delete(self, name: str, *_: object) -> Any:
        self.removed.append(name)
        return DeletedProject(memory_count=1, session_count=2, message_count=3)

    def stored(self, name: str) -> None:
        return None

    def require(self, name: str, *, allow_stale: bool = False) -> None:
        return None


async def test_each_write_is_a_line_without_content_and_reads_are_none(tmp_path: Path) -> None:
    """X12."""
    _, text = TokenFile(tmp_path).create("ci", [Scope.parse("shop:learn")], now_s=1.0)
    sent = (("authorization", f"Bearer {text}"),)
    with audited(tmp_path) as access:
        async with edge(access=access) as serving:

            async def call(method: str, request: Any) -> bytes:
                any_unary: Any = serving.channel.unary_unary(f"/hummock.v1.{method}")
                reply: bytes = await any_unary(request.SerializeToString(), metadata=sent)
                return reply

            await call("ContextService/Learn", LEARN)
            await call("ContextService/Recall", recall_pb2.RecallRequest(project="shop", query_text=SECRET))
            await call("MemoryService/DeleteMemories", memory_pb.DeleteMemoriesRequest(project="shop", ids=["a", "b"]))
            await refused(call("ProjectService/DeleteProject", DELETE_PROJECT))
            await refused(call("ContextService/Learn", context_pb.LearnRequest(project="shop")))
    known, *told = lines(tmp_path)
    assert (known["who"], known["method"], known["outcome"]) == ("local", "hummock tokens", "KNOWN")
    assert [(each["who"], each["method"].rpartition("/")[2], each["outcome"]) for each in told] == [
        ("ci", "Learn", "OK"),
        ("ci", "DeleteMemories", "OK"),
        ("ci", "DeleteProject", "PERMISSION_DENIED"),
        ("ci", "Learn", "INVALID_ARGUMENT"),
    ]
    assert (told[0]["projects"], told[0]["ids"][0], told[0]["counts"]["memories"]) == (["shop"], "m1", 1)
    assert told[1]["ids"] == ["a", "b"]
    assert told[1]["counts"]["deleted_count"] >= 1
    assert "hunter2" not in (tmp_path / FILE_NAME).read_text(encoding="utf-8")
    assert verify(tmp_path).problems == ()


async def test_a_stream_of_batches_is_one_line(tmp_path: Path) -> None:
    with audited(tmp_path) as access:
        async with edge(access=access) as serving:
            stream: Any = serving.channel.stream_stream("/hummock.v1.ContextService/LearnStream")
            batch = context_pb.LearnStreamRequest(learn=LEARN).SerializeToString()
            assert len([reply async for reply in stream(iter([batch] * 3))]) == 3
    (line,) = lines(tmp_path)
    assert (line["who"], line["projects"], line["counts"]["requests"]) == ("local", ["shop"], 3)


async def test_what_administers_is_said_before_it_is_done_and_not_done_where_it_cannot_be_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """X12."""
    projects: Any = Removing()
    with audited(tmp_path) as access:
        async with edge(use_cases(projects=projects), access=access) as serving:
            data = DELETE_PROJECT.SerializeToString()
            await serving.raw("ProjectService/DeleteProject", data)
            assert [each["outcome"] for each in lines(tmp_path)] == ["BEGUN", "OK"]

            def full(*_: object, **__: object) -> None:
                raise AuditFailed("No space left on device")

            monkeypatch.setattr(access.interceptor.audit, "append", full)
            refusal = await refused(serving.raw("ProjectService/DeleteProject", data))
            assert (refusal.code, refusal.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "AUDIT_FAILED")
            # What does not administer goes on.
            await serving.raw("ContextService/Learn", LEARN.SerializeToString())
    assert projects.removed == ["shop"]


@pytest.mark.parametrize(("slow_s", "logged"), [(0.0, 1), (1e6, 0), (None, 0)])
async def test_a_slow_call_is_logged_with_its_stages_and_without_content(slow_s: float | None, logged: int) -> None:
    with capture_logs() as logs:
        async with edge(access=Access(interceptor=Interceptor(slow_s=slow_s))) as serving:
            request = recall_pb2.RecallRequest(project="shop", query_text=SECRET)
            await serving.raw("ContextService/Recall", request.SerializeToString())
    said = [each for each in logs if each["event"] == "slow_call"]
    assert len(said) == logged
    for each in said:
        assert (each["method"], each["projects"], each["who"]) == (
            "/hummock.v1.ContextService/Recall",
            ["shop"],
            "local",
        )
        assert each["took_ms"] >= each["waited_ms"] >= 0
        assert each["stages_ms"]
        assert "hunter2" not in repr(each)


async def test_a_stream_that_administers_is_begun_once(tmp_path: Path) -> None:
    with audited(tmp_path) as access:
        async with edge(access=access) as serving:
            stream: Any = serving.channel.stream_stream("/hummock.v1.ProjectService/ImportProject")
            part = project_pb.ImportProjectRequest(project="shop").SerializeToString()
            assert len([reply async for reply in stream(iter([part] * 3))]) == 3
    assert [line["outcome"] for line in lines(tmp_path)] == ["BEGUN", "OK"]
    assert lines(tmp_path)[1]["counts"]["requests"] == 3
