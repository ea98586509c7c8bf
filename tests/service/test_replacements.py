"""Notes that probably replace older ones: proposed for review, approved or rejected by a person."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import grpc
import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from typer.testing import Result

from hummock_client.v1 import context_service_pb2 as context
from hummock_client.v1 import memory_pb2, recall_pb2
from hummock_client.v1 import memory_service_pb2 as pb
from tests.service.calls import ask, export, hummock, learn, take_in
from tests.service.running import Stubs

_FIRST = datetime(2026, 6, 1, tzinfo=UTC)
OLD = "The default branch is master."
NEW = "The default branch has been renamed to main and master is locked."


def told(id: str, text: str, day: int = 0, **more: Any) -> memory_pb2.Memory:
    time = Timestamp()
    time.FromDatetime(_FIRST + timedelta(days=day))
    origin = more.pop("origin", memory_pb2.ORIGIN_USER_INPUT)
    return memory_pb2.Memory(
        id=id, kind=memory_pb2.MEMORY_KIND_NOTE, origin=origin, content=text, create_time=time, **more
    )


def proposed(service: Stubs, project: str, **more: Any) -> list[tuple[str, str]]:
    """Pairs of a newer and an older id, from all pages."""
    found, token = [], ""
    while True:
        page = service.memory.ListReview(project=project, kind=pb.REVIEW_KIND_REPLACEMENT, page_token=token, **more)
        found += [(one.newer.id, one.older.id) for one in page.replacements]
        token = page.next_page_token
        if not token:
            return found


def pair(newer: str = "new", older: str = "old") -> pb.ReplacementPair:
    return pb.ReplacementPair(newer_id=newer, older_id=older)


def branch(service: Stubs, project: str) -> list[str]:
    """Ids of what a recall brings."""
    found = ask(service, project, "What is the default branch?", preset=recall_pb2.PRESET_AGENT)
    return sorted(hit.memory.id for hit in found.hits)


def test_a_change_is_proposed_with_its_evidence_and_changes_nothing(service: Stubs, project: str) -> None:
    learn(service, project, told("old", OLD), told("new", NEW, 9))
    page = service.memory.ListReview(project=project, kind=pb.REVIEW_KIND_REPLACEMENT)
    (one,) = page.replacements
    assert (one.newer.id, one.older.id) == ("new", "old")
    assert (one.newer.content, one.older.content) == (NEW, OLD)
    assert one.evidence in NEW
    assert "renamed to main" in one.evidence
    assert 0.5 < one.similarity <= 1
    assert not page.held
    assert branch(service, project) == ["new", "old"]
    assert not service.memory.ListReview(project=project).replacements


def test_what_is_approved_replaces_and_can_be_reversed(service: Stubs, project: str) -> None:
    learn(service, project, told("old", OLD), told("new", NEW, 9))
    response = service.memory.ApproveReview(project=project, replacements=[pair(), pair("gone"), pair(older="none")])
    assert (response.approved_count, list(response.missing_ids)) == (1, ["gone", "new"])
    assert branch(service, project) == ["new"]
    assert list(service.memory.GetMemory(project=project, id="new").memory.supersedes) == ["old"]
    assert list(service.memory.GetMemory(project=project, id="old").memory.superseded_by) == ["new"]
    assert proposed(service, project) == []
    service.memory.RejectReview(project=project, replacements=[pair()])
    assert branch(service, project) == ["new", "old"]
    service.memory.ApproveReview(project=project, replacements=[pair()])
    stored = service.memory.GetMemory(project=project, id="new").memory
    assert (list(stored.supersedes), list(stored.distinct_from)) == (["old"], [])


def test_what_is_rejected_is_proposed_no_more_nor_after_an_export(service: Stubs, project: str) -> None:
    learn(service, project, told("old", OLD), told("new", NEW, 9))
    response = service.memory.RejectReview(project=project, replacements=[pair()])
    assert (response.rejected_count, list(response.missing_ids)) == (1, [])
    assert proposed(service, project) == []
    assert branch(service, project) == ["new", "old"]
    take_in(service, f"{project}-copy", export(service, project))
    assert proposed(service, f"{project}-copy") == []
    again = learn(service, project, told("new", NEW, 9)).results[0]
    assert again.status == context.LEARN_STATUS_UNCHANGED
    learn(service, project, told("new", NEW, 9, tags=["git"]))
    assert proposed(service, project) == []
    assert list(service.memory.GetMemory(project=project, id="new").memory.distinct_from) == ["old"]
    learn(service, project, told("new", "The default branch is renamed to trunk.", 10))
    assert proposed(service, project) == [("new", "old")]


CHAT = memory_pb2.ORIGIN_AI_OUTPUT
NO_PROPOSALS = {
    "told first": [told("old", OLD, 9), told("new", NEW)],
    "told at once": [told("old", OLD), told("new", NEW)],
    "another speaker": [told("old", OLD, speaker="Ann"), told("new", NEW, 9, speaker="Bo")],
    "the model's own words": [told("old", OLD), told("new", NEW, 9, origin=CHAT)],
    "another scope": [told("old", OLD, metadata={"user": "1"}), told("new", NEW, 9, metadata={"user": "2"})],
    "a question": [told("old", OLD), told("new", "Was the default branch renamed to main?", 9)],
    "something else of it": [told("old", OLD), told("new", "The default branch is now built every hour.", 9)],
    "one of several": [told("old", OLD), told("twin", f"{OLD}!", 1), told("new", NEW, 9)],
    "no note": [
        memory_pb2.Memory(id="old", kind=memory_pb2.MEMORY_KIND_ENTRY, title="Branch", content=OLD),
        told("new", NEW, 9),
    ],
}


@pytest.mark.parametrize("told_to", NO_PROPOSALS.values(), ids=list(NO_PROPOSALS))
def test_nothing_is_proposed_where_it_is_not_sure(
    service: Stubs, project: str, told_to: list[memory_pb2.Memory]
) -> None:
    learn(service, project, *told_to)
    assert proposed(service, project) == []


def test_pages_hold_every_proposal_once(service: Stubs, project: str) -> None:
    facts = {"cache": "five minutes", "timeout": "ten seconds", "retention": "thirty days"}
    for place, (name, value) in enumerate(facts.items()):
        learn(service, project, told(f"{name}-old", f"The {name} is {value}.", place))
        learn(service, project, told(f"{name}-new", f"The {name} was extended to ninety days.", 20 + place))
    wanted = [(f"{name}-new", f"{name}-old") for name in facts]
    assert proposed(service, project) == proposed(service, project, page_size=1) == wanted


def test_a_decision_names_something(service: Stubs, project: str) -> None:
    for call in (service.memory.ApproveReview, service.memory.RejectReview):
        with pytest.raises(grpc.RpcError) as refused:
            call(project=project)
        assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT


@pytest.mark.long
def test_the_command_line_lists_and_decides(service: Stubs, project: str) -> None:
    learn(service, project, told("old", f"{OLD}\x1b[m"), told("new", NEW, 9))
    shown = run(service, project, "replaced")
    assert [line.split("  ")[:2] for line in shown.stdout.splitlines()] == [["new", "old"]]
    assert "\x1b" not in shown.stdout
    assert '"evidence"' in run(service, project, "replaced", "--json").stdout
    assert run(service, project, "keep", "new", "old").stdout == "new does not replace old\n"
    assert run(service, project, "replaced").stdout == ""
    assert run(service, project, "replace", "new", "old").stdout == "new replaces old\n"
    assert branch(service, project)[0] == "new"
    missing = run(service, project, "replace", "new", "none")
    assert missing.exit_code == 1
    assert "does not exist" in missing.stderr


def run(service: Stubs, project: str, *arguments: str) -> Result:
    return hummock(service, "review", *arguments, "--project", project)
