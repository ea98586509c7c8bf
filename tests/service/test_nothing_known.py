"""What is said where nothing stored answers, and small talk, which asks for nothing and is no memory."""

from __future__ import annotations

from typing import Any

import pytest

from hummock_client.v1 import context_service_pb2 as context
from hummock_client.v1 import memory_pb2, settings_pb2
from hummock_client.v1 import recall_pb2 as recall
from tests.service.calls import ask, change_settings, hummock, learn, memory_ids, render
from tests.service.conversing import learn_turn
from tests.service.inputs import fragment, note
from tests.service.running import Stubs

pytestmark = pytest.mark.storeless

STORED = "The kiln is fired with pine wood."
UNRELATED = "Who won the chess tournament in Reykjavik?"
LINE = {"en": "Nothing stored clearly answers this question.\n", "zh": "存储的记忆中没有明确回答这个问题的内容。\n"}
OTHERS = (
    "Wool is dyed in spring.",
    "The loom stands by the window.",
    "Indigo needs two baths.",
    "Thread is wound on Fridays.",
)
FORMS = [
    context.RENDER_FORM_CONTEXT,
    context.RENDER_FORM_WATERFALL,
    context.RENDER_FORM_INDEX,
    context.RENDER_FORM_MEMORIES,
    context.RENDER_FORM_MESSAGES,
]


def turn_of(form: context.RenderForm.ValueType) -> dict[str, context.PromptMessage]:
    """The message that a turn's form cannot do without."""
    if form != context.RENDER_FORM_MESSAGES:
        return {}
    return {"current": context.PromptMessage(role=context.PROMPT_ROLE_USER, content="?")}


@pytest.fixture
def pottery(service: Stubs, project: str) -> str:
    learn(service, project, note(STORED, id="kiln", title="Firing"), note("Glazes are mixed on Mondays.", id="glaze"))
    return project


def test_a_recall_that_finds_nothing_says_so_and_names_the_nearest(service: Stubs, pottery: str) -> None:
    found = ask(service, pottery, UNRELATED)
    known = found.nothing_known
    assert 0.5 < known.confidence <= 1
    assert known.nearest_id in {"kiln", "glaze"}
    assert known.nearest_title
    assert "similarity" in known.reason
    assert {hit.memory.id for hit in found.hits} == {"kiln", "glaze"}
    again = ask(service, pottery, UNRELATED)
    assert (again.receipt.cached, again.nothing_known) == (True, known)


def test_a_question_in_the_words_of_a_memory_is_answered_and_one_path_alone_tells_nothing(
    service: Stubs, pottery: str
) -> None:
    assert not ask(service, pottery, STORED).HasField("nothing_known")
    for path in (recall.RECALL_PATH_VECTOR, recall.RECALL_PATH_KEYWORD):
        assert not ask(service, pottery, UNRELATED, paths=[path]).HasField("nothing_known")


def test_a_project_without_memories_knows_nothing_and_its_prompt_stays_empty(service: Stubs, project: str) -> None:
    found = ask(service, project, UNRELATED, allow_missing=True)
    assert (found.nothing_known.confidence, found.nothing_known.nearest_id) == (1, "")
    rendered = render(service, project, UNRELATED, allow_missing=True)
    assert rendered.HasField("nothing_known")
    assert rendered.text == ""


@pytest.mark.parametrize("form", FORMS, ids=context.RenderForm.Name)
@pytest.mark.parametrize("locale", LINE)
def test_a_prompt_says_so_and_has_the_nearest_alone(
    service: Stubs, pottery: str, form: context.RenderForm.ValueType, locale: str
) -> None:
    learn(service, pottery, *map(note, OTHERS))
    rendered = render(service, pottery, UNRELATED, form=form, locale=locale, **turn_of(form))
    assert rendered.text.endswith(LINE[locale])
    assert 0 < rendered.token_count <= rendered.budget_tokens
    shown = {one.memory_id for one in rendered.memories if one.tier != context.TIER_DROPPED}
    # The nearest and the first of the order may be two.
    assert len(shown) <= 2
    dropped = [one for one in rendered.memories if one.tier == context.TIER_DROPPED]
    assert len(dropped) + len(shown) == len(OTHERS) + 2
    assert any("nothing stored bears on the query" in one.reason for one in dropped)


@pytest.mark.parametrize("form", FORMS, ids=context.RenderForm.Name)
def test_a_prompt_with_an_answer_has_no_such_line(
    service: Stubs, pottery: str, form: context.RenderForm.ValueType
) -> None:
    rendered = render(service, pottery, STORED, form=form, **turn_of(form))
    assert "fired with pine wood" in rendered.text
    assert LINE["en"] not in rendered.text
    assert not rendered.HasField("nothing_known")


def test_what_the_model_asked_to_read_and_the_literal_form_are_shown(service: Stubs, pottery: str) -> None:
    """S0-24. A caller who asks for the document's form to the letter gets its memories."""
    rendered = render(service, pottery, UNRELATED, read_ids=["glaze"])
    assert rendered.text.index("Mondays") < rendered.text.index(LINE["en"])
    rendered = render(service, pottery, UNRELATED, form=context.RENDER_FORM_CONTEXT, quotas={"text_characters": 500})
    assert rendered.HasField("nothing_known")
    assert LINE["en"] not in rendered.text
    assert STORED in rendered.text


def test_a_search_says_so_before_its_results(service: Stubs, pottery: str) -> None:
    learn(service, pottery, fragment("kiln.py", "fire", "def fire(kiln):\n    kiln.start()\n"))
    found = service.context.Search(context.SearchRequest(project=pottery, query_text=UNRELATED))
    assert found.nothing_known.nearest_id
    assert len(found.results) == 3
    assert found.text.startswith(LINE["en"])
    known = service.context.Search(context.SearchRequest(project=pottery, query_text=STORED))
    assert not known.HasField("nothing_known")
    assert LINE["en"] not in known.text


@pytest.mark.parametrize("command", ["recall", "render", "search"])
def test_the_command_line_names_the_nearest_memory(service: Stubs, pottery: str, command: str) -> None:
    said = hummock(service, command, UNRELATED, "--project", pottery)
    assert said.exit_code == 0
    assert "nothing known answers this (" in said.stderr
    assert "the nearest is " in said.stderr
    assert "nothing known" not in hummock(service, command, STORED, "--project", pottery).stderr


CREATED, SKIPPED = context.TURN_SIDE_STATUS_CREATED, context.TURN_SIDE_STATUS_SMALL_TALK


def said(toy: Stubs, project: str, user: str, answer: str, number: int = 1) -> context.LearnTurnResponse:
    """A turn of session s, which is created with the first one."""
    if number == 1:
        toy.session.CreateSession(project=project, id="s")
    return learn_turn(toy, project, "s", user, answer, ids=(f"u{number}", f"a{number}"))


@pytest.mark.parametrize(("user", "answer"), [("good morning!", "Hello you!"), ("今天好累", "抱抱，早点休息")])
def test_small_talk_is_a_message_and_no_memory(toy: Stubs, project: str, user: str, answer: str) -> None:
    reply = said(toy, project, user, answer)
    assert (reply.user.status, reply.user.memory_id) == (SKIPPED, "")
    assert memory_ids(toy, project) == [one for one in (reply.assistant.memory_id,) if one]
    messages = toy.session.ListMessages(project=project, session_id="s").messages
    assert [one.content for one in messages] == [user, answer]
    assert said(toy, project, user, answer, 2).user.status == SKIPPED


def test_each_side_is_judged_by_itself(toy: Stubs, project: str) -> None:
    reply = said(toy, project, "I am allergic to peanuts", "Thanks!")
    assert (reply.user.status, reply.assistant.status) == (CREATED, SKIPPED)
    reply = said(toy, project, "ok", "The pier closes at six in winter.", 2)
    assert (reply.user.status, reply.assistant.status) == (SKIPPED, CREATED)


def test_a_repeated_turn_is_told_the_same(toy: Stubs, project: str) -> None:
    first = said(toy, project, "good morning!", "The pier closes at six in winter.")
    again = learn_turn(toy, project, "s", "good morning!", "The pier closes at six in winter.", ids=("u1", "a1"))
    assert again.user.status == SKIPPED
    assert again.assistant.memory_id == first.assistant.memory_id


@pytest.mark.parametrize(
    ("question", "status"), [("Are you allergic to peanuts?", CREATED), ("How are you today?", SKIPPED)]
)
@pytest.mark.parametrize("is_appended", [False, True])
def test_what_answers_a_question_is_learnt(
    toy: Stubs, project: str, question: str, status: int, is_appended: bool
) -> None:
    said(toy, project, "Which snacks shall I buy?", question)
    if is_appended:
        toy.session.AppendMessage(
            project=project, session_id="s", id="u2", role=context.PROMPT_ROLE_USER, content="yes"
        )
    assert said(toy, project, "yes", "Noted, none of them.", 2).user.status == status


@pytest.mark.parametrize(
    ("question", "status"),
    [("Do we deploy on Fridays?", CREATED), ("周五可以部署吗？", CREATED), ("How are you?", SKIPPED)],
)
def test_a_mere_yes_of_the_model_is_learnt_where_it_answers(
    toy: Stubs, project: str, question: str, status: int
) -> None:
    assert said(toy, project, question, "No.").assistant.status == status


def test_a_project_may_keep_its_small_talk(toy: Stubs, project: str) -> None:
    change_settings(toy, project, "turns.small_talk", turns={"small_talk": settings_pb2.SMALL_TALK_POLICY_KEEP})
    reply = said(toy, project, "good morning!", "Hello you!")
    assert (reply.user.status, reply.assistant.status) == (CREATED, CREATED)
    assert len(memory_ids(toy, project)) == 2


TALK = ("ok thanks", "good morning", "早安", "哈哈哈", "你好呀", "继续")


def turn_rendered(toy: Stubs, project: str, text: str, form: Any, **more: Any) -> context.RenderResponse:
    asked = recall.RecallRequest(query_text=text, preset=recall.PRESET_CHAT, **more)
    current = None
    if form == context.RENDER_FORM_MESSAGES:
        current = context.PromptMessage(id="now", role=context.PROMPT_ROLE_USER, content=text)
    return toy.context.RenderTurn(
        render=context.RenderRequest(project=project, recall=asked, form=form, current=current), scope="s", turn=1
    ).rendering


@pytest.mark.parametrize("form", [context.RENDER_FORM_MEMORIES, context.RENDER_FORM_CONTEXT])
@pytest.mark.parametrize("text", TALK)
def test_small_talk_has_nothing_recalled_and_asks_nothing(toy: Stubs, project: str, text: str, form: Any) -> None:
    said(toy, project, "ok do that, five attempts and then the dead letter", "Done, it is good morning mail.")
    said(toy, project, "手术是几点？", "早上八点，继续观察", 2)
    said(toy, project, text, "The pier closes at six in winter.", 3)
    reply = turn_rendered(toy, project, text, form)
    assert reply.text == ""
    assert {one.reason for one in reply.memories} <= {"left out: nothing stored bears on the query"}


def test_small_talk_has_what_is_pinned_and_what_the_caller_asks_for(toy: Stubs, project: str) -> None:
    learn(toy, project, note("I am allergic to peanuts", pinned=True), note("ok means all knights"))
    memories = context.RENDER_FORM_MEMORIES
    text = turn_rendered(toy, project, "ok", memories).text
    assert "peanuts" in text
    assert "knights" not in text
    assert "clearly answers" not in text
    origins = memory_pb2.MemoryFilter(origins=[memory_pb2.ORIGIN_MANUAL])
    assert "knights" in turn_rendered(toy, project, "ok", memories, filter=origins).text
    assert "knights" in turn_rendered(toy, project, "ok knights", memories).text


def test_the_messages_of_small_talk_are_the_persona_and_the_text(toy: Stubs, project: str) -> None:
    learn(toy, project, note("早上八点做手术"))
    messages = turn_rendered(toy, project, "早安", context.RENDER_FORM_MESSAGES).messages
    assert [one.content for one in messages] == ["早安"]
