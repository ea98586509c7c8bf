"""Questions of conversations: in prompts with their answers, and asked with what was said before where they need it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from hummock_client.v1 import context_service_pb2 as context
from hummock_client.v1 import memory_pb2, recall_pb2
from tests.service.calls import change_settings, learn
from tests.service.conversing import learn_turn
from tests.service.inputs import note
from tests.service.running import Stubs

pytestmark = pytest.mark.storeless

CHAT, AGENT = recall_pb2.PRESET_CHAT, recall_pb2.PRESET_AGENT
FORMS = (
    context.RENDER_FORM_CONTEXT,
    context.RENDER_FORM_WATERFALL,
    context.RENDER_FORM_INDEX,
    context.RENDER_FORM_MEMORIES,
)
USER, MODEL = memory_pb2.ORIGIN_USER_INPUT, memory_pb2.ORIGIN_AI_OUTPUT

# What is asked, and the turn that answers it, which shares no word with it.
TALKS = {
    "en": ("how long does the webhook wait", "How long does a webhook wait before it is tried again?", "An hour."),
    "zh": ("支付回调多久重试一次", "我们的支付回调失败后隔多久重试？", "每次翻一倍。"),
    "mixed": ("feature flag 在哪里", "我们的 feature flag 存在哪儿？", "In Consul, under flags/prod."),
    "a question within": ("where does Nora live", "Where does Nora live now? I must send a card.", "In Lisbon."),
}
WHERE = "Where do we keep the backup keys?"


@pytest.fixture
def session(toy: Stubs, project: str) -> str:
    toy.session.CreateSession(project=project, id="s")
    return project


def prompt(
    toy: Stubs,
    project: str,
    text: str,
    *,
    preset: Any = CHAT,
    form: Any = FORMS[0],
    budget: int | None = None,
    **more: Any,
) -> context.RenderResponse:
    recall = recall_pb2.RecallRequest(query_text=text, preset=preset, **more)
    request = context.RenderRequest(project=project, recall=recall, form=form, budget_tokens=budget)
    return toy.context.RenderTurn(render=request, scope="s", turn=1).rendering


def places(text: str, *parts: str) -> Sequence[int]:
    """Where each part stands in a text, -1 if it does not."""
    return [text.find(part) for part in parts]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("preset", [CHAT, AGENT])
@pytest.mark.parametrize("talk", TALKS)
def test_an_answer_stands_behind_its_question(toy: Stubs, session: str, talk: str, preset: int, form: int) -> None:
    asked, question, answer = TALKS[talk]
    learn_turn(toy, session, "s", "The pier closes at six in winter.", "It opens at nine.")
    learn_turn(toy, session, "s", question, answer)
    learn_turn(toy, session, "s", "The kitchen is painted green.", "That suits the tiles.")
    text = prompt(toy, session, asked, preset=preset, form=form).text
    (first, second) = places(text, question, answer)
    assert 0 <= first < second


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("budget", range(8, 260, 14))
def test_no_budget_leaves_a_question_without_its_answer(toy: Stubs, session: str, form: int, budget: int) -> None:
    """S2-12: where there is room for one of them only, it is the answer."""
    for number in range(4):
        learn_turn(toy, session, "s", f"Which colour has webhook number {number}?", f"Grey{number}, with a stripe.")
    rendered = prompt(toy, session, "webhook colour", form=form, budget=budget)
    for number in range(4):
        question, answer = places(rendered.text, f"webhook number {number}", f"Grey{number}")
        assert question < 0 or answer >= 0
    dropped = {one.memory_id for one in rendered.memories if one.tier == context.TIER_DROPPED}
    assert len(rendered.memories) == len({one.memory_id for one in rendered.memories}) == 8
    assert dropped or "number 3" in rendered.text


def test_room_for_one_is_the_answers(toy: Stubs, session: str) -> None:
    learn_turn(
        toy, session, "s", f"{WHERE} {'I have looked at every place that I know of. ' * 20}", "In the blue safe."
    )
    rendered = prompt(toy, session, "backup keys", form=context.RENDER_FORM_MEMORIES, budget=60)
    assert "In the blue safe." in rendered.text
    assert WHERE not in rendered.text
    assert [(one.tier, one.reason) for one in rendered.memories][1:] == [
        (context.TIER_DROPPED, "left out: there is room for its answer alone")
    ]


@pytest.mark.parametrize("preset", [CHAT, AGENT])
def test_a_short_answer_brings_its_question(toy: Stubs, session: str, preset: int) -> None:
    learn(
        toy,
        session,
        note("And who may log in there?", id="q", session_id="t", speaker="ada", origin=MODEL),
        note("Only the engineer on call.", id="a", session_id="t", speaker="bo", origin=USER),
    )
    assert places(prompt(toy, session, "engineer on call", preset=preset).text, "log in", "engineer")[0] >= 0


def test_a_long_answer_stands_by_itself(toy: Stubs, session: str) -> None:
    answer = "The lamp of the pier is lit at seven, since the ferry comes at eight. " * 8
    learn(
        toy,
        session,
        note("Shall I go on?", session_id="t", speaker="ada", origin=MODEL),
        note(answer, session_id="t", speaker="bo", origin=USER),
    )
    assert "Shall I go on?" not in prompt(toy, session, "lamp of the pier").text


def test_a_counter_question_lies_between(toy: Stubs, session: str) -> None:
    learn_turn(toy, session, "s", "What shall I cook on Saturday?", "For how many?")
    learn_turn(toy, session, "s", "For twelve guests.", "A pot of chickpea stew.")
    said = ("cook on Saturday", "For how many?", "twelve guests", "chickpea stew")
    found = places(prompt(toy, session, "what to cook on Saturday").text, *said)
    assert -1 not in found
    assert found == sorted(found)


def test_what_the_asker_adds_is_no_answer(toy: Stubs, session: str) -> None:
    said = [
        ("q", "ada", WHERE),
        ("more", "ada", "No hurry."),
        ("a", "bo", "In the blue safe."),
        ("b", "bo", "It rains."),
    ]
    learn(toy, session, *[note(text, id=one, session_id="t", speaker=who, origin=USER) for one, who, text in said])
    text = prompt(toy, session, "backup keys").text
    assert "blue safe" in text
    assert "It rains." not in text


@pytest.mark.parametrize("preset", [CHAT, AGENT])
@pytest.mark.parametrize("talk", TALKS)
def test_what_was_asked_before_in_the_same_words_is_answered(toy: Stubs, session: str, talk: str, preset: int) -> None:
    """S4-48 (T2): the question itself is an echo; its answer is not."""
    _, question, answer = TALKS[talk]
    learn_turn(toy, session, "s", question, answer)
    text = prompt(toy, session, question, preset=preset).text
    assert answer in text
    assert question not in text


@pytest.mark.parametrize("preset", [CHAT, AGENT])
@pytest.mark.parametrize(
    ("question", "old", "new"),
    [
        ("Who rules Mistport?", "Lord Harken rules Mistport.", "Ysolde rules Mistport now."),
        ("我的瑜伽课是什么时候？", "你的瑜伽课是周二晚上七点。", "我的瑜伽课改到周五晚上八点了。"),
    ],
)
def test_an_old_reply_to_the_same_words_stands_behind_what_was_told_since(
    toy: Stubs, session: str, question: str, old: str, new: str, preset: int
) -> None:
    """S4-48 (T2)."""
    june, august = (Timestamp(seconds=int(datetime(2026, month, 2, tzinfo=UTC).timestamp())) for month in (6, 8))
    learn_turn(toy, session, "s", question, old, at=june)
    assert old in prompt(toy, session, question, preset=preset).text
    learn(toy, session, note(new, origin=USER, create_time=august))
    now, then = places(prompt(toy, session, question, preset=preset).text, new, old)
    assert 0 <= now < then
    assert [one.content for one in toy.context.Search(project=session, query_text=question).results][:2] == [new, old]
    learn_turn(toy, session, "s", question, "As you told me.")
    again, now, then = places(prompt(toy, session, question, preset=preset).text, "As you told me.", new, old)
    assert 0 <= again < now < then


def test_an_answer_that_may_not_be_shown_is_not_brought(toy: Stubs, session: str) -> None:
    """1.1-10, S4-51, S4-53: by a filter, the order of one path, the project's origins, or because it is replaced."""
    learn(
        toy,
        session,
        note(WHERE, id="q", session_id="t", speaker="user", origin=USER),
        note("In the blue safe.", id="a", session_id="t", speaker="assistant", origin=MODEL),
    )
    filters: list[dict[str, Any]] = [{"origins": [USER]}, {"speakers": ["user"]}, {"excluded_ids": ["a"]}]
    withheld: list[dict[str, Any]] = [{"filter": one} for one in filters]
    for more in (*withheld, {"paths": [recall_pb2.RECALL_PATH_KEYWORD]}):
        text = prompt(toy, session, "backup keys", **more).text
        assert WHERE in text, more
        assert "blue safe" not in text, more
    for origins, is_shown in (([USER], False), ([USER, MODEL], True)):
        change_settings(toy, session, "chat.origins", chat={"origins": origins})
        assert ("blue safe" in prompt(toy, session, "backup keys").text) == is_shown
    learn(toy, session, note("The safe is grey now.", id="n", supersedes=["a"]))
    assert "blue safe" not in prompt(toy, session, "backup keys").text


@pytest.mark.parametrize("talk", TALKS)
def test_a_search_shows_an_answer_behind_its_question(toy: Stubs, session: str, talk: str) -> None:
    """S1-02, S1-11."""
    asked, question, answer = TALKS[talk]
    learn_turn(toy, session, "s", question, answer)
    for count, most in itertools.product(range(2), (1, 2, 10)):
        found = toy.context.Search(project=session, query_text=(asked, question)[count], top_k=most)
        shown = [one.content for one in found.results]
        assert len(shown) <= most
        assert answer in shown
        assert answer in found.text
    assert found.HasField("nothing_known") is False


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("budget", [86, 156, 184, 198, 240])
def test_a_stable_prefix_holds_no_question_alone(toy: Stubs, session: str, form: int, budget: int) -> None:
    """1.1-11."""
    for number in range(4):
        learn_turn(toy, session, "s", f"Which colour has webhook number {number}?", f"Grey{number}, with a stripe.")
    token = b""
    for number in (0, 1, 2, 3, 0):
        rendered = toy.context.Render(
            project=session,
            recall=recall_pb2.RecallRequest(query_text=f"webhook colour {number}", preset=CHAT),
            form=form,
            budget_tokens=budget,
            placement=context.PLACEMENT_TAIL,
            prefix_token=token,
            rebase=number == 2,
        )
        token = rendered.prefix.token
        for each in range(4):
            question, answer = places(rendered.text, f"webhook number {each}", f"Grey{each}")
            assert question < 0 or answer >= 0


CODE = recall_pb2.PRESET_CODE

# Facts of one kind about two subjects, what was asked before, and a question that fits both facts.
FOLLOW_UPS = {
    "en": (
        ("Luna is fed at the clinic on Hill Road.", "Biscuit is fed at the clinic on Harbour Street."),
        "How old is Biscuit?",
        "And where is he fed?",
    ),
    "zh": (
        ("旺财的疫苗是社区的流动车来打的。", "豆包的疫苗在长江路的安安宠物医院打。"),
        "豆包今年几岁了？",
        "那它的疫苗呢？",
    ),
    "mixed": (
        ("SearchGateway 的负责人是 Tomasz。", "CheckoutGateway 的负责人是 Priya。"),
        "CheckoutGateway 部署在哪里？",
        "它的负责人呢？",
    ),
}
BETWEEN = {"thanks between": ("谢谢", "Thanks!"), "nothing between": ()}


@pytest.fixture(params=FOLLOW_UPS)
def follow_up(request: pytest.FixtureRequest, toy: Stubs, project: str) -> tuple[str, str]:
    """The second fact, told first so that the other is the newer one, and the question that fits both."""
    (other, wanted), earlier, asks = FOLLOW_UPS[request.param]
    learn(toy, project, note(wanted, id="wanted"), note(other, id="other"))
    toy.session.CreateSession(project=project, id="s")
    learn_turn(toy, project, "s", earlier, "Let me see.")
    return asks, wanted


def recalled(toy: Stubs, project: str, text: str, session: str = "s", **more: Any) -> recall_pb2.RecallResponse:
    return toy.context.Recall(project=project, query_text=text, session_id=session, **{"preset": CHAT, **more})


def found(reply: recall_pb2.RecallResponse) -> list[str]:
    return [hit.memory.id for hit in reply.hits]


def is_joined(reply: recall_pb2.RecallResponse | context.RenderResponse) -> bool:
    return recall_pb2.RECALL_STAGE_FOLLOW_UP in [each.stage for each in reply.receipt.stages]


@pytest.mark.parametrize("preset", [CHAT, AGENT])
@pytest.mark.parametrize("between", BETWEEN.values(), ids=BETWEEN)
def test_it_is_about_what_was_asked_before(
    toy: Stubs, project: str, follow_up: tuple[str, str], preset: int, between: tuple[str, ...]
) -> None:
    """S1-21."""
    for said in between:
        learn_turn(toy, project, "s", said, "You are welcome.")
    reply = recalled(toy, project, follow_up[0], preset=preset)
    assert found(reply).index("wanted") < found(reply).index("other")
    assert is_joined(reply)


def test_the_turns_before_are_no_hits_and_may_be_the_requests(
    toy: Stubs, project: str, follow_up: tuple[str, str]
) -> None:
    hits = recalled(toy, project, follow_up[0], preset=AGENT).hits
    assert not [hit for hit in hits if hit.memory.origin == memory_pb2.ORIGIN_USER_INPUT]
    text, wanted = follow_up
    recall = recall_pb2.RecallRequest(query_text=text, preset=CHAT, session_id="s")
    assert wanted in toy.context.Render(project=project, recall=recall).text
    earlier = next(earlier for facts, earlier, _ in FOLLOW_UPS.values() if wanted in facts)
    said = [context.PromptMessage(role=context.PROMPT_ROLE_USER, content=each) for each in (earlier, text)]
    recall = recall_pb2.RecallRequest(query_text=text, preset=AGENT)
    request = context.RenderRequest(
        project=project, recall=recall, form=context.RENDER_FORM_MESSAGES, history=said[:1], current=said[1]
    )
    assert is_joined(toy.context.Render(request))


@pytest.mark.parametrize(
    ("text", "more"),
    [
        ("Where is Luna fed in winter, at the clinic?", {}),
        ("谢谢", {}),
        ("And where is he fed?", {"session": ""}),
        ("And where is he fed?", {"session": "another"}),
        ("And where is he fed?", {"preset": CODE}),
        ("And where is he fed?", {"paths": [recall_pb2.RECALL_PATH_KEYWORD]}),
    ],
    ids=["complete", "small talk", "no session", "another session", "code", "one path"],
)
def test_any_other_question_is_asked_once(
    toy: Stubs, project: str, follow_up: tuple[str, str], text: str, more: dict[str, Any]
) -> None:
    assert not is_joined(recalled(toy, project, text, **more))
