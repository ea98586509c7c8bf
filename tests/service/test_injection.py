"""Entries of a codex in a turn's prompt, by the text and by how they were used."""

from __future__ import annotations

from typing import Any

import grpc
import pytest

from hummock_client.v1 import context_service_pb2 as context
from hummock_client.v1 import learning_pb2 as learning
from hummock_client.v1 import learning_service_pb2 as service_pb
from hummock_client.v1 import recall_pb2 as recall
from tests.service.calls import failure, learn
from tests.service.inputs import entry, note
from tests.service.running import Stubs

CORE = "世界.图鉴.物品.潮汐木芯"
LAMP = "世界.图鉴.物品.v1.2 灯"
HARBOUR = "世界.图鉴.地点.Grey Harbour"

INJECTING = learning.INJECTION_STATUS_INJECTING
COOLING_DOWN = learning.INJECTION_STATUS_COOLING_DOWN

NOTHING = "完全无关的话 xyzzy"
"""Words that no entry is like."""

CODEX = (
    entry(CORE, "潮汐木芯", "沉在海底三百年的硬木，遇水不腐。"),
    entry(LAMP, "长明灯", "燃鲸油，风吹不灭。"),
    entry(HARBOUR, "Grey Harbour", "A port in the north; ships winter there."),
)


@pytest.fixture
def codex(service: Stubs, project: str) -> str:
    """A project with three entries, in which learning is on."""
    learn(service, project, *CODEX)
    switch(service, project, enabled=True)
    return project


def switch(service: Stubs, project: str, *, enabled: bool) -> service_pb.UpdateLearningSettingsResponse:
    return service.learning.UpdateLearningSettings(project=project, enabled=enabled)


def tune(service: Stubs, project: str, **numbers: Any) -> service_pb.UpdateLearningSettingsResponse:
    return service.learning.UpdateLearningSettings(project=project, settings=learning.LearningSettings(**numbers))


def render(service: Stubs, project: str, turn: int, text: str = NOTHING, **more: Any) -> context.RenderTurnResponse:
    named = {name: more.pop(name, "") for name in ("scope", "request_id")}
    asked = recall.RecallRequest(query_text=text, preset=recall.PRESET_CODEX)
    rendering = {"project": project, "recall": asked, "form": context.RENDER_FORM_MEMORIES, **more}
    return service.context.RenderTurn(turn=turn, render=context.RenderRequest(**rendering), **named)


def preview(service: Stubs, project: str, text: str = NOTHING) -> context.RenderResponse:
    asked = recall.RecallRequest(query_text=text, preset=recall.PRESET_CODEX)
    return service.context.Render(project=project, recall=asked, form=context.RENDER_FORM_MEMORIES)


def state(service: Stubs, project: str, scope: str = "", **more: Any) -> service_pb.GetLearningStateResponse:
    return service.learning.GetLearningState(project=project, scope=scope, **more)


def rows(response: context.RenderTurnResponse) -> dict[str, learning.Injection]:
    return {row.memory_id: row for row in response.decision.injections}


def shown(answer: context.RenderResponse | context.RenderTurnResponse) -> list[str]:
    response = answer.rendering if isinstance(answer, context.RenderTurnResponse) else answer
    return [one.memory_id for one in response.memories if one.tier != context.TIER_DROPPED]


def usage(service: Stubs, project: str, scope: str = "") -> dict[str, tuple[int, int | None]]:
    """Usage in GetLearningState by id: the frequency and the turn in which it was last sent."""
    used = {one.memory_id: one.injection.usage for one in state(service, project, scope).entries}
    return {
        name: (one.frequency, one.last_sent_turn if one.HasField("last_sent_turn") else None)
        for name, one in used.items()
    }


def refer(service: Stubs, project: str, times: int, *, until: int, text: str = "潮汐木芯在哪里？") -> None:
    """Renders turns that refer to an entry; the last one has the number `until`."""
    for turn in range(until - times + 1, until + 1):
        render(service, project, turn, text)


def test_a_named_entry_is_forced_in_and_counted(service: Stubs, codex: str) -> None:
    """S3-17, S3-19, S3-20, S3-22, S3-41, S3-42."""
    rendered = render(service, codex, 7, "潮汐木芯在哪里？")
    assert shown(rendered) == [CORE]
    assert "沉在海底三百年" in rendered.rendering.text
    row = rows(rendered)[CORE]
    assert (row.forced, row.status, row.probability, row.usage.frequency) == (True, INJECTING, 1.0, 1)
    assert not row.usage.HasField("last_sent_turn")
    assert usage(service, codex) == {CORE: (1, 7), LAMP: (0, None), HARBOUR: (0, None)}


def test_a_keyword_set_by_hand_and_a_slip_of_the_pen_refer_to_their_entries(service: Stubs, codex: str) -> None:
    """S3-18, S3-39, S3-43."""
    assert shown(render(service, codex, 1, "Is Gray Harbour far?", scope="slip")) == [HARBOUR]
    service.learning.UpdateLearningSettings(
        project=codex, keywords=[service_pb.EntryKeywords(memory_id=LAMP, keywords=["鲸油", " 鲸油 ", "whale light"])]
    )
    assert shown(render(service, codex, 1, "去买一点鲸油")) == [LAMP]
    profiles = {one.memory_id: list(one.profile.keywords) for one in state(service, codex).entries}
    assert profiles == {CORE: [], LAMP: ["鲸油", "whale light"], HARBOUR: []}


def test_what_is_used_most_is_in_every_turn(service: Stubs, codex: str) -> None:
    """S3-21, S3-44: above 10 always."""
    tune(service, codex, high_above=2, mid_above=1)
    refer(service, codex, 3, until=3)
    for turn in (4, 5, 6):
        rendered = render(service, codex, turn)
        assert shown(rendered) == [CORE]
        assert rows(rendered)[CORE].reason == "referenced 3 times: more than 2, always"


def test_middle_use_comes_back_after_more_than_three_turns(service: Stubs, codex: str) -> None:
    """S3-21, S3-44."""
    refer(service, codex, 4, until=10)
    assert [shown(render(service, codex, turn)) for turn in range(11, 16)] == [[], [], [], [CORE], []]


def test_low_use_comes_back_after_more_than_ten_turns(service: Stubs, codex: str) -> None:
    """S3-21, S3-44."""
    refer(service, codex, 3, until=10)
    cooling = rows(render(service, codex, 20))[CORE]
    assert cooling.status == COOLING_DOWN
    assert cooling.probability == pytest.approx(10 / 11)
    assert cooling.reason == "referenced 3 times; last sent 10 turns ago, again after more than 10"
    assert shown(render(service, codex, 21)) == [CORE]


def test_what_nobody_referred_to_does_not_come_by_use(service: Stubs, codex: str) -> None:
    """S3-02, S3-21."""
    rendered = render(service, codex, 1)
    assert (rendered.rendering.text, list(rendered.decision.injections)) == ("", [])
    idle = {one.memory_id: one.injection.status for one in state(service, codex).entries}
    assert set(idle.values()) == {learning.INJECTION_STATUS_IDLE}


def test_what_had_no_room_was_not_sent_and_comes_next(service: Stubs, codex: str) -> None:
    """S3-22, S3-44: never sent."""
    rendered = render(service, codex, 1, "潮汐木芯", form=context.RENDER_FORM_CONTEXT, budget_tokens=1)
    assert shown(rendered) == []
    assert usage(service, codex)[CORE] == (1, None)
    again = render(service, codex, 2)
    assert shown(again) == [CORE]
    assert rows(again)[CORE].reason == "referenced once; never sent so far"


def test_a_turn_made_again_holds_the_same_and_one_taken_up_earlier_sent_nothing_later(
    service: Stubs, codex: str
) -> None:
    """S3-21."""
    render(service, codex, 5, "长明灯", scope="again")
    assert shown(render(service, codex, 5, scope="again")) == [LAMP]
    render(service, codex, 50, "长明灯")
    assert shown(render(service, codex, 4)) == [LAMP]
    assert shown(render(service, codex, 5)) == []


def test_scopes_count_apart(service: Stubs, codex: str) -> None:
    render(service, codex, 1, "长明灯", scope="第一局")
    assert usage(service, codex, "第一局")[LAMP] == (1, 1)
    assert usage(service, codex, "第二局")[LAMP] == (0, None)
    assert shown(render(service, codex, 1, scope="第二局")) == []


def test_previews_and_recalls_count_nothing_and_each_commit_is_a_write(service: Stubs, codex: str) -> None:
    """1.1-9."""
    before = state(service, codex)
    assert shown(preview(service, codex, "潮汐木芯")) == [CORE]
    service.context.Recall(project=codex, query_text="潮汐木芯")
    assert state(service, codex) == before
    seqs = [render(service, codex, turn).rendering.seq for turn in (1, 2)]
    assert seqs[1] == seqs[0] + 1


def test_a_repeated_commit_counts_once_and_its_id_fits_no_other_body(service: Stubs, codex: str) -> None:
    """S3-19, 1.1-9."""
    given = "5f0c0a5e-0000-4000-8000-00000000000a"
    first = render(service, codex, 3, "潮汐木芯", request_id=given)
    learn(service, codex, entry(CORE, "潮汐木芯", "改写过的内容。"))
    assert render(service, codex, 3, "潮汐木芯", request_id=given.upper()) == first
    assert usage(service, codex)[CORE] == (1, 3)
    assert failure(render, service, codex, 4, "潮汐木芯", request_id=given).code is grpc.StatusCode.ALREADY_EXISTS
    assert usage(service, codex)[CORE] == (1, 3)


def test_a_turn_without_words_is_refused(service: Stubs, codex: str) -> None:
    bare = context.RenderRequest(project=codex, memories=context.MemorySelection(ids=[CORE]))
    refused = failure(service.context.RenderTurn, render=bare, turn=1)
    assert (refused.code, "render.recall" in refused.message) == (grpc.StatusCode.INVALID_ARGUMENT, True)


def test_a_new_project_injects_every_entry(service: Stubs, project: str) -> None:
    """S3-35, S3-37: off until it is switched on."""
    learn(service, project, *CODEX, note("不是条目"))
    rendered = render(service, project, 1)
    assert shown(rendered) == [CORE, LAMP, HARBOUR]
    assert not rendered.decision.enabled
    assert list(rendered.decision.injections) == []
    assert usage(service, project) == {CORE: (0, None), LAMP: (0, None), HARBOUR: (0, None)}


def test_while_learning_is_off_the_order_of_entries_follows_no_question(service: Stubs, project: str) -> None:
    """S3-37."""
    learn(service, project, *CODEX, note("港口在冬天结冰。", id="a-note"))
    asked = ("潮汐木芯", "长明灯是什么", "Grey Harbour", "港口结冰", NOTHING)
    assert {tuple(shown(render(service, project, 1, text))[:3]) for text in asked} == {(CORE, LAMP, HARBOUR)}


@pytest.mark.long
def test_full_injection_keeps_the_budget_and_says_what_it_left_out(service: Stubs, project: str) -> None:
    """S3-37."""
    learn(service, project, *(entry(f"e{place}", f"第{place}条", "字" * 200) for place in range(100)))
    rendered = render(service, project, 1, "第99条", budget_tokens=500)
    held = shown(rendered)
    assert held == [f"e{place}" for place in range(len(held))]
    assert 0 < len(held) < 100
    assert rendered.rendering.token_count <= 500
    assert rendered.decision.dropped_count == 100 - len(held)
    assert render(service, project, 2, budget_tokens=100_000).decision.dropped_count == 0


def test_switching_on_says_why_no_entries_are_read(service: Stubs, project: str) -> None:
    """S3-31: without a language model."""
    learn(service, project, *CODEX)
    switched = switch(service, project, enabled=True)
    assert not switched.cold_start
    assert "no language model is configured" in switched.cold_start_skipped
    assert not switch(service, project, enabled=True).cold_start_skipped


def test_the_switch_loses_nothing_and_changes_no_recall_no_search_and_no_preview(service: Stubs, codex: str) -> None:
    """S3-03, S3-38. What is learnt decides what a committed turn holds, and nothing else."""
    refer(service, codex, 2, until=2)
    before = usage(service, codex)
    switch(service, codex, enabled=False)
    assert shown(render(service, codex, 3)) == [CORE, LAMP, HARBOUR]
    switch(service, codex, enabled=True)
    assert usage(service, codex) == before

    def answers() -> tuple[list[tuple[str, float]], str, str]:
        hits = service.context.Recall(project=codex, query_text="海底的硬木").hits
        found = service.context.Search(project=codex, query_text="海底的硬木")
        return [(hit.memory.id, hit.score) for hit in hits], found.text, preview(service, codex, "海底的硬木").text

    on = answers()
    switch(service, codex, enabled=False)
    assert answers() == on
    assert on[0]


def test_switching_on_again_says_how_many_turns_were_missed(service: Stubs, codex: str) -> None:
    """S3-44: re-enable reports missed turns."""
    render(service, codex, 10)
    switch(service, codex, enabled=False)
    for turn in (11, 12, 13):
        render(service, codex, turn)
    assert state(service, codex).state.missed_turns == 3
    switched = switch(service, codex, enabled=True)
    assert (switched.missed_turns, switched.state.missed_turns) == (3, 0)
    assert switch(service, codex, enabled=True).missed_turns == 0


def test_other_memories_are_rendered_between_forced_entries_and_those_by_use(service: Stubs, codex: str) -> None:
    learn(service, codex, note("潮汐木芯要用长明灯照着看。", id="a-note"))
    tune(service, codex, high_above=0, mid_above=0)
    render(service, codex, 1, "Grey Harbour")
    asked = recall.RecallRequest(query_text="潮汐木芯", preset=recall.PRESET_AGENT)
    request = context.RenderRequest(project=codex, recall=asked, form=context.RENDER_FORM_MEMORIES)
    assert shown(service.context.RenderTurn(render=request, turn=2)) == [CORE, "a-note", HARBOUR]


def test_a_turn_is_rendered_as_messages_too(service: Stubs, codex: str) -> None:
    """S3-23."""
    said = "潮汐木芯在哪里？"
    asked = {"form": context.RENDER_FORM_MESSAGES, "request_id": "5f0c0a5e-0000-4000-8000-000000000003"}
    current = context.PromptMessage(role=context.PROMPT_ROLE_USER, content=said)
    rendered = render(service, codex, 1, said, current=current, **asked)
    assert rendered.rendering.messages[-1].content == said
    assert "沉在海底三百年" in rendered.rendering.messages[0].content


def test_an_entry_that_is_removed_or_becomes_a_note_is_forgotten(service: Stubs, codex: str) -> None:
    render(service, codex, 1, "潮汐木芯和长明灯")
    service.memory.DeleteMemories(project=codex, ids=[CORE])
    assert set(rows(render(service, codex, 2))) == {LAMP}
    learn(service, codex, CODEX[0])
    assert usage(service, codex)[CORE] == (0, None)
    render(service, codex, 1, "长明灯")
    learn(service, codex, note("长明灯只是一盏灯。", id=LAMP))
    assert rows(render(service, codex, 2)) == {}


@pytest.mark.parametrize(
    "asked",
    [
        {"form": context.RENDER_FORM_CONTEXT, "prompt": "你是向导。"},
        {"form": context.RENDER_FORM_WATERFALL, "read_ids": [LAMP, "nobody"]},
        {"form": context.RENDER_FORM_INDEX, "template": context.PROMPT_TEMPLATE_CODE_ANALYST},
        {"form": context.RENDER_FORM_MEMORIES, "placement": context.PLACEMENT_TAIL},
        {
            "form": context.RENDER_FORM_MESSAGES,
            "placement": context.PLACEMENT_TAIL,
            "prompt": "你是向导。",
            "history": [context.PromptMessage(role=context.PROMPT_ROLE_USER, content="早")],
            "current": context.PromptMessage(role=context.PROMPT_ROLE_USER, content="昨天说的长明灯"),
        },
    ],
    ids=["context", "waterfall", "index", "tail", "messages"],
)
def test_a_repeat_has_all_of_the_first_answer(service: Stubs, codex: str, asked: dict[str, Any]) -> None:
    """1.1-9: whatever the form, with intent, receipt, tools, prefix and messages."""
    given = {"text": "昨天说的长明灯 near Grey Harbour", "request_id": "5f0c0a5e-0000-4000-8000-000000000009"}
    first = render(service, codex, 1, **given, **asked)
    service.memory.DeleteMemories(project=codex, ids=[LAMP])
    assert render(service, codex, 1, **given, **asked) == first
    assert {row.memory_id for row in first.decision.injections} == {LAMP, HARBOUR}
    assert first.rendering.HasField("receipt")
    assert first.rendering.HasField("intent")
