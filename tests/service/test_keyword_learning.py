"""Keywords that a language model learns, in the whole service: a stub on a real socket says what the test wants."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from hummock import models
from hummock_client.v1 import context_service_pb2 as context
from hummock_client.v1 import learning_service_pb2 as pb
from hummock_client.v1 import recall_pb2
from tests.llm.stub import Answer, Stub, completion, stub_server
from tests.service.calls import ask, learn
from tests.service.inputs import entry
from tests.service.running import Stubs, in_thread, settings

pytestmark = pytest.mark.timed

WOOD = "世界.图鉴.物品.潮汐木芯"
STAR = "世界.图鉴.物品.星图"
_PROJECTS = count()


@pytest.fixture(scope="module")
def stub() -> Iterator[Stub]:
    with stub_server() as serving:
        yield serving


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, models_dir: Path, stub: Stub) -> Iterator[Stubs]:
    with learning_from(stub, tmp_path_factory.mktemp("data"), models_dir) as stubs:
        yield stubs


def learning_from(stub: Stub, data: Path, models_dir: Path) -> AbstractContextManager[Stubs]:
    tiny = models.build_tiny(models_dir).name
    learning_llm = {"base_url": stub.base_url, "model": "small"}
    # The other one is not there: what learns has one of its own.
    llm = {"base_url": "http://127.0.0.1:9/v1", "model": "large"}
    return in_thread(settings(data, models_dir, tiny, llm=llm, learning_llm=learning_llm))


@pytest.fixture
def asked(stub: Stub) -> Iterator[Stub]:
    stub.asked.clear()
    stub.may_answer.set()
    yield stub
    stub.may_answer.set()


@pytest.fixture
def project(service: Stubs) -> str:
    name = f"codex-{next(_PROJECTS)}"
    learn(service, name, entry(WOOD, "潮汐木芯", "沉在海底三百年。"), entry(STAR, "星图", "画在羊皮上。"))
    return name


def titled(answers: dict[str, list[str]]) -> Callable[[dict[str, Any]], Answer]:
    """Says these keywords for the entries of these titles, and none for others."""

    def answer(body: dict[str, Any]) -> Answer:
        entries = json.loads(body["messages"][1]["content"])["entries"]
        said = [{"number": one["number"], "keywords": answers.get(one["title"], [])} for one in entries]
        return completion({"entries": said})

    return answer


def switch(service: Stubs, project: str, **changes: Any) -> pb.UpdateLearningSettingsResponse:
    return service.learning.UpdateLearningSettings(project=project, **changes)


def observe(service: Stubs, project: str, text: str, turn: int = 1) -> int:
    return service.learning.ObserveTurn(project=project, turn=turn, user_text=text).seq


def scan(service: Stubs, project: str, **fields: Any) -> list[pb.LearnKeywordsResponse]:
    return list(service.learning.LearnKeywords(project=project, **fields))


Keywords = dict[str, list[str]]


def keywords_when(service: Stubs, project: str, are_there: Callable[[Keywords], bool]) -> Keywords:
    """The keywords by entry, once they are so: the watch says when they change."""
    known: Keywords = {}
    call = service.learning.WatchLearningState(project=project, timeout=60)
    for message in call:
        known.update({one.memory_id: list(one.profile.keywords) for one in message.entries})
        if are_there(known):
            call.cancel()
            return known
    raise AssertionError("the watch ended")


def without_pause(service: Stubs, project: str) -> None:
    """Removes the pause between scans; learning stays off."""
    request = pb.UpdateLearningSettingsRequest(project=project)
    request.settings.cold_start_pause.FromMilliseconds(0)
    service.learning.UpdateLearningSettings(request)


def test_what_is_learnt_from_a_turn_finds_the_entry_in_the_next_recall(
    service: Stubs, project: str, asked: Stub
) -> None:
    """S3-01, S3-05, S3-13, S3-14."""
    asked.answer = titled({})
    switch(service, project, enabled=True)
    scan(service, project)
    asked.answer = titled({"潮汐木芯": ["防潮材料"]})
    observe(service, project, "潮汐木芯是防潮材料吗")
    keywords_when(service, project, lambda known: known[WOOD] == ["防潮材料"])
    assert ask(service, project, "防潮材料").hits[0].memory.id == WOOD
    assert asked.asked[-1]["model"] == "small"


def test_a_turn_costs_one_question_however_many_entries_it_may_speak_of(
    service: Stubs, project: str, asked: Stub
) -> None:
    """S3-12, S3-13."""
    asked.answer = titled({})
    switch(service, project, enabled=True)
    scan(service, project)
    asked.answer = titled({"潮汐木芯": ["防潮材料"], "星图": ["夜航图"]})
    asked.asked.clear()
    observe(service, project, "潮汐木芯和星图，就是防潮材料和夜航图")
    known = keywords_when(service, project, lambda known: all(known.values()))
    assert known == {WOOD: ["防潮材料"], STAR: ["夜航图"]}
    assert len(asked.asked) == 1


def test_what_was_learnt_beside_the_calls_decides_what_the_next_prompt_holds(
    service: Stubs, project: str, asked: Stub
) -> None:
    """S3-01, S3-02, S3-04, S3-18, S3-20."""
    asked.answer = titled({"潮汐木芯": ["硬木头"]})
    without_pause(service, project)
    switch(service, project, enabled=True)
    keywords_when(service, project, lambda known: known[WOOD] == ["硬木头"])
    recall = recall_pb2.RecallRequest(project=project, query_text="哪里有硬木头")
    rendered = service.context.RenderTurn(render=context.RenderRequest(project=project, recall=recall), turn=1)
    forced = [row.memory_id for row in rendered.decision.injections if row.forced]
    assert forced == [WOOD]
    assert "沉在海底三百年" in rendered.rendering.text


def test_switching_on_reads_every_entry_once_and_a_scan_joins(service: Stubs, project: str, asked: Stub) -> None:
    """S3-25, S3-26, S3-27, S3-30, S3-44."""
    asked.answer = titled({"潮汐木芯": ["硬木头"], "星图": ["star chart"]})
    without_pause(service, project)
    switched = switch(service, project, enabled=True)
    assert switched.cold_start
    assert not switched.cold_start_skipped
    keywords_when(service, project, lambda known: known == {WOOD: ["硬木头"], STAR: ["star chart"]})
    (only,) = scan(service, project)[-1:]
    assert only.end == pb.SCAN_END_DONE
    again = switch(service, project, enabled=True)
    assert not again.cold_start
    assert not again.cold_start_skipped


def test_a_scan_streams_each_entry(service: Stubs, project: str, asked: Stub) -> None:
    """S3-30, S3-36, S3-44."""
    asked.answer = titled({})
    without_pause(service, project)
    switch(service, project, enabled=True)
    scan(service, project)
    asked.answer = titled({"星图": ["star chart"]})
    messages = scan(service, project, scope=pb.SCAN_SCOPE_ALL)
    told = {
        one.entry.memory_id: (one.entry.outcome, list(one.entry.keywords)) for one in messages if one.entry.memory_id
    }
    assert told[STAR] == (pb.ENTRY_OUTCOME_LEARNT, ["star chart"])
    assert messages[-1].end == pb.SCAN_END_DONE
    assert messages[-1].done == messages[-1].total
    chosen = scan(service, project, memory_ids=[WOOD])
    assert [one.entry.memory_id for one in chosen if one.entry.memory_id] == [WOOD]


def test_in_a_project_that_does_not_learn_a_scan_says_so(service: Stubs, project: str) -> None:
    """S3-31, S3-37."""
    (message,) = scan(service, project)
    assert (message.end, message.reason) == (pb.SCAN_END_OFF, "learning is off in this project")


def test_a_language_model_that_hangs_changes_nothing_for_callers(service: Stubs, project: str, asked: Stub) -> None:
    """S3-05, S3-44."""
    asked.may_answer.clear()
    switch(service, project, enabled=True)
    for turn in range(20):
        observe(service, project, "潮汐木芯", turn)
        recall = recall_pb2.RecallRequest(project=project, query_text="潮汐木芯")
        request = context.RenderRequest(project=project, recall=recall)
        assert "潮汐木芯" in service.context.RenderTurn(render=request, turn=turn, timeout=30).rendering.text
    asked.answer = titled({"潮汐木芯": ["硬木头"]})
    asked.may_answer.set()
    observe(service, project, "潮汐木芯", 21)
    assert keywords_when(service, project, lambda known: bool(known[WOOD]))[WOOD] == ["硬木头"]


def test_a_language_model_that_answers_badly_leaves_everything_as_it_was(
    service: Stubs, project: str, asked: Stub
) -> None:
    """S3-44."""
    without_pause(service, project)
    asked.answer = lambda _: (200, b" " * (10 << 20))
    switch(service, project, enabled=True)
    messages = scan(service, project)
    assert messages[-1].end in (pb.SCAN_END_DONE, pb.SCAN_END_FAILING)
    state = service.learning.GetLearningState(project=project)
    assert not any(one.HasField("profile") for one in state.entries)


def test_a_learnt_turn_of_a_session_is_observed(service: Stubs, project: str, asked: Stub) -> None:
    """S3-05."""
    asked.answer = titled({})
    without_pause(service, project)
    switch(service, project, enabled=True)
    scan(service, project)
    asked.answer = titled({"潮汐木芯": ["压舱木"]})
    session = service.session.GetOrCreateActiveSession(project=project).session
    service.context.LearnTurn(
        project=project,
        session_id=session.id,
        user=context.TurnSide(text="潮汐木芯能压舱吗"),
        assistant=context.TurnSide(text="能。"),
    )
    keywords_when(service, project, lambda known: known[WOOD] == ["压舱木"])


def test_the_status_says_what_the_language_model_was_asked(tmp_path: Path, models_dir: Path) -> None:
    # A service of its own: scans that other tests began would be counted.
    with stub_server() as asked, learning_from(asked, tmp_path, models_dir) as service:
        status, body = completion({"entries": []})
        usage = {"prompt_tokens": 200, "completion_tokens": 7}
        asked.answer = lambda _: (status, json.dumps({**json.loads(body), "usage": usage}).encode())
        learn(service, "codex", entry(WOOD, "潮汐木芯", "沉在海底三百年。"))
        without_pause(service, "codex")
        switch(service, "codex", enabled=True)
        scan(service, "codex")
        learner = service.admin.GetStatus().learner
    assert (learner.model, learner.replies) == ("small", len(asked.asked) or "none was asked")
    assert learner.prompt_tokens == 200 * learner.replies
