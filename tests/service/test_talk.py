"""Conversations from outside: who spoke, when it was, what the assistant said, and what is months old."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta

import pytest
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.timestamp_pb2 import Timestamp

from hummock_client.v1 import memory_pb2 as pb
from hummock_client.v1 import project_service_pb2 as projects
from hummock_client.v1 import recall_pb2, settings_pb2
from hummock_client.v1 import recall_pb2 as recall
from tests.service.calls import ask, chat, contents, learn
from tests.service.inputs import note
from tests.service.running import Stubs

FIRST = datetime(2024, 1, 8, 20, tzinfo=UTC)
ASKED = "What did you suggest for the leaking roof?"
SUGGESTED = "For the leaking roof I suggest bitumen tape"


def stamp(days: int, minutes: int = 0) -> Timestamp:
    found = Timestamp()
    found.FromDatetime(FIRST + timedelta(days=days, minutes=minutes))
    return found


def turn(text: str, days: int, minutes: int = 0, *, by: str = "", is_model: bool = False) -> pb.Memory:
    origin = pb.ORIGIN_AI_OUTPUT if is_model else pb.ORIGIN_USER_INPUT
    return note(text, session_id=f"day {days}", speaker=by, origin=origin, create_time=stamp(days, minutes))


def set_chat(service: Stubs, project: str, path: str, values: recall_pb2.RecallTuning) -> None:
    service.project.UpdateProjectSettings(
        projects.UpdateProjectSettingsRequest(
            project=project,
            request_id=str(uuid.uuid4()),
            settings=settings_pb2.ProjectSettings(chat=values),
            update_mask=FieldMask(paths=[f"chat.{path}"]),
        )
    )


def test_what_the_assistant_said_answers_only_who_asks_for_it(service: Stubs, project: str) -> None:
    """S4-51, S4-53, 1.1-10."""
    learn(service, project, turn("my leaking roof again", 0), turn(SUGGESTED, 0, 1, is_model=True))
    assert SUGGESTED in chat(service, project, ASKED)
    assert SUGGESTED in chat(service, project, "what was your advice for the leaking roof?")
    assert SUGGESTED not in chat(service, project, "What about the leaking roof?")
    assert SUGGESTED not in chat(service, project, ASKED, paths=[recall.RECALL_PATH_VECTOR])
    assert SUGGESTED not in chat(service, project, ASKED, filter=pb.MemoryFilter(origins=[pb.ORIGIN_USER_INPUT]))


def test_a_project_decides_whether_the_assistant_is_recalled(service: Stubs, project: str) -> None:
    """S4-46, S4-53."""
    learn(service, project, turn("my leaking roof again", 0), turn(SUGGESTED, 0, 1, is_model=True))
    set_chat(service, project, "origins", recall_pb2.RecallTuning(origins=[pb.ORIGIN_USER_INPUT]))
    assert SUGGESTED not in chat(service, project, ASKED)


def test_a_speaker_is_found_by_name(service: Stubs, project: str) -> None:
    said = [turn(f"I painted boat {n} and went home", n, by="Mia" if n % 2 else "Lin") for n in range(8)]
    learn(service, project, *said)
    for question in ("Which boat did Mia paint?", "MIA painted a boat"):
        hits = ask(service, project, question, top_k=4, relevance_weight=1.0, near_twin_bar=2.0).hits
        assert {hit.memory.speaker for hit in hits} == {"Mia"}
        assert ("MIA" if "MIA" in question else "Mia") in hits[0].matched_terms


@pytest.mark.parametrize("is_literal", [True, False])
def test_what_is_months_old_is_recalled_unless_the_document_is_followed_to_the_letter(
    service: Stubs, project: str, is_literal: bool
) -> None:
    """S4-22, S4-29, 1.1-10."""
    old = turn("The lighthouse keeper keeps bees behind the lighthouse", 0)
    learn(service, project, old, *(turn(f"the lighthouse on day {n}", 150 + n) for n in range(10)))
    paths = [recall.RECALL_PATH_VECTOR] if is_literal else []
    text = "Does the lighthouse keeper keep bees?"
    hits = ask(service, project, text, preset=recall.PRESET_CHAT, paths=paths, as_of=stamp(161)).hits
    found = [hit.memory.content for hit in hits]
    assert (found[:1] == [old.content]) == (not is_literal)
    assert all(hit.decay >= 0.9 for hit in hits) == (not is_literal)


def test_the_floor_of_decay_is_the_requests_or_the_projects(service: Stubs, project: str) -> None:
    """S4-46."""
    learn(service, project, turn("the lighthouse keeper", 0))

    def decay(**options: object) -> float:
        given = {"preset": recall.PRESET_CHAT, "as_of": stamp(140), **options}
        return ask(service, project, "lighthouse keeper", **given).hits[0].decay

    assert decay() == pytest.approx(0.9, abs=1e-3)
    assert decay(decay_floor=0.0) == pytest.approx(0.0, abs=1e-3)
    assert decay(preset=recall.PRESET_AGENT) == 1
    set_chat(service, project, "decay_floor", recall_pb2.RecallTuning(decay_floor=0.5))
    assert decay() == pytest.approx(0.5, abs=1e-3)
    assert decay(decay_floor=0.25) == pytest.approx(0.25, abs=1e-3)


def test_a_day_of_long_ago_is_found_by_its_date_alone(service: Stubs, project: str) -> None:
    """S4-24."""
    learn(service, project, *(turn(f"回家路上买了第{n}种水果，很甜", n) for n in range(120)))
    for text in ("1月20日我做了什么？", "What did I do on January 20th?"):
        hits = ask(service, project, text, preset=recall.PRESET_CHAT, as_of=stamp(125)).hits
        assert hits[0].memory.content == "回家路上买了第12种水果，很甜"
        assert hits[0].time_match == 1


def test_a_recall_may_be_of_a_span_of_time(service: Stubs, project: str) -> None:
    learn(service, project, *(turn(f"the tide of day {n}", n) for n in range(6)), note("the tide of no day"))
    where = pb.MemoryFilter(event_after=stamp(2), event_before=stamp(4))
    found = contents(ask(service, project, "tide", filter=where, near_twin_bar=2.0))
    assert set(found) == {"the tide of day 2", "the tide of day 3"}


def test_an_answer_gains_from_a_question_to_which_its_asker_added_something(service: Stubs, project: str) -> None:
    """The answer shares no word with the question, and without its speaker it is as far from it as any other turn."""
    said = (
        ("Mia", "Which soup shall we cook for the harbour festival?"),
        ("Mia", "No hurry at all."),
        ("Tom", "Pumpkin, I would say."),
        ("Mia", "Good night."),
        ("Tom", "Sleep well."),
    )
    learn(service, project, *(turn(text, 0, minute, by=speaker) for minute, (speaker, text) in enumerate(said)))
    asked = "Which soup for the harbour festival?"
    order = contents(ask(service, project, asked, relevance_weight=1.0, near_twin_bar=2.0))
    assert order.index("Pumpkin, I would say.") < order.index("No hurry at all.")
