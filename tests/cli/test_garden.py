"""memories, projects and status against a service with canned answers."""

from __future__ import annotations

import grpc
import pytest
from google.protobuf.json_format import Parse
from google.protobuf.message import Message

from hummock_client.v1 import admin_service_pb2 as admin_pb
from hummock_client.v1 import memory_service_pb2 as memory_pb
from hummock_client.v1 import project_service_pb2 as project_pb
from tests.cli.conftest import Run
from tests.cli.fake_service import FakeService


@pytest.mark.parametrize(
    ("arguments", "reply"),
    [
        (("memories", "ls"), memory_pb.ListMemoriesResponse()),
        (("memories", "get", "a"), memory_pb.GetMemoryResponse()),
        (("memories", "get", "a", "b"), memory_pb.BatchGetMemoriesResponse()),
        (("projects", "ls"), project_pb.ListProjectsResponse()),
        (("projects", "show", "还款"), project_pb.GetProjectResponse()),
        (("status",), admin_pb.GetStatusResponse()),
    ],
)
def test_every_read_prints_its_reply_as_json(run: Run, arguments: tuple[str, ...], reply: Message) -> None:
    result = run(*arguments, "--json")
    assert result.exit_code == 0
    assert Parse(result.stdout, reply).ByteSize() > 0


def test_a_list_names_the_next_page_and_the_status_model_store_and_learner(run: Run) -> None:
    result = run("memories", "ls")
    assert "潮汐木芯" in result.stdout
    assert "--page t1" in result.stderr
    shown = run("status").stdout
    assert "up 2 h" in shown
    assert "bge-small-zh-v1.5, 512 dimensions" in shown
    assert "1.0 of 2 MiB, 2 projects" in shown
    assert "1 running, 0 waiting" in shown
    assert "no language model, keywords come from observed turns; 0 turns waiting" in run("status").stdout


@pytest.mark.long
def test_stored_text_commands_no_terminal_and_what_is_missing_or_nothing_is_said(run: Run) -> None:
    shown = run("memories", "get", "世界.图鉴.物品.潮汐木芯")
    assert "先息后本" in shown.stdout
    assert "\x1b" not in shown.stdout
    assert "\x1b" not in run("memories", "ls").stdout
    for verb in ("get", "rm"):
        result = run("memories", verb, "a", "gone")
        assert result.exit_code == 1
        assert "memory gone does not exist in this project" in result.stderr
    assert run("memories", "edit", "m1").exit_code == 2
    assert run("projects", "set", "p").exit_code == 2


@pytest.mark.parametrize(("verb", "pinned"), [("pin", True), ("unpin", False)])
def test_memories_are_pinned_and_unpinned_by_their_ids(run: Run, fake: FakeService, verb: str, pinned: bool) -> None:
    assert run("memories", verb, "m1", "m2").stdout == f"{verb}ned m1\n{verb}ned m2\n"
    for request, memory_id in zip(fake.asked, ("m1", "m2"), strict=True):
        assert isinstance(request, memory_pb.UpdateMemoryRequest)
        assert (request.memory.id, request.memory.pinned) == (memory_id, pinned)
        assert list(request.update_mask.paths) == ["pinned"]


def test_a_watch_that_is_cut_off_says_where_to_go_on(run: Run, fake: FakeService) -> None:
    fake.watch_ends_with = (grpc.StatusCode.UNAVAILABLE, "the service is stopping")
    result = run("memories", "watch")
    assert result.exit_code == 1
    assert "--after 99 goes on from here" in result.stderr


@pytest.mark.long
def test_a_project_is_shown_and_a_watch_prints_lines_of_json(run: Run) -> None:
    shown = run("projects", "show", "还款").stdout
    assert "Spring Boot, MyBatis" in shown
    assert "3 (3 NOTE)" in shown
    lines = run("memories", "watch", "--json").stdout.splitlines()
    news = [Parse(line, memory_pb.WatchMemoriesResponse()) for line in lines]
    assert [each.seq for each in news] == [7, 9, 99]


@pytest.mark.long
@pytest.mark.parametrize("group", ["memories", "garden"])
def test_a_watch_prints_a_line_for_each_event(run: Run, group: str) -> None:
    """S4-40."""
    result = run(group, "watch")
    assert result.exit_code == 0
    created, deleted = result.stdout.splitlines()
    assert created.startswith("+ 8  世界.图鉴.物品.潮汐木芯  note/manual  还款方式 repayment")
    assert created.endswith("#还款 #code")
    assert deleted.startswith("- 9  gone")
    assert "\x1b" not in result.stdout
    assert "behind write 7" in result.stderr
    assert "no longer known" in result.stderr


def test_rm_by_conditions_counts_and_asks(run: Run, fake: FakeService) -> None:
    result = run("memories", "rm", "--meta", "env=test", "--tag", "x", stdin=b"y\n")
    assert "Remove 1 memories of 还款?" in result.stderr
    counted, removed = fake.requests(memory_pb.DeleteMemoriesRequest)
    assert (counted.dry_run, removed.dry_run) == (True, False)
    assert dict(removed.filter.metadata) == {"env": "test"}
    assert list(removed.filter.tags) == ["x"]
    assert (bool(counted.request_id), bool(removed.request_id)) == (False, True)


def test_rm_by_conditions_takes_no_for_an_answer(run: Run, fake: FakeService) -> None:
    result = run("memories", "rm", "--tag", "x", stdin=b"n\n")
    assert result.exit_code == 1
    assert "nothing was removed" in result.stderr
    assert [asked.dry_run for asked in fake.requests(memory_pb.DeleteMemoriesRequest)] == [True]


@pytest.mark.long
def test_rm_takes_ids_or_conditions_and_counts_alone_or_does_not_ask(run: Run, fake: FakeService) -> None:
    for arguments in ([], ["a", "--tag", "x"], ["a", "--dry-run"]):
        assert run("memories", "rm", *arguments).exit_code == 2
    assert fake.requests(memory_pb.DeleteMemoriesRequest) == []
    assert "1 would be removed" in run("memories", "rm", "--tag", "x", "--dry-run").stdout
    assert "1 removed" in run("memories", "rm", "--tag", "x", "--yes").stdout
    assert [asked.dry_run for asked in fake.requests(memory_pb.DeleteMemoriesRequest)] == [True, False]
