"""Files that were changed in a turn: which filters find it by them, and which paths are refused."""

from __future__ import annotations

from typing import Any

import pytest

from hummock_client.v1 import context_service_pb2 as context
from hummock_client.v1 import memory_pb2, recall_pb2
from hummock_client.v1.memory_service_pb2 import DeleteMemoriesRequest, UpdateMemoryRequest
from tests.service.calls import failure, learn
from tests.service.conversing import create
from tests.service.running import Stubs

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
    where = memory_pb2.MemoryFilter(paths=paths)
    asked = recall_pb2.RecallRequest(project=project, query_text="what did we change about the refund?", filter=where)
    return {hit.memory.content for hit in service.context.Recall(asked).hits}


@pytest.fixture
def changed(service: Stubs, project: str) -> str:
    """A project with a turn in which files were changed, and one in which none was."""
    create(service, project, "s")
    service.context.LearnTurn(turn(project, [*CHANGED, *CHANGED]))
    learn(service, project, memory_pb2.Memory(content="A refund is paid within three days."))
    return project


def test_a_turn_is_found_by_the_files_that_it_changed_and_by_no_other(service: Stubs, changed: str) -> None:
    for path in ("src/pay.py", "pay.py", "src/", "docs/", "还款.md", "docs/还款.md"):
        assert recalled(service, changed, path) == {USER, ANSWER}, path
    for path in ("ay.py", "rc/", "pay.py/", "src"):
        assert recalled(service, changed, path) == set(), path


def test_both_sides_show_each_file_once_and_an_answer_anew_brings_its_own(service: Stubs, changed: str) -> None:
    where = memory_pb2.MemoryFilter(paths=["src/"])
    listed = service.memory.ListMemories(project=changed, filter=where).memories
    assert [list(memory.files) for memory in listed] == [CHANGED, CHANGED]
    longer = turn(changed, [*CHANGED, "src/refund.py"], f"{ANSWER} Tests are green.", replace_answer=True)
    service.context.LearnTurn(longer)
    assert recalled(service, changed, "refund.py") == {f"{ANSWER} Tests are green."}


def test_files_can_be_changed_and_removed_with_their_filter(service: Stubs, project: str) -> None:
    (result,) = learn(service, project, memory_pb2.Memory(content="The refund is late.", files=["a.py"])).results
    update = UpdateMemoryRequest(project=project, memory=memory_pb2.Memory(id=result.id, files=["src/b.py"]))
    update.update_mask.paths.append("files")
    service.memory.UpdateMemory(update)
    assert (recalled(service, project, "a.py"), recalled(service, project, "b.py")) == (set(), {"The refund is late."})
    request = DeleteMemoriesRequest(project=project, filter=memory_pb2.MemoryFilter(paths=["src/"]))
    assert service.memory.DeleteMemories(request).deleted_count == 1


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "../pay.py", "src/../pay.py", "./pay.py", "src//a", "src/", "C:/a", "a\\b"]
)
def test_a_path_that_is_not_below_the_root_is_refused(service: Stubs, project: str, path: str) -> None:
    create(service, project, "s")
    refused = failure(service.context.LearnTurn, turn(project, ["src/pay.py", path]))
    assert list(refused.violations) == ["files[1]"]
    refused = failure(service.context.Learn, project=project, memories=[memory_pb2.Memory(content="a", files=[path])])
    assert list(refused.violations) == ["memories[0].files[0]"]
