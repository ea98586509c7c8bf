"""Facts that a later sentence replaces without naming them, from outside: which comes first, and what a prompt says."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from hummock_client import vector
from hummock_client.v1 import context_service_pb2 as context
from hummock_client.v1 import memory_pb2 as pb
from hummock_client.v1 import recall_pb2 as recall
from tests.service.calls import ask, hummock, learn, recall_request, stamp
from tests.service.inputs import note
from tests.service.running import Stubs

pytestmark = pytest.mark.storeless

OLD, NEW = "I live in a flat in Leeds near the station", "We moved to Bristol, the house has a garden"
QUESTION, FORMER = "Where do I live?", "Where did I live before we moved?"
ASKED = stamp(datetime(2026, 8, 6, tzinfo=UTC))


def pointing(service: Stubs, cosine: float) -> pb.Embedding:
    """A vector with this cosine to that of the questions."""
    model = service.admin.GetStatus().model
    return vector([cosine, (1 - cosine**2) ** 0.5, *[0.0] * (model.dim - 2)], model.emb_space)


@pytest.fixture
def towards(service: Stubs, project: str) -> Any:
    """The vector of the questions; the old fact is learnt close to it, and the new one farther away."""
    told = {"origin": pb.ORIGIN_USER_INPUT}
    june, august = datetime(2026, 6, 3, 9, tzinfo=UTC), datetime(2026, 8, 3, 9, tzinfo=UTC)
    learn(
        service,
        project,
        note(OLD, id="old", vector=pointing(service, 0.9), create_time=stamp(june), **told),
        note(NEW, id="new", vector=pointing(service, 0.5), create_time=stamp(august), **told),
    )
    return pointing(service, 1.0)


@pytest.mark.parametrize("preset", [recall.PRESET_AGENT, recall.PRESET_CHAT])
def test_the_newer_fact_answers_for_now_and_the_older_for_before(
    service: Stubs, project: str, towards: pb.Embedding, preset: recall.Preset.ValueType
) -> None:
    hits = ask(service, project, QUESTION, preset=preset, query_vector=towards, as_of=ASKED).hits
    assert [(hit.memory.id, hit.likely_replaced_by) for hit in hits] == [("new", ""), ("old", "new")]
    assert hits[0].score >= hits[1].score
    before = ask(service, project, FORMER, preset=preset, query_vector=towards, as_of=ASKED).hits
    assert [(hit.memory.id, hit.likely_replaced_by) for hit in before] == [("old", "new"), ("new", "")]


@pytest.mark.parametrize(
    ("older", "newer", "text"),
    [
        ("我对花生过敏，吃一点嗓子就会肿。", "其实不是花生，是腰果过敏。", "我对什么过敏？"),
        ("The admin port is 8080.", "Correction: the port is 8443, not 8080.", "which port is it?"),
    ],
)
def test_what_takes_a_fact_back_comes_before_it(
    service: Stubs, project: str, towards: pb.Embedding, older: str, newer: str, text: str
) -> None:
    for memory_id, said, month, cosine in (("older", older, 6, 0.95), ("newer", newer, 8, 0.8)):
        told = stamp(datetime(2026, month, 3, tzinfo=UTC))
        learn(service, project, note(said, id=memory_id, vector=pointing(service, cosine), create_time=told))
    hits = {hit.memory.id: hit for hit in ask(service, project, text, query_vector=towards, as_of=ASKED).hits}
    assert list(hits).index("newer") < list(hits).index("older")
    assert hits["older"].likely_replaced_by == "newer"


REPLACED = {"en": "probably replaced", "zh": "可能已被取代"}


@pytest.mark.parametrize("locale", REPLACED)
@pytest.mark.parametrize("form", ["CONTEXT", "WATERFALL", "INDEX", "MEMORIES"])
def test_every_form_of_a_prompt_says_when_both_were_told_and_which_is_replaced(
    service: Stubs, project: str, towards: pb.Embedding, form: str, locale: str
) -> None:
    asked = recall_request(project, QUESTION, query_vector=towards, as_of=ASKED)
    asked.project = ""
    reply = service.context.Render(
        project=project, recall=asked, form=context.RenderForm.Value(f"RENDER_FORM_{form}"), locale=locale
    )
    lines = reply.text.splitlines()
    (old,) = [line for line in lines if "2026-06-03" in line]
    (new,) = [line for line in lines if "2026-08-03" in line]
    assert REPLACED[locale] in old
    assert REPLACED[locale] not in new
    assert lines.index(new) < lines.index(old)
    marks = {one.memory_id: list(one.marks) for one in reply.memories}
    assert context.MEMORY_MARK_LIKELY_REPLACED in marks["old"]
    assert context.MEMORY_MARK_LIKELY_REPLACED not in marks["new"]


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("Pottery class is on Wednesdays", "Painting class moved to Thursday"),
        ("Mia rides a unicycle", "Mia has started juggling as well"),
        ("书架上有一盆绿萝", "书架上现在还有两盏灯"),
    ],
)
def test_what_changes_another_thing_or_adds_to_it_replaces_nothing(
    service: Stubs, project: str, towards: pb.Embedding, older: str, newer: str
) -> None:
    for memory_id, text, month, cosine in (("older", older, 6, 0.95), ("newer", newer, 8, 0.8)):
        told = stamp(datetime(2026, month, 3, tzinfo=UTC))
        learn(service, project, note(text, id=memory_id, vector=pointing(service, cosine), create_time=told))
    for view in (pb.MEMORY_VIEW_FULL, pb.MEMORY_VIEW_INDEX):
        asked = {"query_vector": towards, "as_of": ASKED, "view": view}
        hits = {hit.memory.id: hit for hit in ask(service, project, "how is it", **asked).hits}
        assert list(hits).index("older") < list(hits).index("newer")
        assert hits["older"].likely_replaced_by == ""


def test_a_prompt_with_one_of_both_has_neither_date_nor_mark(
    service: Stubs, project: str, towards: pb.Embedding
) -> None:
    asked = recall_request(project, QUESTION, query_vector=towards, as_of=ASKED, top_k=1)
    asked.project = ""
    text = service.context.Render(project=project, recall=asked).text
    assert "Bristol" in text
    assert "2026" not in text


def test_a_search_and_the_command_say_so_too(service: Stubs, project: str, towards: pb.Embedding) -> None:
    for text, month in (("The build uses Maven", 6), ("The build now uses Gradle", 8)):
        learn(service, project, note(text, vector=towards, create_time=stamp(datetime(2026, month, 3, tzinfo=UTC))))
    found = service.context.Search(project=project, query_text="what does the build use")
    by_title = {result.title: result for result in found.results}
    gradle, maven = by_title["The build now uses Gradle"], by_title["The build uses Maven"]
    assert (gradle.likely_replaced_by, maven.likely_replaced_by) == ("", gradle.memory_id)
    (line,) = [line for line in found.text.splitlines() if "uses Maven" in line and "score" in line]
    assert "(probably replaced)" in line
    printed = hummock(service, "recall", "what does the build use", "--project", project).output.split()
    assert {"probably", "replaced"} <= set(printed)
