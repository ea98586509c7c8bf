"""Adding, editing, removing, bringing back, approving; and a list that changes while it is looked at."""

from __future__ import annotations

from collections.abc import Iterator
from html import unescape
from typing import Any

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from hummock_client.v1 import learning_service_pb2 as learning
from hummock_client.v1 import memory_pb2
from hummock_client.v1 import memory_service_pb2 as memories
from hummock_client.v1 import project_service_pb2 as projects
from tests.console.browser import Browser, Page
from tests.console.test_pages import ORDER
from tests.service.calls import ask, contents, learn
from tests.service.inputs import domain, fragment, note, record
from tests.service.running import Stubs


def get(service: Stubs, project: str, memory_id: str) -> memory_pb2.Memory:
    request = memories.GetMemoryRequest(project=project, id=memory_id, view=memory_pb2.MEMORY_VIEW_RAW)
    return service.memory.GetMemory(request).memory


def listed(service: Stubs, project: str) -> list[str]:
    return [one.id for one in service.memory.ListMemories(memories.ListMemoriesRequest(project=project)).memories]


def form_of(page: Page) -> dict[str, str]:
    """Fields that a browser would send from the first edit form, unchanged."""
    values = {each["name"]: each.get("value", "") for each in page.all("input") if "name" in each}
    for area in page.all("textarea"):
        text = page.source.split(f'id="{area["id"]}"', 1)[1].split(">\n", 1)[1].split("</textarea>")[0]
        values[area["name"]] = unescape(text)
    return values


def test_a_memory_is_added_by_hand_and_recalled_at_once(english: Browser, service: Stubs, project: str) -> None:
    """S4-40."""
    learn(service, project, note("something else"))
    page = english.send("/memory/add", project=project, kind="4", content="潮汐木芯在退潮时发光", tags="树, #木")
    assert "Stored." in page.text
    (found,) = [one for one in (get(service, project, each) for each in listed(service, project)) if one.tags]
    assert (found.origin, list(found.tags)) == (memory_pb2.ORIGIN_MANUAL, ["树", "木"])
    assert "潮汐木芯在退潮时发光" in contents(ask(service, project, "什么在退潮时发光"))


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"kind": "5", "title": "潮汐木芯", "content": "遇水不腐"}, memory_pb2.MEMORY_KIND_ENTRY),
        (
            {"kind": "1", "question": "what?", "answer": "this", "source_files": "a.py\nb.py"},
            memory_pb2.MEMORY_KIND_LEARNING_RECORD,
        ),
        (
            {"kind": "2", "domain": "还款", "domain_summary": "所有还款", "aliases": "repayment"},
            memory_pb2.MEMORY_KIND_DOMAIN_KNOWLEDGE,
        ),
    ],
)
def test_each_kind_is_added(english: Browser, service: Stubs, project: str, fields: dict[str, str], kind: int) -> None:
    english.send("/memory/add", project=project, **fields)
    (memory_id,) = listed(service, project)
    assert get(service, project, memory_id).kind == kind


def test_a_text_that_is_there_leads_to_the_memory_that_has_it(english: Browser, service: Stubs, project: str) -> None:
    learn(service, project, note("the lighthouse opens at nine", id="first"))
    page = english.send("/memory/add", project=project, kind="4", content="the lighthouse opens at nine")
    assert "This memory says the same already" in page.text
    assert listed(service, project) == ["first"]


@pytest.mark.long
def test_an_edit_changes_what_the_form_did_and_can_be_undone(english: Browser, service: Stubs, project: str) -> None:
    """S4-42."""
    text = "opens at nine\n\n  <b>daily</b>"
    learn(service, project, note(text, id="one", tags=["a"], emotion_label="joy", raw="raw"))
    before = get(service, project, "one")
    form = form_of(english.open("/memory", project=project, id="one"))
    assert form["content"] == before.content
    same = english.send("/memory/edit", **{**form, "content": before.content.replace("\n", "\r\n")})
    assert "Nothing was different" in same.text
    assert get(service, project, "one") == before
    page = english.send("/memory/edit", **{**form, "content": "opens at ten", "emotion_label": "fear", "tags": "b"})
    after = get(service, project, "one")
    assert (after.content, after.emotion_label, list(after.tags), after.raw) == ("opens at ten", "fear", ["b"], "raw")
    assert contents(ask(service, project, "when does it open")) == ["opens at ten"]
    english.send("/memory/undo", undo=page.hidden("undo"))
    restored = get(service, project, "one")
    assert (restored.content, restored.emotion_label, list(restored.tags), restored.raw) == (
        before.content, "joy", ["a"], "raw",
    )  # fmt: skip


def test_a_form_that_others_have_overtaken_is_refused(english: Browser, service: Stubs, project: str) -> None:
    learn(service, project, note("opens at nine", id="one"))
    form = form_of(english.open("/memory", project=project, id="one"))
    learn(service, project, note("opens at eight", id="one"))
    token = english.open("/").hidden("form_token")
    answer = english.post("/memory/edit", {**form, "form_token": token, "content": "opens at ten"})
    assert answer.status == 409
    assert "has changed since" in answer.page.text
    assert get(service, project, "one").content == "opens at eight"


@pytest.mark.long
@pytest.mark.parametrize(
    "memory",
    [
        note(
            "opens at nine", raw="<joy>opens at nine", summary="hours", tags=["a"], emotion_label="joy",
            metadata={"run": "12"}, session_id="talk", speaker="keeper", trust=0.75, supersedes=["older"],
            source_hash="f00d", event_time=Timestamp(seconds=1_700_000_000),
            expire_time=Timestamp(seconds=4_000_000_000),
        ),
        record("还款方式有哪些？", "等额本息。", "RepaymentType.java"),
        domain("还款", "所有还款", aliases=("repayment",), key_files=("Repayment.java",)),
        fragment("src/dates.py", "parse_date", "def parse_date(text):\n    return text"),
    ],
)  # fmt: skip
def test_what_is_removed_comes_back(english: Browser, service: Stubs, project: str, memory: memory_pb2.Memory) -> None:
    """S4-42."""
    (learnt,) = learn(service, project, memory).results
    before = get(service, project, learnt.id)
    page = english.send("/memory/delete", project=project, id=learnt.id)
    assert "Removed." in page.text
    assert listed(service, project) == []
    back = english.send("/memory/undo", undo=page.hidden("undo"))
    assert "Stored." in back.text
    after = get(service, project, learnt.id)
    after.update_time.CopyFrom(before.update_time)
    assert after == before
    # It is done once.
    token = english.open("/").hidden("form_token")
    assert english.post("/memory/undo", {"form_token": token, "undo": page.hidden("undo")}).status == 404


@pytest.mark.long
@pytest.mark.parametrize("path", ["/memory/edit", "/memory/delete"])
def test_an_undo_takes_back_nothing_of_others(english: Browser, service: Stubs, project: str, path: str) -> None:
    learn(service, project, note("opens at nine", id="one"), note("something else"))
    form = form_of(english.open("/memory", project=project, id="one"))
    page = english.send(path, **{**form, "content": "opens at ten"})
    learn(service, project, note("opens at eleven", id="one"))
    token = english.open("/").hidden("form_token")
    assert english.post("/memory/undo", {"form_token": token, "undo": page.hidden("undo")}).status == 409
    assert get(service, project, "one").content == "opens at eleven"


@pytest.mark.parametrize(("verdict", "said"), [("approve", "Replaced"), ("reject", "Both are kept")])
def test_a_probable_replacement_is_shown_and_decided(
    english: Browser, service: Stubs, project: str, verdict: str, said: str
) -> None:
    times = Timestamp(seconds=1_700_000_000), Timestamp(seconds=1_700_900_000)
    texts = "The default branch is master.", "The default branch was renamed to main."
    learn(service, project, *(note(text, id=text[-5:], create_time=at) for text, at in zip(texts, times, strict=True)))
    page = english.open("/review", project=project, kind="replaced")
    assert all(text in page.text for text in texts)
    answer = english.send("/review/decide", project=project, newer="main.", older="ster.", verdict=verdict)
    assert said in answer.text
    assert "No note seems to be replaced" in english.open("/review", project=project, kind="replaced").text


@pytest.mark.long
def test_what_is_held_is_approved_or_rejected(english: Browser, service: Stubs, project: str) -> None:
    held = [note(f"{ORDER} {each}", id=each, origin=memory_pb2.ORIGIN_AI_OUTPUT) for each in ("good", "bad")]
    learn(service, project, *held)
    page = english.open("/review", project=project)
    assert page.text.count("override") == 2
    assert "Approved" in english.send("/review/decide", project=project, id="good", verdict="approve").text
    assert "Rejected" in english.send("/review/decide", project=project, id="bad", verdict="reject").text
    assert "Nothing is held." in english.open("/review", project=project).text
    assert listed(service, project) == ["good"]


def test_what_is_learnt_and_removed_is_told_in_an_open_list(browser: Browser, service: Stubs, project: str) -> None:
    """S4-40."""
    learn(service, project, note("there already", id="old"))
    page = browser.open("/garden", project=project)
    (status,) = [each for each in page.all("p") if each.get("id") == "live"]
    with browser.events(status["data-live"]) as events:
        assert next(events)[1] == "start"
        learn(service, project, note("<b>new</b>", id="new", title="<b>new</b>"))
        seq_text, name, (created,) = until(events, "new")
        assert (name, created["change"]) == ("events", "created")
        row = Page(created["row"])
        assert [each.rpartition("=")[2] for each in row.links("/memory")] == ["new"]
        assert (row.all("b"), "<b>new</b>" in row.text) == ([], True)
        service.memory.DeleteMemories(memories.DeleteMemoriesRequest(project=project, ids=["new"]))
        assert until(events, "new")[2] == [{"id": "new", "change": "deleted", "row": ""}]
    assert int(seq_text) == seq(service, project) - 1


def test_a_list_that_was_cut_off_goes_on_where_it_was(english: Browser, service: Stubs, project: str) -> None:
    learn(service, project, note("first", id="first"))
    page = english.open("/garden", project=project)
    learn(service, project, note("second", id="second"))
    (status,) = [each for each in page.all("p") if each.get("id") == "live"]
    with english.events(status["data-live"]) as events:
        last_id, _, told = until(events, "second")
    assert [each["id"] for each in told] == ["second"]
    learn(service, project, note("third", id="third"))
    # As browsers come again.
    with english.events(status["data-live"], {"last-event-id": last_id}) as events:
        assert [each["id"] for each in until(events, "third")[2]] == ["third"]


def test_what_is_learnt_is_told_while_its_page_is_open(english: Browser, service: Stubs, project: str) -> None:
    """S3-40."""
    entry = memory_pb2.Memory(
        id="entry", kind=memory_pb2.MEMORY_KIND_ENTRY, title="潮汐木芯", content="遇水不腐的硬木。"
    )
    learn(service, project, entry)
    page = english.open("/learning", project=project)
    (told,) = [each["data-changes"] for each in page.all("p") if "data-changes" in each]
    with english.events(told) as events:
        assert next(events)[1:] == ("changed", 0)
        keywords = [learning.EntryKeywords(memory_id="entry", keywords=["硬木头"])]
        service.learning.UpdateLearningSettings(
            learning.UpdateLearningSettingsRequest(project=project, keywords=keywords)
        )
        assert next(events)[1:] == ("changed", 0)
    assert "硬木头" in english.open("/learning", project=project).text


def until(events: Iterator[tuple[str, str, Any]], memory_id: str) -> tuple[str, str, Any]:
    """The next event that tells of a memory."""
    return next(each for each in events if [one for one in each[2] if one["id"] == memory_id])


def seq(service: Stubs, project: str) -> int:
    return service.project.GetProject(projects.GetProjectRequest(project=project)).project.seq
