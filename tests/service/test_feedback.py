"""Verdicts of people on memories, from outside."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import grpc
import pytest

from hummock_client.v1 import context_service_pb2 as context
from hummock_client.v1 import learning_service_pb2 as learning
from hummock_client.v1 import project_service_pb2 as projects
from tests.rpc.edge import Refusal, refusal_of
from tests.service.calls import learn
from tests.service.inputs import note
from tests.service.running import Stubs, in_thread, settings

HELPFUL, NOT_HELPFUL, WRONG = context.JUDGEMENT_HELPFUL, context.JUDGEMENT_NOT_HELPFUL, context.JUDGEMENT_WRONG


def say(
    service: Stubs, project: str, verdicts: dict[str, context.Judgement.ValueType], **fields: Any
) -> context.FeedbackResponse:
    return service.context.Feedback(
        context.FeedbackRequest(
            project=project,
            verdicts=[
                context.FeedbackVerdict(memory_id=name, judgement=judgement) for name, judgement in verdicts.items()
            ],
            **fields,
        )
    )


def refused(service: Stubs, project: str, verdicts: dict[str, context.Judgement.ValueType], **fields: Any) -> Refusal:
    with pytest.raises(grpc.RpcError) as caught:
        say(service, project, verdicts, **fields)
    return refusal_of(caught.value)


def counts(service: Stubs, project: str) -> tuple[int, int, int]:
    said = service.project.GetProject(projects.GetProjectRequest(project=project)).project.feedback
    return said.helpful, said.not_helpful, said.wrong


def given(service: Stubs, project: str) -> list[learning.FeedbackGiven]:
    request = learning.ListLearningEventsRequest(project=project)
    events = service.learning.ListLearningEvents(request).events
    return [event.feedback_given for event in events if event.HasField("feedback_given")]


@pytest.fixture
def harbour(service: Stubs, project: str) -> str:
    learn(service, project, *(note(f"the tide at harbour {name} turns", id=name) for name in "abc"))
    return project


def test_feedback_is_logged_as_it_was_said_and_counted(service: Stubs, harbour: str) -> None:
    """S1-17."""
    kept = say(
        service,
        harbour,
        {"a": HELPFUL, "b": NOT_HELPFUL, "c": WRONG},
        query_text="潮汐",
        note="b 说的是别的港口",
        session_id="s",
    )
    assert (kept.recorded_count, list(kept.unknown_ids)) == (3, [])
    say(service, harbour, {"a": HELPFUL})
    assert counts(service, harbour) == (2, 1, 1)
    first, second = given(service, harbour)
    assert (first.query_text, first.note, first.session_id) == ("潮汐", "b 说的是别的港口", "s")
    assert (list(first.useful_ids), list(first.useless_ids), list(first.wrong_ids)) == (["a"], ["b"], ["c"])
    assert list(second.useful_ids) == ["a"]


def test_ids_that_the_project_does_not_have_are_listed_and_not_kept(service: Stubs, harbour: str) -> None:
    """S1-17, S0-06: another project's memory is as unknown as one that never was."""
    learn(service, f"{harbour}-other", note("elsewhere", id="foreign"))
    kept = say(service, harbour, {"a": HELPFUL, "foreign": WRONG, "never": WRONG})
    assert (kept.recorded_count, list(kept.unknown_ids)) == (1, ["foreign", "never"])
    assert counts(service, harbour) == (1, 0, 0)
    assert say(service, harbour, {"never": WRONG}).recorded_count == 0
    assert len(given(service, harbour)) == 1


def test_a_repeated_request_counts_once(service: Stubs, harbour: str) -> None:
    """S1-17."""
    request_id = str(uuid.uuid4())
    first = say(service, harbour, {"a": HELPFUL, "never": WRONG}, request_id=request_id)
    assert say(service, harbour, {"a": HELPFUL, "never": WRONG}, request_id=request_id) == first
    assert counts(service, harbour) == (1, 0, 0)
    assert refused(service, harbour, {"a": WRONG}, request_id=request_id).reason == "REQUEST_ID_REUSED"


def test_a_note_alone_is_kept(service: Stubs, harbour: str) -> None:
    """S1-17."""
    say(service, harbour, {}, note="nothing was found")
    assert [one.note for one in given(service, harbour)] == ["nothing was found"]


@pytest.mark.parametrize(
    ("verdicts", "fields", "named"),
    [
        ({}, {}, "verdicts"),
        ({}, {"note": " \n"}, "verdicts"),
        ({"": HELPFUL}, {}, "verdicts[0].memory_id"),
        ({"a": context.JUDGEMENT_UNSPECIFIED}, {}, "verdicts[0].judgement"),
        ({"a": 77}, {}, "verdicts[0].judgement"),
        ({"a\x00b": HELPFUL}, {}, "verdicts[0].memory_id"),
        ({"a": HELPFUL}, {"request_id": "no uuid"}, "request_id"),
        ({"a": HELPFUL}, {"note": "n" * 4097}, "note"),
    ],
)
def test_bad_feedback_is_refused_by_the_fields_name(
    service: Stubs, harbour: str, verdicts: dict[str, Any], fields: dict[str, Any], named: str
) -> None:
    """S1-17."""
    refusal = refused(service, harbour, verdicts, **fields)
    assert (refusal.code, set(refusal.violations)) == (grpc.StatusCode.INVALID_ARGUMENT, {named})


def test_a_memory_has_one_verdict(service: Stubs, harbour: str) -> None:
    """S1-17."""
    twice = [context.FeedbackVerdict(memory_id="a", judgement=judgement) for judgement in (HELPFUL, WRONG)]
    with pytest.raises(grpc.RpcError) as caught:
        service.context.Feedback(context.FeedbackRequest(project=harbour, verdicts=twice))
    assert set(refusal_of(caught.value).violations) == {"verdicts[1].memory_id"}


def test_feedback_on_an_unknown_project_is_not_found_and_makes_none(service: Stubs) -> None:
    """S1-17."""
    assert refused(service, "nobody's", {"a": HELPFUL}).code is grpc.StatusCode.NOT_FOUND
    with pytest.raises(grpc.RpcError):
        counts(service, "nobody's")


def test_feedback_survives_a_restart(tmp_path: Path, models_dir: Path, model: str) -> None:
    """S1-17, S4-02."""
    chosen = settings(tmp_path, models_dir, model)
    with in_thread(chosen) as stubs:
        learn(stubs, "p", note("x", id="a"))
        say(stubs, "p", {"a": HELPFUL}, note="gut")
    with in_thread(chosen) as stubs:
        assert counts(stubs, "p") == (1, 0, 0)
        assert [one.note for one in given(stubs, "p")] == ["gut"]
