"""Settings of a project and information about it, from outside."""

from __future__ import annotations

import subprocess
import uuid
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.json_format import MessageToDict

from hummock_client.v1 import context_service_pb2 as context
from hummock_client.v1 import memory_pb2 as pb
from hummock_client.v1 import project_service_pb2 as projects
from hummock_client.v1 import recall_pb2 as recall
from hummock_client.v1 import settings_pb2
from hummock_tools.indexing.sync import SyncReport, sync
from tests.service.calls import ask, change_settings, chat, explain, failure, learn, render
from tests.service.conversing import append, render_turn, texts
from tests.service.inputs import note
from tests.service.running import Stubs

TIDES = [f"the tide at harbour number {number} turns" for number in range(12)]


@pytest.fixture
def harbour(service: Stubs, project: str) -> str:
    learn(service, project, *map(note, TIDES))
    return project


def values(service: Stubs, project: str) -> dict[str, tuple[Any, bool]]:
    """Effective value by path, and whether the project sets it."""
    shown = service.project.GetProjectSettings(project=project)
    own = dict(paths_of(shown.settings))
    return {path: (value, path in own) for path, value in paths_of(shown.effective)}


def paths_of(settings: settings_pb2.ProjectSettings) -> Iterator[tuple[str, Any]]:
    for group, names in MessageToDict(settings, preserving_proto_field_name=True).items():
        for name, value in names.items():
            yield f"{group}.{name}", value


def refused(service: Stubs, project: str, *paths: str, **groups: Any) -> dict[str, str]:
    refusal = failure(change_settings, service, project, *paths, **groups)
    assert refusal.code is grpc.StatusCode.INVALID_ARGUMENT
    return refusal.violations


def test_a_setting_is_followed_by_the_next_recall_and_unset_again(service: Stubs, harbour: str) -> None:
    """S4-46, 1.1-1."""
    assert len(chat(service, harbour, "tide harbour")) == 5
    changed = change_settings(service, harbour, "chat.top_k", chat=recall.RecallTuning(top_k=8))
    assert MessageToDict(changed.settings) == {"chat": {"topK": 8}}
    answer = ask(service, harbour, "tide harbour", preset=recall.PRESET_CHAT, min_seq=changed.seq)
    assert (len(answer.hits), list(answer.receipt.project_settings)) == (8, ["chat.top_k"])
    assert values(service, harbour)["chat.top_k"] == (8, True)
    change_settings(service, harbour, "chat.top_k")
    assert values(service, harbour)["chat.top_k"] == (5, False)
    usual = ask(service, harbour, "tide harbour", preset=recall.PRESET_CHAT)
    assert (len(usual.hits), list(usual.receipt.project_settings)) == (5, [])


def test_the_defaults_are_the_documents_but_where_measured_otherwise(service: Stubs, harbour: str) -> None:
    """S4-20, S4-21, S4-22, S4-23, S2-06, S2-08, S0-20, S0-33, 1.1-3, 1.1-4, 1.1-5."""
    shown = values(service, harbour)
    assert not any(is_own for _, is_own in shown.values())
    expected = {
        "chat.candidates": 50,
        "chat.decay_floor": 0.9,
        "chat.top_k": 5,
        "chat.min_similarity": 0.15,
        "chat.half_life_days": 14,
        "chat.decay_mode": "DECAY_MODE_EXPONENTIAL",
        "chat.origins": ["ORIGIN_MANUAL", "ORIGIN_SUMMARY", "ORIGIN_USER_INPUT"],
        "code.candidates": 50,
        "code.code_top_k": 10,
        "agent.relevance_weight": 0.7,
        "budget_tokens.context": 4000,
        "budget_tokens.waterfall": 2000,
        "quotas.learning_records": 5,
        "quotas.code_fragments": 10,
        "quotas.text_characters": 0,
    }
    assert {path: shown[path][0] for path in expected} == expected


def test_a_setting_out_of_its_range_is_refused_and_a_group_stands_for_all_of_it(service: Stubs, harbour: str) -> None:
    """S4-46."""
    violations = refused(service, harbour, "chat.top_k", chat={"top_k": 0, "half_life_days": 0})
    assert set(violations) == {"settings.chat.top_k", "settings.chat.half_life_days"}
    for path, values_of, named in (
        ("chat", {"min_similarity": float("nan")}, "chat.min_similarity"),
        ("chat", {"origins": [99]}, "chat.origins[0]"),
        ("budget_tokens", {"index": 0}, "budget_tokens.index"),
    ):
        assert set(refused(service, harbour, path, **{path: values_of})) == {f"settings.{named}"}
    assert not any(is_own for _, is_own in values(service, harbour).values())
    change_settings(service, harbour, "chat.top_k", "code.top_k", chat={"top_k": 8}, code={"top_k": 7})
    change_settings(service, harbour, "chat", chat={"min_similarity": 0.1})
    shown = values(service, harbour)
    assert shown["chat.top_k"] == (5, False)
    assert shown["chat.min_similarity"] == (0.1, True)
    assert shown["code.top_k"] == (7, True)


@pytest.mark.parametrize("paths", [(), ("top_k",), ("chat.colour",), ("chat.top_k", ""), ("cha",), ("chat.",)])
def test_a_mask_that_names_no_setting_is_refused(service: Stubs, harbour: str, paths: tuple[str, ...]) -> None:
    assert set(refused(service, harbour, *paths)) == {"update_mask"}


def test_a_repeated_request_changes_nothing_and_another_body_under_its_id_is_refused(
    service: Stubs, harbour: str
) -> None:
    """S4-46."""
    request_id = str(uuid.uuid4())
    change_settings(service, harbour, "chat.top_k", request_id=request_id, chat={"top_k": 8})
    change_settings(service, harbour, "chat.top_k", chat={"top_k": 3})
    change_settings(service, harbour, "chat.top_k", request_id=request_id, chat={"top_k": 8})
    assert values(service, harbour)["chat.top_k"] == (3, True)
    other = failure(change_settings, service, harbour, "chat.top_k", request_id=request_id, chat={"top_k": 9})
    assert other.reason == "REQUEST_ID_REUSED"


def test_settings_of_an_unknown_project_are_not_found(service: Stubs) -> None:
    assert failure(values, service, "nobody").code is grpc.StatusCode.NOT_FOUND


def test_settings_are_a_projects_own(service: Stubs, harbour: str) -> None:
    """S0-06, S4-46."""
    other = f"{harbour}-other"
    learn(service, other, *map(note, TIDES))
    change_settings(service, harbour, "chat.top_k", chat={"top_k": 8})
    assert len(chat(service, other, "tide harbour")) == 5


def test_ai_output_is_recalled_once_it_is_switched_on(service: Stubs, project: str) -> None:
    """S4-51, S4-53."""
    learn(service, project, note("the harbour master keeps the old lighthouse", origin=pb.ORIGIN_AI_OUTPUT))
    assert chat(service, project, "who keeps the lighthouse?") == []
    origins = [pb.ORIGIN_MANUAL, pb.ORIGIN_AI_OUTPUT]
    change_settings(service, project, "chat.origins", chat={"origins": origins, "min_similarity": -1.0})
    assert chat(service, project, "who keeps the lighthouse?") == ["the harbour master keeps the old lighthouse"]


def test_renderings_searches_and_explanations_follow_the_settings(service: Stubs, harbour: str) -> None:
    """S4-46, S0-33, S2-08, 1.1-5, S1-03."""
    change_settings(service, harbour, "budget_tokens.waterfall", budget_tokens={"waterfall": 120})
    waterfall = partial(render, service, harbour, "tide harbour", form=context.RENDER_FORM_WATERFALL)
    rendered = waterfall()
    assert rendered.token_count <= rendered.budget_tokens == 120
    assert waterfall(budget_tokens=200).budget_tokens == 200

    def found(**fields: Any) -> int:
        return len(service.context.Search(project=harbour, query_text="tide harbour", **fields).results)

    assert found() == 10
    change_settings(service, harbour, "agent", agent={"top_k": 4, "code_top_k": 5})
    assert found() == 4
    assert found(top_k=6) == 6
    change_settings(service, harbour, "chat.top_k", chat={"top_k": 1})
    hits = ask(service, harbour, "tide harbour", preset=recall.PRESET_CHAT, top_k=5).hits
    explained = explain(service, harbour, "tide harbour", hits[2].memory.id, preset=recall.PRESET_CHAT)
    assert (list(explained.project_settings), explained.threshold) == (["chat.top_k"], 1)


def test_a_history_is_as_long_as_the_request_or_the_project_says(service: Stubs, talking: str) -> None:
    """S4-45, S4-46."""
    for number in range(6):
        append(service, talking, "s", f"message {number}")

    def shown(**limits: Any) -> int:
        messages = render_turn(service, talking, "now", session_id="s", **limits).messages
        return sum(text.startswith("message") for text in texts(messages))

    assert shown() == 6
    change_settings(service, talking, "history", history={"max_messages": 2})
    assert (shown(), shown(max_messages=4)) == (2, 4)
    change_settings(service, talking, "history", history={"max_characters": 20})
    assert (shown(), shown(max_characters=100)) == (2, 6)


def say(
    service: Stubs, project: str, origin: pb.Origin.ValueType, tech_stack: list[str], path: str = ""
) -> projects.ProjectInfo:
    info = projects.ProjectInfo(tech_stack=tech_stack, path=path)
    mask = FieldMask(paths=["tech_stack", *(["path"] if path else [])])
    return service.project.UpdateProject(project=project, info=info, update_mask=mask, origin=origin).project.info


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
    text = service.context.Render(project=project, recall=question, locale="zh").text
    assert "- 技术栈: Go, Gin\n" in text
    assert f"- 项目路径: {repository.resolve()}\n" in text


def test_the_indexer_changes_what_it_said_itself_and_never_what_a_person_said(service: Stubs, project: str) -> None:
    """S0-19."""
    indexer, manual = pb.ORIGIN_INDEXER, pb.ORIGIN_MANUAL
    assert list(say(service, project, indexer, ["Go"]).tech_stack) == ["Go"]
    info = say(service, project, indexer, ["Rust"], "/a")
    assert (list(info.tech_stack), info.tech_stack_origin, info.path_origin) == (["Rust"], indexer, indexer)
    known = ["Rust", "our own framework"]
    assert list(say(service, project, manual, known).tech_stack) == known
    info = say(service, project, indexer, ["Go"], "/b")
    assert (list(info.tech_stack), info.tech_stack_origin, info.path) == (known, manual, "/b")


def test_what_a_person_empties_is_the_indexers_again(service: Stubs, project: str) -> None:
    """S0-19."""
    say(service, project, pb.ORIGIN_MANUAL, ["Java"])
    assert say(service, project, pb.ORIGIN_UNSPECIFIED, []).tech_stack_origin == pb.ORIGIN_UNSPECIFIED
    assert list(say(service, project, pb.ORIGIN_INDEXER, ["Go"]).tech_stack) == ["Go"]


def test_nobody_else_may_say_it(service: Stubs, project: str) -> None:
    refusal = failure(say, service, project, pb.ORIGIN_AI_OUTPUT, ["Go"])
    assert (refusal.code, set(refusal.violations)) == (grpc.StatusCode.INVALID_ARGUMENT, {"origin"})
