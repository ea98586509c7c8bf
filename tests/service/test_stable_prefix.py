"""A prompt whose beginning stays the same from turn to turn, over gRPC (1.1-11)."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise

import grpc
import pytest

from hummock_client.v1 import context_service_pb2 as context
from hummock_client.v1 import recall_pb2 as recall
from tests.service.calls import failure, learn, render
from tests.service.inputs import note, record
from tests.service.running import Stubs

pytestmark = pytest.mark.storeless

THINGS = "installment rounding currency ledger invoice refund interest calendar contract audit".split()  # noqa: SIM905 - reads as words
ASPECTS = ("limit", "owner", "format", "deadline", "exception", "history")
TURNS = 50
WRITE_TURNS = range(4, 50, 5)


def text_of(thing: str, aspect: str) -> str:
    return (
        f"The {aspect} of the {thing} was agreed with the accounting team: the {thing} service keeps its {aspect} "
        f"in one table, and a change of the {aspect} needs a review by whoever owns the {thing}."
    )


def fill(service: Stubs, project: str) -> None:
    known = [note(text_of(thing, aspect), id=f"{thing}.{aspect}") for thing in THINGS for aspect in ASPECTS]
    learn(service, project, *known)


def write(service: Stubs, project: str, turn: int) -> None:
    """Something new; once a memory of the first turn is changed, once another is removed."""
    if turn == WRITE_TURNS[4]:
        learn(service, project, note("The installment has no limit any more.", id="installment.limit"))
    elif turn == WRITE_TURNS[6]:
        service.memory.DeleteMemories(project=project, ids=["audit.exception"])
    else:
        learn(service, project, note(f"The {THINGS[turn % 10]} has a new owner since turn {turn}: team {turn}."))


def question(turn: int) -> str:
    """Question of a turn: a conversation stays with a few things and comes back to them."""
    thing = THINGS[(turn * 3) % 4 if turn % 5 else (turn // 5) % len(THINGS)]
    return f"What is the {ASPECTS[turn % len(ASPECTS)]} of the {thing}?"


@dataclass
class Conversation:
    """A caller that brings the prefix token back and lays the prefix out anew when that is advised."""

    service: Stubs
    project: str
    form: context.RenderForm.ValueType = context.RENDER_FORM_WATERFALL
    last: context.RenderResponse | None = None

    def turn(self, text: str, *, rebase: bool = False) -> context.RenderResponse:
        prefix = self.last.prefix if self.last else context.StablePrefix()
        self.last = self.service.context.Render(
            project=self.project,
            recall=recall.RecallRequest(query_text=text, preset=recall.PRESET_AGENT),
            form=self.form,
            placement=context.PLACEMENT_TAIL,
            prefix_token=prefix.token,
            rebase=rebase or prefix.rebase_advised,
        )
        return self.last


@pytest.fixture(scope="module")
def stocked(service: Stubs) -> tuple[Stubs, str]:
    fill(service, "stocked")
    return service, "stocked"


@pytest.mark.long
def test_over_50_turns_and_10_writes_the_prefix_stays_and_holds_most_tokens(service: Stubs, project: str) -> None:
    """1.1-11: the bytes of the prefix are the same in at least 95 % of turns and hold at least 60 % of all tokens."""
    fill(service, project)
    conversation = Conversation(service, project)
    prefixes, prefix_tokens, all_tokens = [], 0, 0
    assert len(WRITE_TURNS) == 10
    for turn in range(TURNS):
        if turn in WRITE_TURNS:
            write(service, project, turn)
        rendered = conversation.turn(question(turn))
        assert rendered.text.startswith(rendered.prefix.text)
        assert rendered.token_count <= rendered.budget_tokens
        assert rendered.prefix.sha256 == sha256(rendered.prefix.text.encode()).hexdigest()
        prefixes.append(rendered.prefix.text)
        prefix_tokens += rendered.prefix.token_count
        all_tokens += rendered.token_count
    same = sum(one == other for one, other in pairwise(prefixes))
    assert same / (TURNS - 1) >= 0.95
    assert prefix_tokens / all_tokens >= 0.6


@pytest.mark.parametrize("form", ["CONTEXT", "WATERFALL", "INDEX", "MEMORIES"])
def test_no_memory_is_said_twice_in_prefix_and_tail(stocked: tuple[Stubs, str], form: str) -> None:
    conversation = Conversation(*stocked, form=context.RenderForm.Value(f"RENDER_FORM_{form}"))
    first = conversation.turn(question(0))
    for turn in (7, 11):
        rendered = conversation.turn(question(turn))
        assert rendered.prefix.text == first.prefix.text != ""
        shown = [one.memory_id for one in rendered.memories if one.tier != context.TIER_DROPPED]
        assert len(shown) == len(set(shown))
        assert rendered.token_count <= rendered.budget_tokens


@pytest.mark.long
def test_the_best_memory_of_a_turn_is_always_in_the_text(stocked: tuple[Stubs, str]) -> None:
    """S2-10."""
    conversation = Conversation(*stocked)
    for turn in range(12):
        rendered = conversation.turn(question(turn))
        best = max(rendered.memories, key=lambda one: one.score)
        assert best.tier == context.TIER_FULL


@pytest.mark.long
def test_the_prefix_has_a_changed_memory_as_it_is_and_no_deleted_one(service: Stubs, project: str) -> None:
    """1.1-11, S2-04. What was removed is rendered nowhere."""
    fill(service, project)
    conversation = Conversation(service, project)
    changed = conversation.turn(question(0)).memories[0].memory_id
    learn(service, project, note("It was settled anew, by a vote.", id=changed))
    second = conversation.turn(question(0))
    assert "It was settled anew, by a vote." in second.prefix.text
    assert conversation.turn(question(1)).prefix.text == second.prefix.text
    first = conversation.turn(question(0))
    gone, stays = (one.memory_id for one in first.memories[:2])
    service.memory.DeleteMemories(project=project, ids=[gone])
    second = conversation.turn(question(0))
    assert f'id="{gone}"' not in second.text
    assert f'id="{stays}"' in second.prefix.text
    assert conversation.turn(question(1)).prefix.text == second.prefix.text


def test_a_caller_that_rebases_gets_what_the_turns_have_recalled_most(stocked: tuple[Stubs, str]) -> None:
    conversation = Conversation(*stocked)
    first = conversation.turn(question(0))
    for turn in (1, 2, 3):
        conversation.turn(question(turn))
    rebased = conversation.turn(question(4), rebase=True)
    assert rebased.prefix.text != first.prefix.text
    assert rebased.prefix.token_count > first.prefix.token_count


def test_a_smaller_budget_takes_from_the_prefix_which_keeps_its_language(stocked: tuple[Stubs, str]) -> None:
    """1.1-11, S2-08, S0-21."""
    service, project = stocked
    first = Conversation(service, project).turn(question(0))
    tail = {"form": context.RENDER_FORM_WATERFALL, "placement": context.PLACEMENT_TAIL}
    rendered = render(service, project, question(9), prefix_token=first.prefix.token, budget_tokens=260, **tail)
    assert rendered.token_count <= 260
    assert not rendered.over_budget
    conversation = Conversation(*stocked, form=context.RENDER_FORM_CONTEXT)
    first = conversation.turn(question(0))
    assert "## Memories" in first.prefix.text
    assert conversation.turn("还款的期限是多少？").prefix.text == first.prefix.text


@pytest.mark.long
def test_of_a_chat_the_stable_memories_stand_before_the_history_and_the_others_behind(
    service: Stubs, project: str
) -> None:
    """1.1-11, S4-35."""
    fill(service, project)
    history = [context.PromptMessage(id="1", role=context.PROMPT_ROLE_USER, content="Hello")]
    request = context.RenderRequest(
        project=project,
        recall=recall.RecallRequest(query_text=question(0)),
        form=context.RENDER_FORM_MESSAGES,
        prompt="You are Ann.",
        history=history,
        current=context.PromptMessage(id="2", role=context.PROMPT_ROLE_USER, content=question(0)),
        placement=context.PLACEMENT_TAIL,
    )
    first = service.context.Render(request)
    assert [one.content for one in first.messages] == ["You are Ann.", first.prefix.text, "Hello", question(0)]
    request.prefix_token = first.prefix.token
    request.recall.query_text = request.current.content = question(3)
    second = service.context.Render(request)
    tail = second.text.removeprefix(first.prefix.text)
    assert tail.startswith("Relevant Memories (for reference):\n")
    assert [one.content for one in second.messages] == ["You are Ann.", first.prefix.text, "Hello", tail, question(3)]


def test_records_in_the_prefix_have_no_relevance_of_a_single_turn(service: Stubs, project: str) -> None:
    """S0-23, 1.1-11."""
    learn(service, project, record("还款方式有哪些？", "三种。"), record("提前还款收费吗？", "不收。"))
    conversation = Conversation(service, project, form=context.RENDER_FORM_CONTEXT)
    first = conversation.turn("还款方式")
    assert "相关度" not in first.prefix.text
    assert conversation.turn("提前还款").prefix.text == first.prefix.text


@pytest.mark.parametrize("token", [b"not a token", b"\x00" * 4])
def test_a_token_that_is_none_is_refused(service: Stubs, project: str, token: bytes) -> None:
    refused = failure(render, service, project, "x y z", placement=context.PLACEMENT_TAIL, prefix_token=token)
    assert refused.code is grpc.StatusCode.INVALID_ARGUMENT
    assert "prefix_token" in refused.message


def test_a_token_of_another_project_is_refused(stocked: tuple[Stubs, str], project: str) -> None:
    service, _ = stocked
    other = Conversation(*stocked).turn(question(0))
    with pytest.raises(grpc.RpcError, match="prefix_token"):
        Conversation(service, project, last=other).turn(question(1))
