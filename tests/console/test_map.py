"""The star map: a page in both languages, its points as a browser gets them, what a question lights up, what comes."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from typing import Any

import pytest

from hummock_client.v1 import memory_pb2
from hummock_client.v1 import memory_service_pb2 as memory
from hummock_tools.console.view import STATIC
from tests.console.browser import Browser
from tests.service.calls import ask, learn
from tests.service.inputs import fragment, note
from tests.service.running import Stubs

HOSTILE = '<script>alert(1)</script> <img src=x onerror=alert(1)> " onmouseover="alert(1)'


@dataclass(frozen=True, slots=True)
class Star:
    """One point as it was sent."""

    x: float
    y: float
    is_placed: int
    kind: int
    origin: int
    time: int
    session: str


def points(rows: list[Any]) -> dict[str, Star]:
    """Points by their ids."""
    return {one: Star(*values) for one, *values in rows}


def map_of(browser: Browser, project: str) -> tuple[dict[str, int], dict[str, Star], str]:
    """The head of the map, its points, and its layout."""
    answer = browser.get("/map/stars", project=project)
    assert (answer.status, answer.headers["content-type"]) == (200, "application/x-ndjson")
    head, *parts = map(json.loads, answer.body.splitlines())
    found: dict[str, Star] = {}
    for part in parts:
        assert part["layout"]
        found |= points(part["stars"])
    return head, found, parts[-1]["layout"] if parts else ""


@pytest.fixture
def learnt(service: Stubs, project: str) -> str:
    learn(
        service,
        project,
        note("the settlement page takes ISO 8601 dates", id="dates", session_id="talk"),
        note("潮汐木芯遇水不腐", id="潮🌊", session_id="talk", origin=memory_pb2.ORIGIN_AI_OUTPUT),
        note(HOSTILE, id="hostile", title=HOSTILE),
        *(note(f"lamp {number} on the quay", id=f"lamp{number}") for number in range(6)),
    )
    return project


def test_the_page_says_in_words_what_the_map_shows(browser: Browser, learnt: str) -> None:
    page = browser.open("/map", project=learnt)
    assert (page.all("html")[0]["lang"], page.unlabelled()) == (browser.language, [])
    assert len(page.ids()) == len(set(page.ids()))
    assert [each["src"] for each in page.all("script")] == ["/static/console.js", "/static/map.js"]
    (canvas,) = page.all("canvas")
    assert canvas["tabindex"] == "0"
    assert "9" in canvas["aria-label"]
    assert any(f"kind={memory_pb2.MEMORY_KIND_NOTE}" in each for each in page.links("/garden"))
    (current,) = [each for each in page.all("a") if each.get("aria-current")]
    assert current["href"].startswith("/map?")
    (part,) = [each for each in page.all("div") if each.get("id") == "map-part"]
    assert set(json.loads(part["data-names"])) == {"kind", "origin", "age"}
    assert all(json.loads(part["data-said"]).values())


def test_without_a_script_the_question_is_asked_on_its_page(english: Browser, learnt: str) -> None:
    page = english.open("/map", project=learnt)
    (form,) = [each for each in page.all("form") if each.get("id") == "map-search"]
    assert (form["method"], form["action"]) == ("get", "/ask")
    assert "needs scripts" in page.text


def test_the_points_are_those_of_the_service(english: Browser, service: Stubs, learnt: str) -> None:
    head, found, _ = map_of(english, learnt)
    first, *parts = service.memory.MapMemories(memory.MapMemoriesRequest(project=learnt))
    assert head == {"seq": first.seq, "count": 9}
    assert list(found) == [one for part in parts for one in part.ids]
    (part,) = parts
    for place, star in enumerate(found.values()):
        assert (star.x, star.y) == (part.x[place], part.y[place])
        assert (star.kind, star.time) == (part.kinds[place], part.update_unix_s[place])
    assert {star.is_placed for star in found.values()} == {1}
    assert found["潮🌊"].session == found["dates"].session == "talk"
    assert (found["潮🌊"].origin, found["hostile"].session) == (memory_pb2.ORIGIN_AI_OUTPUT, "")


def test_an_unknown_project_has_no_map(english: Browser, project: str) -> None:
    for path in ("/map", "/map/stars", "/map/found", "/map/star"):
        answer = english.get(path, project=project, q="a lamp", id="a")
        assert answer.status == (200 if path == "/map/found" else 404), path


@pytest.mark.long
def test_a_question_lights_up_what_it_recalls_and_is_no_use(english: Browser, service: Stubs, learnt: str) -> None:
    learn(service, learnt, fragment("src/lamp.py", "light", "def light(lamp):\n    return lamp.light()"))
    before = map_of(english, learnt)[0]["seq"]
    answer = english.get("/map/found", project=learnt, q="lamp on the quay")
    found = json.loads(answer.body)
    expected = [hit.memory.id for hit in ask(service, learnt, "lamp on the quay", top_k=30).hits]
    assert [one["id"] for one in found] == expected
    assert found[0]["href"].startswith("/memory?")
    assert (english.get(found[0]["href"]).status, map_of(english, learnt)[0]["seq"]) == (200, before)


def test_a_star_tells_its_title_as_it_was_written(browser: Browser, learnt: str) -> None:
    answer = browser.get("/map/star", project=learnt, id="hostile")
    assert answer.headers["content-type"].startswith("application/json")
    one = json.loads(answer.body)
    assert one["title"] == HOSTILE
    assert {"en": "note", "zh": "笔记"}[browser.language] in one["facts"]


def test_what_is_learnt_comes_while_one_looks_and_what_goes_goes(english: Browser, service: Stubs, learnt: str) -> None:
    """S4-40."""
    head, found, layout = map_of(english, learnt)
    address = live_of(english, learnt, head["seq"], layout)
    with english.events(address) as events:
        assert next(events)[1] == "start"
        learn(service, learnt, note("a bell in the harbour", id="bell", session_id="later"))
        _, event, news = next(events)
        assert (event, news["gone"]) == ("events", [])
        ((name, bell),) = points(news["stars"]).items()
        assert (name, bell.session, bell.is_placed) == ("bell", "later", 1)
        assert (bell.kind, bell.origin) == (memory_pb2.MEMORY_KIND_NOTE, memory_pb2.ORIGIN_MANUAL)
        service.memory.DeleteMemories(memory.DeleteMemoriesRequest(project=learnt, ids=["dates"]))
        seq, _, news = next(events)
        assert news == {"stars": [], "gone": ["dates"]}
    _, after, _ = map_of(english, learnt)
    assert (after["bell"].x, after["bell"].y) == pytest.approx((bell.x, bell.y), abs=1e-5)
    assert (after["lamp1"].x, after["lamp1"].y) == pytest.approx((found["lamp1"].x, found["lamp1"].y), abs=1e-5)
    learn(service, learnt, note("a second bell", id="bell2"))
    with english.events(address, {"last-event-id": seq}) as events:
        assert (next(events)[1], list(points(next(events)[2]["stars"]))) == ("start", ["bell2"])


@pytest.mark.long
def test_a_map_that_was_laid_out_anew_is_loaded_anew(english: Browser, service: Stubs, learnt: str) -> None:
    head, _, layout = map_of(english, learnt)
    with english.events(live_of(english, learnt, head["seq"], layout)) as events:
        assert next(events)[1] == "start"
        learn(service, learnt, *(note(f"boat {number} in the bay", id=f"boat{number}") for number in range(7)))
        assert next(events)[1] == "reset"
    assert map_of(english, learnt)[2] != layout


def live_of(browser: Browser, project: str, seq: int, layout: str) -> str:
    """The address of what comes, as the page's script makes it."""
    page = browser.open("/map", project=project)
    (part,) = [each for each in page.all("div") if each.get("id") == "map-part"]
    return f"{part['data-live']}&after={seq}&layout={layout}"


def test_all_scripts_and_styles_together_are_small() -> None:
    sizes = [len(gzip.compress(path.read_bytes(), mtime=0)) for path in STATIC.iterdir()]
    assert sum(sizes) < 32 * 1024
    for path in STATIC.glob("*.js"):
        text = path.read_text("utf-8")
        assert "http://" not in text
        assert "https://" not in text
        assert "eval(" not in text


@pytest.mark.long
def test_a_console_whose_service_is_away_says_so(stranded: Browser) -> None:
    assert stranded.get("/map/stars", project="p").status == 503
