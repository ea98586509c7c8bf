"""Stored text, and text in an address, is shown as text by each page; none of it runs or becomes an element."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest

from bench.chromium import LANGUAGES, Window
from hummock_client.v1 import context_service_pb2 as context
from hummock_client.v1 import learning_service_pb2 as learning
from hummock_client.v1 import memory_pb2, recall_pb2
from tests.console.chromium.following import arrival, has_stayed, stay
from tests.console.test_pages import ORDER
from tests.service.calls import learn
from tests.service.conversing import create, learn_turn
from tests.service.inputs import domain, note, record
from tests.service.running import Stubs

pytestmark = pytest.mark.long

SCRIPT = "<script>window.ran = 'script'</script>"
MARKDOWN = (
    "# lighthouse\n</textarea></pre></title><script>window.ran = 'closed'</script>\n"
    "![x](x) <img src=x onerror=\"window.ran = 'img'\"> <svg onload=\"window.ran = 'svg'\"></svg>\n"
    "[open](javascript:window.ran='link') <a href=\"javascript:window.ran='a'\">open</a>\n"
    '<iframe src="javascript:parent.ran=1"></iframe> <iframe srcdoc="<script>parent.ran=1</script>"></iframe>\n'
    '<style>* { display: none }</style> " autofocus onfocus="window.ran = \'quote\'" x="'
)
ASKED = {"q": f"lighthouse {SCRIPT}"}
SHOWN: dict[str, tuple[dict[str, str], list[str]]] = {
    "/ask": ({**ASKED, "why": "entry", "compare": "1", "b_top_k": "50", "top_k": "50"}, [SCRIPT, MARKDOWN[:200]]),
    "/prompt?1": ({**ASKED, "form": "1", "before": SCRIPT, "budget_tokens": "9000"}, [SCRIPT, "<iframe src"]),
    "/prompt?2": ({**ASKED, "form": "2", "budget_tokens": "9000"}, [SCRIPT]),
    "/prompt?3": ({**ASKED, "form": "3", "budget_tokens": "9000"}, [SCRIPT]),
    "/prompt?4": ({**ASKED, "form": "4", "budget_tokens": "9000"}, [SCRIPT]),
    "/prompt?5": ({**ASKED, "form": "5", "budget_tokens": "9000"}, [SCRIPT]),
    "/garden": ({"contains": "lighthouse"}, [SCRIPT, "# lighthouse </textarea>"]),
    "/memory": ({"id": "note"}, [SCRIPT, MARKDOWN]),
    "/memory?e": ({"id": "entry"}, [SCRIPT, MARKDOWN]),
    "/memory?r": ({"id": "record"}, [SCRIPT, MARKDOWN]),
    "/review": ({}, [MARKDOWN]),
    "/sessions": ({}, [SCRIPT]),
    "/session": ({"id": "talk"}, [SCRIPT, MARKDOWN]),
    "/learning": ({"scope": "talk"}, [SCRIPT]),
}
_SEEN = """
const fields = [...document.querySelectorAll("main input, main textarea")].map(({ value }) => value);
for (const closed of document.querySelectorAll("main details")) closed.open = true;
return [document.querySelector("main").innerText, ...fields].join("\\n");
"""
_MADE = """
const odd = document.querySelectorAll(
  'main :is(script, img, iframe, style, object, embed, base, form[action^="javascript"], a[href^="javascript"])');
return [[...odd].map(each => each.outerHTML), window.ran ?? null, document.scripts.length];
"""

_BLOCKED = """
new Promise((done) => setInterval(() => {
  if (arguments[0].every((kind) => window.violations.some((each) => each.startsWith(kind)))) done();
}, 10))
"""


@pytest.fixture(scope="package")
def hostile(service: Stubs) -> str:
    """A project in which everything that may be stored tries to be more than text."""
    project = "hostile"
    detailed = record(f"lighthouse {SCRIPT}", MARKDOWN, "<b>a.py</b>", id="record")
    detailed.title = SCRIPT
    learn(
        service,
        project,
        note(MARKDOWN, id="note", title=SCRIPT, tags=["<b>tag</b>"], raw=MARKDOWN, metadata={"<i>key</i>": SCRIPT}),
        detailed,
        domain(f"lighthouse {SCRIPT}", MARKDOWN, aliases=("<b>pier</b>",)),
        memory_pb2.Memory(
            id="entry", kind=memory_pb2.MEMORY_KIND_ENTRY, title=f"lighthouse {SCRIPT}", content=MARKDOWN
        ),
        note(f"{ORDER} {MARKDOWN}", id="held", title=SCRIPT, origin=memory_pb2.ORIGIN_AI_OUTPUT),
    )
    create(service, project, "talk", title=SCRIPT)
    learn_turn(service, project, "talk", f"lighthouse {SCRIPT} {MARKDOWN}", MARKDOWN)
    service.learning.UpdateLearningSettings(learning.UpdateLearningSettingsRequest(project=project, enabled=True))
    asked = context.RenderRequest(project=project, recall=recall_pb2.RecallRequest(query_text=ASKED["q"]))
    service.context.RenderTurn(context.RenderTurnRequest(render=asked, scope="talk", turn=1))
    return project


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", SHOWN)
def test_hostile_memories_are_shown_as_text(
    window: Window, origin: str, hostile: str, name: str, language: str
) -> None:
    query, texts = SHOWN[name]
    window.speak(language)
    window.open(f"{origin}{name.partition('?')[0]}?{urlencode({'project': hostile, **query})}")
    assert window.run("return document.documentElement.lang") == language
    seen = evened(window.run(_SEEN))
    assert [text for text in texts if evened(text) not in seen] == []
    assert window.run(_MADE) == [[], None, 1]


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("/garden", {"contains": MARKDOWN[:200], "tag": SCRIPT}),
        ("/learning", {"scope": SCRIPT}),
        ("/memory", {"id": "note", "did": SCRIPT, "undo": SCRIPT}),
    ],
)
def test_nothing_of_an_address_becomes_a_part_of_a_page(
    window: Window, origin: str, hostile: str, path: str, query: dict[str, str]
) -> None:
    window.open(f"{origin}{path}?{urlencode({'project': hostile, **query})}")
    assert window.run(_MADE) == [[], None, 1]


def test_what_arrives_while_one_looks_is_text_too(window: Window, origin: str, service: Stubs, project: str) -> None:
    learn(service, project, note("something else"))
    window.open(f"{origin}/garden?project={project}")
    stay(window)
    arrived = arrival(window, "#memories [data-id=late]")
    learn(service, project, note(MARKDOWN, id="late", title=SCRIPT))
    arrived()
    assert SCRIPT in window.run(_SEEN)
    assert window.run(_MADE) == [[], None, 1]
    assert has_stayed(window)


def test_a_page_that_would_run_it_is_noticed(window: Window, origin: str, hostile: str) -> None:
    window.open(f"{origin}/garden?project={hostile}")
    window.run("document.querySelector('main').insertAdjacentHTML('beforeend', arguments[0])", MARKDOWN)
    odd, ran, _ = window.run(_MADE)
    # The policy of the page is the second wall: nothing has run even so.
    assert (len(odd), ran) == (6, None)
    window.awaited(_BLOCKED, ["script-src-attr blocked inline", "style-src-elem blocked inline"])
    assert len(window.complaints()) > 1
    window.open("about:blank")


def evened(text: str) -> str:
    """The text with white space normalised."""
    return " ".join(text.split())
