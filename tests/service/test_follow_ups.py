"""Questions of a conversation that depend on what its user said before: asked together with that, and only then."""

from __future__ import annotations

from typing import Any

import pytest

from hummock_client.v1 import context_service_pb2 as context
from hummock_client.v1 import memory_pb2, recall_pb2
from tests.service.calls import learn
from tests.service.conversing import learn_turn
from tests.service.inputs import note
from tests.service.running import Stubs

pytestmark = pytest.mark.storeless

AGENT, CHAT, CODE = recall_pb2.PRESET_AGENT, recall_pb2.PRESET_CHAT, recall_pb2.PRESET_CODE

# Facts of one kind about two subjects, what was asked before, and a question that fits both facts.
TALKS = {
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


@pytest.fixture(params=TALKS)
def talk(request: pytest.FixtureRequest, toy: Stubs, project: str) -> tuple[str, str]:
    """The second fact, told first so that the other is the newer one, and the question that fits both."""
    (other, wanted), earlier, asks = TALKS[request.param]
    learn(toy, project, note(wanted, id="wanted"), note(other, id="other"))
    toy.session.CreateSession(project=project, id="s")
    learn_turn(toy, project, "s", earlier, "Let me see.")
    return asks, wanted


def asked(toy: Stubs, project: str, text: str, session: str = "s", **more: Any) -> recall_pb2.RecallResponse:
    return toy.context.Recall(project=project, query_text=text, session_id=session, **{"preset": CHAT, **more})


def found(reply: recall_pb2.RecallResponse) -> list[str]:
    return [hit.memory.id for hit in reply.hits]


def is_joined(reply: recall_pb2.RecallResponse | context.RenderResponse) -> bool:
    return recall_pb2.RECALL_STAGE_FOLLOW_UP in [each.stage for each in reply.receipt.stages]


@pytest.mark.parametrize("preset", [CHAT, AGENT])
@pytest.mark.parametrize("between", BETWEEN.values(), ids=BETWEEN)
def test_it_is_about_what_was_asked_before(
    toy: Stubs, project: str, talk: tuple[str, str], preset: int, between: tuple[str, ...]
) -> None:
    """S1-21."""
    for said in between:
        learn_turn(toy, project, "s", said, "You are welcome.")
    reply = asked(toy, project, talk[0], preset=preset)
    assert found(reply).index("wanted") < found(reply).index("other")
    assert is_joined(reply)


def test_the_turns_before_are_no_hits_and_may_be_the_requests(toy: Stubs, project: str, talk: tuple[str, str]) -> None:
    hits = asked(toy, project, talk[0], preset=AGENT).hits
    assert not [hit for hit in hits if hit.memory.origin == memory_pb2.ORIGIN_USER_INPUT]
    text, wanted = talk
    recall = recall_pb2.RecallRequest(query_text=text, preset=CHAT, session_id="s")
    assert wanted in toy.context.Render(project=project, recall=recall).text
    earlier = next(earlier for facts, earlier, _ in TALKS.values() if wanted in facts)
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
    toy: Stubs, project: str, talk: tuple[str, str], text: str, more: dict[str, Any]
) -> None:
    assert not is_joined(asked(toy, project, text, **more))
