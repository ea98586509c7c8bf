"""The garden as its screen needs it: listed, filtered, edited; facts of the caller, and files changed in a turn."""

from __future__ import annotations

from typing import Any

import grpc
import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from hummock_client.v1 import context_service_pb2 as context
from hummock_client.v1 import memory_pb2 as pb
from hummock_client.v1 import memory_service_pb2 as memory
from hummock_client.v1 import recall_pb2 as recall
from tests.service.calls import (
    ask,
    chat,
    contents,
    edit,
    export,
    failure,
    learn,
    memory_ids,
    pages,
    recall_request,
    take_in,
    told,
    watching,
)
from tests.service.conversing import create
from tests.service.inputs import fragment, note
from tests.service.running import Stubs

DAY_S = 86_400


def listed(service: Stubs, project: str, **asked: Any) -> list[str]:
    """Ids of all pages of two."""
    found = pages(service.memory.ListMemories, project=project, page_size=2, **asked)
    return [one.id for page in found for one in page.memories]


def at(day: int) -> Timestamp:
    return Timestamp(seconds=1_700_000_000 + day * DAY_S)


@pytest.fixture
def garden(service: Stubs, project: str) -> str:
    """Memories of three days."""
    learn(
        service,
        project,
        note("种下一颗星星", id="star", create_time=at(0), tags=["花园", "夜"]),
        note("我今天很开心", id="said", origin=pb.ORIGIN_USER_INPUT, session_id="s1", create_time=at(1)),
        note("那真好", id="answer", origin=pb.ORIGIN_AI_OUTPUT, session_id="s1", create_time=at(1)),
        note("The user planted a star", id="summary", origin=pb.ORIGIN_SUMMARY, create_time=at(2), event_time=at(0)),
        fragment("src/Garden.kt", "plant", "fun plant() = 种下", id="code"),
    )
    return project


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({}, ["star", "said", "answer", "summary", "code"]),
        ({"order": memory.LIST_ORDER_NEWEST_FIRST}, ["code", "summary", "answer", "said", "star"]),
        ({"filter": pb.MemoryFilter(origins=[pb.ORIGIN_MANUAL, pb.ORIGIN_SUMMARY])}, ["star", "summary", "code"]),
        ({"filter": pb.MemoryFilter(kinds=[pb.MEMORY_KIND_CODE_FRAGMENT])}, ["code"]),
        ({"filter": pb.MemoryFilter(session_ids=["s1"])}, ["said", "answer"]),
        ({"filter": pb.MemoryFilter(tags=["#花园"])}, ["star"]),
        ({"filter": pb.MemoryFilter(created_after=at(1), created_before=at(2))}, ["said", "answer"]),
        ({"filter": pb.MemoryFilter(event_after=at(0), event_before=at(1))}, ["summary"]),
        ({"filter": pb.MemoryFilter(event_after=at(1))}, ["said", "answer"]),
        ({"contains": "STAR"}, ["summary"]),
        ({"contains": "种下"}, ["star", "code"]),
        ({"contains": "种下", "filter": pb.MemoryFilter(tags=["夜"])}, ["star"]),
        ({"contains": "nowhere"}, []),
    ],
)
def test_the_garden_is_listed_by_what_its_screen_asks_for(
    service: Stubs, garden: str, asked: dict[str, Any], found: list[str]
) -> None:
    """S4-41."""
    assert listed(service, garden, **asked) == found


@pytest.mark.long
def test_a_page_that_is_too_large_is_one_of_a_thousand(service: Stubs, project: str) -> None:
    notes = [note(f"row {number}", id=f"m{number:04}") for number in range(1003)]
    for start in range(0, len(notes), 502):
        later = context.EMBEDDING_MODE_DEFERRED
        service.context.Learn(project=project, memories=notes[start : start + 502], embedding=later)
    found = pages(service.memory.ListMemories, project=project, page_size=4_000_000_000)
    assert [len(page.memories) for page in found] == [1000, 3]


def test_a_memory_shows_what_it_is_and_has_all_but_its_text_edited(service: Stubs, garden: str) -> None:
    """S4-41, S4-42."""
    said = service.memory.ListMemories(project=garden, view=pb.MEMORY_VIEW_FULL).memories[1]
    assert (said.content, said.origin, said.session_id) == ("我今天很开心", pb.ORIGIN_USER_INPUT, "s1")
    assert said.create_time == at(1)
    changed = pb.Memory(id="said", origin=pb.ORIGIN_MANUAL, emotion_label="joy", tags=["心情"])
    edited = edit(service, garden, changed, "origin", "emotion_label", "tags").memory
    assert (edited.origin, edited.emotion_label, list(edited.tags)) == (pb.ORIGIN_MANUAL, "joy", ["心情"])
    assert (edited.content, edited.session_id, edited.create_time) == ("我今天很开心", "s1", at(1))
    assert listed(service, garden, filter=pb.MemoryFilter(tags=["心情"])) == ["said"]


def test_a_page_has_no_texts_and_its_token_belongs_to_its_order_and_its_string(service: Stubs, garden: str) -> None:
    page = service.memory.ListMemories(project=garden, page_size=2)
    assert [each.content for each in page.memories] == ["", ""]
    for other in ({"order": memory.LIST_ORDER_NEWEST_FIRST}, {"contains": "x"}):
        refused = failure(service.memory.ListMemories, project=garden, page_token=page.next_page_token, **other)
        assert refused.code is grpc.StatusCode.INVALID_ARGUMENT


def test_an_edited_text_is_found_by_what_it_says_now_and_not_by_what_it_said(service: Stubs, project: str) -> None:
    """S4-42."""
    learn(service, project, note("the lighthouse needs paint", id="a"), note("buy bread and milk", id="b"))
    edit(service, project, pb.Memory(id="a", content="周五和林见面"), "content")
    assert contents(ask(service, project, "周五和谁见面"))[0] == "周五和林见面"
    found = {hit.memory.id: list(hit.matched_terms) for hit in ask(service, project, "paint the lighthouse").hits}
    assert not found.get("a")


def test_a_memory_planted_in_the_garden_is_recalled_in_the_next_conversation(service: Stubs, project: str) -> None:
    """S4-05, S4-50, S4-43: the garden and the conversations have one store."""
    assert chat(service, project, "我养的猫叫什么") == []
    learn(service, project, note("我养的猫叫潮汐"))
    assert chat(service, project, "我养的猫叫什么") == ["我养的猫叫潮汐"]
    learned = listed(service, project)
    service.memory.DeleteMemories(project=project, ids=learned)
    assert chat(service, project, "我养的猫叫什么") == []


@pytest.fixture
def lamps(service: Stubs, project: str) -> str:
    learn(
        service,
        project,
        note("the lamp on pier one", id="one", metadata={"env": "prod", "部门": "风控"}),
        note("the lamp on pier two", id="two", metadata={"env": "test"}),
        note("the lamp on pier three", id="three"),
    )
    return project


def having(service: Stubs, project: str, **facts: str) -> list[str]:
    return memory_ids(service, project, filter=pb.MemoryFilter(metadata=facts))


def test_metadata_is_given_back_and_asked_for_and_is_no_text(service: Stubs, lamps: str) -> None:
    """S0-06, S4-41. Neither its names nor its values are searched, and no prompt shows them."""
    got = service.memory.GetMemory(project=lamps, id="one", view=pb.MEMORY_VIEW_INDEX).memory
    assert dict(got.metadata) == {"env": "prod", "部门": "风控"}
    assert having(service, lamps) == ["one", "two", "three"]
    assert having(service, lamps, env="prod") == ["one"]
    assert having(service, lamps, env="prod", 部门="风控") == ["one"]
    assert having(service, lamps, env="Prod") == []
    assert having(service, lamps, env="prod", 部门="运营") == []
    assert having(service, lamps, env="") == []
    found = ask(service, lamps, "lamp on the pier", filter=pb.MemoryFilter(metadata={"env": "test"}))
    assert [hit.memory.id for hit in found.hits] == ["two"]
    assert dict(found.hits[0].memory.metadata) == {"env": "test"}
    for word in ("prod", "env", "风控"):
        question = recall_request(lamps, word, paths=[recall.RECALL_PATH_KEYWORD])
        assert not service.context.Recall(question).hits
        assert not service.memory.ListMemories(project=lamps, contains=word).memories
    selection = context.MemorySelection(ids=["one"])
    rendered = service.context.Render(project=lamps, memories=selection)
    assert "lamp" in rendered.text
    assert "prod" not in rendered.text


@pytest.mark.timed
def test_an_edit_replaces_all_of_it_and_leaves_the_rest(service: Stubs, lamps: str) -> None:
    with watching(service, lamps, filter=pb.MemoryFilter(metadata={"env": "prod"})) as news:
        edit(service, lamps, pb.Memory(id="two", metadata={"env": "prod"}), "metadata")
        assert told(next(news)) == [(memory.MEMORY_EVENT_TYPE_UPDATED, "two")]
        edit(service, lamps, pb.Memory(id="one", metadata={"owner": "Lin"}), "metadata")
        assert told(next(news)) == [(memory.MEMORY_EVENT_TYPE_DELETED, "one")]
    assert having(service, lamps, env="prod") == ["two"]
    got = service.memory.GetMemory(project=lamps, id="one").memory
    assert (got.content, dict(got.metadata)) == ("the lamp on pier one", {"owner": "Lin"})
    edit(service, lamps, pb.Memory(id="one"), "metadata")
    got = service.memory.GetMemory(project=lamps, id="one").memory
    assert not got.metadata


def test_metadata_is_explained_moved_and_makes_another_write(service: Stubs, lamps: str) -> None:
    question = recall_request(lamps, "lamp on pier one", filter=pb.MemoryFilter(metadata={"env": "test"}))
    explained = service.context.Explain(recall=question, memory_id="one")
    assert list(explained.failed_conditions) == ["metadata"]
    assert not explained.changed_recall.filter.metadata
    refused = failure(edit, service, lamps, pb.Memory(id="one", metadata={"n": "v" * 513}), "metadata")
    assert list(refused.violations) == ["memory.metadata[n]"]
    records = export(service, lamps)
    moved = f"{lamps}-moved"
    take_in(service, moved, records)
    assert having(service, moved, env="prod") == ["one"]
    (again,) = take_in(service, moved, records)
    assert (again.created_count, again.updated_count, again.unchanged_count) == (0, 0, 3)
    same = note("the lamp on pier two", id="two", metadata={"env": "test"})
    assert learn(service, lamps, same).results[0].status == context.LEARN_STATUS_UNCHANGED
    other = note("the lamp on pier two", id="two", metadata={"env": "stage"})
    assert learn(service, lamps, other).results[0].status == context.LEARN_STATUS_UPDATED
    assert having(service, lamps, env="stage") == ["two"]


@pytest.mark.parametrize(
    ("metadata", "field"),
    [
        ({"n" * 65: "v"}, "memories[0].metadata[" + "n" * 65 + "]"),
        ({"n": "v" * 513}, "memories[0].metadata[n]"),
        ({str(number): "" for number in range(33)}, "memories[0].metadata"),
        ({"a\nb": "v"}, "memories[0].metadata"),
    ],
)
def test_what_is_above_a_limit_is_named(service: Stubs, project: str, metadata: dict[str, str], field: str) -> None:
    assert list(failure(learn, service, project, note("x", metadata=metadata)).violations) == [field]


def test_code_is_recalled_and_listed_by_the_folder_that_it_lies_in(service: Stubs, project: str) -> None:
    paths = ("src/pay/repay.py", "src/pay/deep/late.py", "src/repay.py")
    pieces = [fragment(path, "repay", f"def repay(): ...  # in {path}", id=path) for path in paths]
    learn(service, project, *pieces, note("repay is documented in src/pay/repay.py"))
    for folders, expected in (
        (["src/pay/"], set(paths[:2])),
        (["deep/", "src/repay.py"], set(paths[1:])),
        (["no/"], set()),
    ):
        where = pb.MemoryFilter(paths=folders)
        assert set(memory_ids(service, project, filter=where)) == expected
        answer = ask(service, project, "how does repay work?", filter=where)
        assert {hit.memory.id for hit in (*answer.hits, *answer.code_fragments)} == expected
    # A file that comes later is below it too.
    learn(service, project, fragment("src/pay/new.py", "pay", "def pay(): ...", id="new"))
    assert "new" in memory_ids(service, project, filter=pb.MemoryFilter(paths=["src/pay/"]))


CHANGED = ["src/pay.py", "docs/还款.md"]
USER, ANSWER = "Round refunds to the cent", "The refund is rounded to the cent, half up."


def turn(project: str, files: list[str], answer: str = ANSWER, **more: Any) -> context.LearnTurnRequest:
    request = context.LearnTurnRequest(project=project, session_id="s", files=files)
    request.user.CopyFrom(context.TurnSide(text=USER, message_id="1"))
    request.assistant.CopyFrom(context.TurnSide(text=answer, message_id="2"))
    request.MergeFrom(context.LearnTurnRequest(**more))
    return request


def recalled(service: Stubs, project: str, *paths: str) -> set[str]:
    """What is recalled of a refund at these paths."""
    where = pb.MemoryFilter(paths=paths)
    asked = recall.RecallRequest(project=project, query_text="what did we change about the refund?", filter=where)
    return {hit.memory.content for hit in service.context.Recall(asked).hits}


@pytest.fixture
def changed(service: Stubs, project: str) -> str:
    """A project with a turn in which files were changed, and one in which none was."""
    create(service, project, "s")
    service.context.LearnTurn(turn(project, [*CHANGED, *CHANGED]))
    learn(service, project, pb.Memory(content="A refund is paid within three days."))
    return project


def test_a_turn_is_found_by_the_files_that_it_changed_and_by_no_other(service: Stubs, changed: str) -> None:
    for path in ("src/pay.py", "pay.py", "src/", "docs/", "还款.md", "docs/还款.md"):
        assert recalled(service, changed, path) == {USER, ANSWER}, path
    for path in ("ay.py", "rc/", "pay.py/", "src"):
        assert recalled(service, changed, path) == set(), path


def test_both_sides_show_each_file_once_and_an_answer_anew_brings_its_own(service: Stubs, changed: str) -> None:
    where = pb.MemoryFilter(paths=["src/"])
    listed = service.memory.ListMemories(project=changed, filter=where).memories
    assert [list(one.files) for one in listed] == [CHANGED, CHANGED]
    longer = turn(changed, [*CHANGED, "src/refund.py"], f"{ANSWER} Tests are green.", replace_answer=True)
    service.context.LearnTurn(longer)
    assert recalled(service, changed, "refund.py") == {f"{ANSWER} Tests are green."}


def test_files_can_be_changed_and_removed_with_their_filter(service: Stubs, project: str) -> None:
    (result,) = learn(service, project, pb.Memory(content="The refund is late.", files=["a.py"])).results
    edit(service, project, pb.Memory(id=result.id, files=["src/b.py"]), "files")
    assert (recalled(service, project, "a.py"), recalled(service, project, "b.py")) == (set(), {"The refund is late."})
    assert service.memory.DeleteMemories(project=project, filter=pb.MemoryFilter(paths=["src/"])).deleted_count == 1


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "../pay.py", "src/../pay.py", "./pay.py", "src//a", "src/", "C:/a", "a\\b"]
)
def test_a_path_that_is_not_below_the_root_is_refused(service: Stubs, project: str, path: str) -> None:
    create(service, project, "s")
    refused = failure(service.context.LearnTurn, turn(project, ["src/pay.py", path]))
    assert list(refused.violations) == ["files[1]"]
    refused = failure(service.context.Learn, project=project, memories=[pb.Memory(content="a", files=[path])])
    assert list(refused.violations) == ["memories[0].files[0]"]
