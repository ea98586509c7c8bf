"""Changes of a page that is open: it is never loaded again."""

from __future__ import annotations

from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from selenium.webdriver.common.keys import Keys

from bench.chromium import Window
from hummock_client.v1 import context_service_pb2 as context
from hummock_client.v1 import learning_service_pb2 as learning
from hummock_client.v1 import memory_pb2, recall_pb2
from hummock_client.v1 import memory_service_pb2 as memories
from tests.console.chromium.following import arrival, has_stayed, stay
from tests.service.calls import learn
from tests.service.conversing import create
from tests.service.inputs import note
from tests.service.running import Stubs

pytestmark = pytest.mark.long


def test_the_garden_shows_what_comes_and_goes(window: Window, origin: str, service: Stubs, project: str) -> None:
    learn(service, project, note("the lamp is lit", id="lamp", title="lamp"))
    window.open(f"{origin}/garden?project={project}")
    stay(window)
    arrived = arrival(window, "#memories [data-id=pier]")
    learn(service, project, note("the pier is closed", id="pier", title="pier"))
    assert "the pier is closed" in arrived()
    arrived = arrival(window, "#memories [data-id=lamp].new")
    changed = memory_pb2.Memory(id="lamp", content="the lamp is out")
    request = memories.UpdateMemoryRequest(project=project, memory=changed)
    request.update_mask.paths.append("content")
    service.memory.UpdateMemory(request)
    assert "the lamp is out" in arrived()
    arrived = arrival(window, "#memories [data-id=pier].gone")
    service.memory.DeleteMemories(memories.DeleteMemoriesRequest(project=project, ids=["pier"]))
    arrived()
    assert window.run("return document.querySelectorAll('#memories tr').length") == 2
    assert "3" in window.run("return document.getElementById('live').textContent")
    assert has_stayed(window)


def test_learning_shows_a_turn_when_it_was_counted(window: Window, origin: str, service: Stubs, project: str) -> None:
    entry = memory_pb2.Memory(
        id="entry", kind=memory_pb2.MEMORY_KIND_ENTRY, title="潮汐木芯", content="遇水不腐的硬木。"
    )
    learn(service, project, entry)
    create(service, project, "talk")
    service.learning.UpdateLearningSettings(learning.UpdateLearningSettingsRequest(project=project, enabled=True))
    window.open(f"{origin}/learning?{urlencode({'project': project, 'scope': 'talk'})}")
    stay(window)
    arrived = arrival(window, "#state meter")
    asked = context.RenderRequest(project=project, recall=recall_pb2.RecallRequest(query_text="潮汐木芯"))
    service.context.RenderTurn(context.RenderTurnRequest(render=asked, scope="talk", turn=1))
    arrived()
    assert "潮汐木芯" in window.run("return document.getElementById('state').textContent")
    assert has_stayed(window)


def test_the_star_map_asks_for_points_once_and_gets_new(
    window: Window, origin: str, service: Stubs, project: str
) -> None:
    learn(service, project, note("the lamp is lit", id="lamp", title="lamp"), note("潮汐木芯遇水不腐", id="core"))
    window.open(f"{origin}/map?{urlencode({'project': project})}")
    stay(window)
    arrived = arrival(window, "#map-legend li")
    arrived()
    # The page asks ahead of the script, which must find what came.
    asked = "return performance.getEntriesByType('resource').filter(({ name }) => name.includes('/map/stars')).length"
    assert window.run(asked) == 1
    before = window.run("return document.getElementById('map-status').textContent")
    window.run("document.querySelector('#map-legend li').className = 'old'")
    arrived = arrival(window, "#map-legend li:not(.old)")
    learn(service, project, note("the pier is closed", id="pier", title="pier"))
    arrived()
    assert window.run("return document.getElementById('map-status').textContent") != before
    assert has_stayed(window)


def test_operations_tell_the_state_anew_until_they_are_paused(window: Window, origin: str) -> None:
    window.open(f"{origin}/operations")
    stay(window)
    window.run("document.querySelector('#now h2').className = 'old'")
    arrival(window, "#now h2:not(.old)")()
    button = window.driver.find_element("css selector", "button[data-pause]")
    before = button.text
    button.click()
    assert button.text != before
    assert has_stayed(window)


def test_a_slider_answers_in_place(window: Window, origin: str, remembered: str) -> None:
    window.open(f"{origin}/ask?{urlencode({'project': remembered, 'q': 'settlement page dates'})}")
    stay(window)
    window.run("document.getElementById('results').firstElementChild.className = 'old'")
    window.run("document.querySelector('#min_similarity + input').focus()")
    arrived = arrival(window, "#results > :first-child:not(.old)")
    window.press(Keys.END)
    arrived()
    asked = parse_qs(urlsplit(window.driver.current_url).query)
    assert asked["min_similarity"] == ["1"]
    assert has_stayed(window)


def test_the_copy_button_copies_the_section(window: Window, origin: str, remembered: str) -> None:
    permissions = ["clipboardReadWrite", "clipboardSanitizedWrite"]
    window.command("Browser.grantPermissions", origin=origin, permissions=permissions)
    window.open(f"{origin}/prompt?{urlencode({'project': remembered, 'q': '还款方式', 'form': '1'})}")
    arrival(window, "button[data-copy]:not([hidden])")()
    window.driver.find_element("css selector", "button[data-copy]").click()
    copied = window.awaited("navigator.clipboard.readText()")
    assert copied == window.run("return document.getElementById('section-text').textContent")
    assert "等额本息" in copied
