"""What is said where nothing stored answers: by a recall, a prompt, a search and the command line."""

from __future__ import annotations

import pytest

from hummock_client.v1 import context_service_pb2 as context
from hummock_client.v1 import recall_pb2 as recall
from tests.service.calls import ask, hummock, learn, render
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
