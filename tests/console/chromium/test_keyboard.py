"""Keys alone: each link, button and field is reached in the order in which it is read, seen, and used."""

from __future__ import annotations

from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from selenium.webdriver.common.keys import Keys

from bench.chromium import Window
from hummock_client.v1 import memory_pb2
from hummock_client.v1 import memory_service_pb2 as memories
from tests.console.test_pages import PAGES
from tests.service.calls import learn
from tests.service.inputs import note
from tests.service.running import Stubs

pytestmark = pytest.mark.long

_OPERABLE = """
window.operable = () => [...document.querySelectorAll(
  'a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex="0"]')]
  .filter((each) => each.checkVisibility() && !each.disabled);
// Where it stands: a part that is shown anew meanwhile has other elements in the same places.
window.placeOf = (each) => each.parentElement
  ? `${placeOf(each.parentElement)}/${[...each.parentElement.children].indexOf(each)}` : "";
"""
_FOLLOW = (
    _OPERABLE
    + """
document.activeElement.blur();
window.reached = [];
addEventListener("keyup", ({ key }) => {
  const at = document.activeElement;
  if (key !== "Tab" || at === document.body) return;
  const { outlineStyle, outlineWidth } = getComputedStyle(at);
  const { top, left, bottom, right, width, height } = at.getBoundingClientRect();
  const inside = width > 0 && height > 0 && top < innerHeight && left < innerWidth && bottom > 0 && right > 0;
  window.reached.push([placeOf(at), inside && outlineStyle !== "none" && parseFloat(outlineWidth) >= 2]);
});
return window.operable().length;
"""
)
_MISSED = """
const all = window.operable(), places = all.map(placeOf);
const told = (place) => all[places.indexOf(place)]?.outerHTML.slice(0, 120) ?? place;
const order = [...new Set(window.reached.map(([place]) => place))].filter((place) => places.includes(place));
const inOrder = places.filter((place) => order.includes(place));
return {
  never: places.filter((place) => !order.includes(place)).map(told),
  astray: order.filter((place, at) => place !== inOrder[at]).map(told),
  unseen: window.reached.filter(([, seen]) => !seen).map(([place]) => told(place)),
};
"""
_CLOSED = "return window.operable().map((each, place) => each.matches('details:not([open]) > summary') ? place : -1)"


@pytest.mark.parametrize("name", PAGES)
def test_tab_reaches_all_of_a_page_in_order_and_in_sight(window: Window, pages: dict[str, str], name: str) -> None:
    window.open(pages[name])
    count = window.run(_FOLLOW)
    window.press(*[Keys.TAB] * count)
    assert window.run(_MISSED) == {"never": [], "astray": [], "unseen": []}
    # From the last one backwards, so that those before it stay where they are.
    for place in sorted((each for each in window.run(_CLOSED) if each >= 0), reverse=True):
        walk(window, "return window.operable()[arguments[0]]", place)
        window.press(Keys.ENTER)
    assert max(window.run(_CLOSED)) == -1
    window.run("document.querySelector('.skip').focus({ focusVisible: true }); window.reached = []")
    window.press(Keys.SHIFT + Keys.TAB + Keys.SHIFT, *[Keys.TAB] * window.run("return window.operable().length"))
    assert window.run(_MISSED)["never"] == []


def test_the_first_key_leads_past_the_head_of_a_page(window: Window, pages: dict[str, str]) -> None:
    window.open(pages["/ask"])
    window.press(Keys.TAB, Keys.ENTER)
    assert window.run("return location.hash") == "#main"
    window.press(Keys.TAB)
    assert window.run("return document.activeElement.id") == "q"


FORMS = {
    ("/", "open"): "remembered",
    ("/ask", "q"): "dates",
    ("/ask?q", "why"): "",
    ("/ask?q", "top_k"): "",
    ("/prompt", "q"): "还款",
    ("/prompt?1", "before"): "dates",
    ("/garden", "contains"): "ISO",
    ("/garden", "tag"): "dates",
    ("/memory?r", "q"): "还款",
    ("/learning", "scope"): "",
    ("/learning", "high_above"): "9",
}


@pytest.mark.parametrize(("name", "field"), FORMS)
def test_a_form_is_sent_by_enter(window: Window, pages: dict[str, str], name: str, field: str) -> None:
    window.open(pages[name])
    window.run(_OPERABLE)
    walk(window, "return document.getElementById(arguments[0])", field)
    with window.leaving():
        window.press(FORMS[name, field], Keys.ENTER)
    sent = parse_qs(urlsplit(window.driver.current_url).query)
    assert FORMS[name, field] in sent["project" if field == "open" else field][0]


def test_a_round_by_keys_ask_open_edit_save_undo(window: Window, origin: str, service: Stubs, project: str) -> None:
    before = note("the lighthouse opens at nine", id="light", title="lighthouse")
    learn(service, project, before, note("the harbour is closed in winter", id="harbour"))
    window.open(f"{origin}/ask?project={project}")
    window.chord(Keys.CONTROL, "k")
    with window.leaving():
        window.press("when does the lighthouse open?", Keys.ENTER)
    follow(window, "#results .hits a")
    assert parse_qs(urlsplit(window.driver.current_url).query)["id"] == ["light"]
    enter(window, "#f-content", "the lighthouse opens at ten")
    follow(window, "form[action='/memory/edit'] button")
    assert stored(service, project).content == "the lighthouse opens at ten"
    follow(window, "form[data-undo] button")
    assert (stored(service, project).content, stored(service, project).title) == (before.content, before.title)


def test_a_memory_is_added_deleted_and_back_by_keys(window: Window, origin: str, service: Stubs, project: str) -> None:
    learn(service, project, note("something else", id="other"))
    window.open(f"{origin}/garden?project={project}")
    follow(window, f"a.button[href^='/memory/new?{urlencode({'project': project})}']")
    enter(window, "#f-content", "潮汐木芯在退潮时发光")
    enter(window, "#f-title", "潮汐木芯")
    with window.leaving():
        window.press(Keys.ENTER)
    (added,) = (one for one in listed(service, project) if one.id != "other")
    assert (added.title, added.origin) == ("潮汐木芯", memory_pb2.ORIGIN_MANUAL)
    follow(window, "button.danger")
    assert [one.id for one in listed(service, project)] == ["other"]
    with window.leaving():
        window.chord(Keys.CONTROL, "z")
    assert {one.id for one in listed(service, project)} == {"other", added.id}


def test_the_language_is_switched_by_keys(window: Window, pages: dict[str, str]) -> None:
    window.open(pages["/garden"])
    follow(window, ".language button")
    assert (window.run("return document.documentElement.lang"), window.driver.current_url) == ("zh", pages["/garden"])


def walk(window: Window, finds: str, *arguments: object) -> None:
    """Tabs, from the start of the page, to what a function finds."""
    place = window.run(
        f"""
        document.activeElement.blur();
        getSelection().removeAllRanges();
        const found = (() => {{ {finds} }})();
        document.querySelector(".skip").focus();
        return window.operable().indexOf(found);
        """,
        *arguments,
    )
    assert place >= 0, "it is not there, or not to be reached"
    window.press(*[Keys.TAB] * place)


def follow(window: Window, selector: str) -> None:
    """Goes to a link or a button, and presses Enter there, which leads to another page."""
    window.run(_OPERABLE)
    walk(window, "return document.querySelector(arguments[0])", selector)
    with window.leaving():
        window.press(Keys.ENTER)


def enter(window: Window, selector: str, text: str) -> None:
    """Goes to a field and writes over what it holds."""
    window.run(_OPERABLE)
    walk(window, "return document.querySelector(arguments[0])", selector)
    window.chord(Keys.CONTROL, "a")
    window.press(text)


def stored(service: Stubs, project: str) -> memory_pb2.Memory:
    request = memories.GetMemoryRequest(project=project, id="light", view=memory_pb2.MEMORY_VIEW_FULL)
    return service.memory.GetMemory(request).memory


def listed(service: Stubs, project: str) -> list[memory_pb2.Memory]:
    return list(service.memory.ListMemories(memories.ListMemoriesRequest(project=project)).memories)
