"""Violations that axe-core, a checker of accessibility, finds on each page in both languages and colours."""

from __future__ import annotations

from typing import Any

import pytest

from bench.chromium import LANGUAGES, Window
from tests.console.test_pages import PAGES

pytestmark = pytest.mark.long

_RUN = "axe.run(document, { preload: false, iframes: false, resultTypes: ['violations'], ...arguments[0] })"
_COLOURS = {"runOnly": ["color-contrast", "link-in-text-block"]}
"""Rules whose result can differ in the dark."""


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", PAGES)
def test_no_page_has_a_serious_barrier_in_the_light_or_in_the_dark(
    window: Window, pages: dict[str, str], axe: str, name: str, language: str
) -> None:
    window.speak(language)
    window.open(pages[name])
    assert window.run("return document.documentElement.lang") == language
    window.command("Runtime.evaluate", expression=axe)
    assert barriers(window, {}) == []
    window.paint("dark")
    assert barriers(window, _COLOURS) == []


def test_a_barrier_is_noticed(window: Window, pages: dict[str, str], axe: str) -> None:
    window.open(pages["/ask"])
    window.run("for (const label of document.querySelectorAll('label')) label.remove()")
    window.run("document.querySelector('main').style.setProperty('--quiet', '#ccc')")
    window.command("Runtime.evaluate", expression=axe)
    assert {each.partition(":")[0] for each in barriers(window, {})} >= {"color-contrast", "label"}


def barriers(window: Window, options: dict[str, Any]) -> list[str]:
    """Rules that are broken in a serious way, and where; axe-core is in the page."""
    found = window.awaited(_RUN, options)
    return [
        f"{one['id']}: {node['target']} {node['failureSummary']}"
        for one in found["violations"]
        if one["impact"] in {"serious", "critical"}
        for node in one["nodes"]
    ]
