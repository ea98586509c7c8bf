"""Project information in prompts, and its origin."""

from __future__ import annotations

import subprocess
from pathlib import Path

import grpc
import pytest
from google.protobuf.field_mask_pb2 import FieldMask

from hummock_client.v1 import context_service_pb2 as context
from hummock_client.v1 import memory_pb2 as pb
from hummock_client.v1 import project_service_pb2 as projects
from hummock_client.v1 import recall_pb2 as recall
from hummock_tools.indexing.sync import SyncReport, sync
from tests.rpc.edge import refusal_of
from tests.service.running import Stubs, in_thread, settings


def say(
    service: Stubs,
    project: str,
    origin: pb.Origin.ValueType,
    tech_stack: list[str] | None = None,
    path: str | None = None,
) -> projects.ProjectInfo:
    named = {"tech_stack": tech_stack, "path": path}
    request = projects.UpdateProjectRequest(
        project=project,
        info=projects.ProjectInfo(tech_stack=tech_stack, path=path or ""),
        update_mask=FieldMask(paths=[name for name, value in named.items() if value is not None]),
        origin=origin,
    )
    return service.project.UpdateProject(request).project.info


def index(service: Stubs, project: str, root: Path) -> SyncReport:
    return sync(root, project, service.channel, on_progress=lambda progress: None, on_skip=lambda path, reason: None)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    (tmp_path / "go.mod").write_text("module example.org/loan\nrequire github.com/gin-gonic/gin v1\n", encoding="utf-8")
    (tmp_path / "main.go").write_text("package main\n\nfunc main() {\n}\n", encoding="utf-8")
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    return tmp_path


def test_what_the_indexer_found_stands_in_the_prompt(service: Stubs, project: str, repository: Path) -> None:
    """S0-19, S0-20, S0-21."""
    index(service, project, repository)
    question = recall.RecallRequest(query_text="main function", preset=recall.PRESET_CODE)
    text = service.context.Render(context.RenderRequest(project=project, recall=question, locale="zh")).text
    assert "- 技术栈: Go, Gin\n" in text
    assert f"- 项目路径: {repository.resolve()}\n" in text


def test_the_indexer_changes_what_it_said_itself_and_never_what_a_person_said(service: Stubs, project: str) -> None:
    """S0-19."""
    indexer, manual = pb.ORIGIN_INDEXER, pb.ORIGIN_MANUAL
    assert list(say(service, project, indexer, ["Go"]).tech_stack) == ["Go"]
    info = say(service, project, indexer, ["Rust"], "/a")
    assert (list(info.tech_stack), info.tech_stack_origin, info.path_origin) == (["Rust"], indexer, indexer)
    assert list(say(service, project, manual, ["Rust", "our own framework"]).tech_stack) == [
        "Rust",
        "our own framework",
    ]
    info = say(service, project, indexer, ["Go"], "/b")
    assert (list(info.tech_stack), info.tech_stack_origin, info.path) == (["Rust", "our own framework"], manual, "/b")


def test_what_a_person_empties_is_the_indexers_again(service: Stubs, project: str) -> None:
    """S0-19."""
    say(service, project, pb.ORIGIN_MANUAL, ["Java"])
    assert say(service, project, pb.ORIGIN_UNSPECIFIED, []).tech_stack_origin == pb.ORIGIN_UNSPECIFIED
    assert list(say(service, project, pb.ORIGIN_INDEXER, ["Go"]).tech_stack) == ["Go"]


def test_nobody_else_may_say_it(service: Stubs, project: str) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        say(service, project, pb.ORIGIN_AI_OUTPUT, ["Go"])
    refusal = refusal_of(caught.value)
    assert (refusal.code, set(refusal.violations)) == (grpc.StatusCode.INVALID_ARGUMENT, {"origin"})


def test_who_said_it_survives_a_restart(tmp_path: Path, models_dir: Path, model: str) -> None:
    """S0-19, S4-02."""
    chosen = settings(tmp_path, models_dir, model)
    with in_thread(chosen) as stubs:
        say(stubs, "p", pb.ORIGIN_MANUAL, ["Java"])
    with in_thread(chosen) as stubs:
        assert list(say(stubs, "p", pb.ORIGIN_INDEXER, ["Go"]).tech_stack) == ["Java"]
