"""Waiting for what a page becomes without being loaded again."""

from __future__ import annotations

from collections.abc import Callable

from bench.chromium import Window

_ARRIVAL = """
window.arrived = new Promise((done) => {
  const look = () => { const found = document.querySelector(arguments[0]); if (found) done(found.textContent); };
  new MutationObserver(look).observe(document.body, { attributes: true, childList: true, subtree: true });
  look();
});
"""


def arrival(window: Window, selector: str) -> Callable[[], str]:
    """Waits, once called, until an element is there, by the page's own events; its text."""
    window.run(_ARRIVAL, selector)
    return lambda: str(window.awaited("window.arrived"))


def stay(window: Window) -> None:
    """Marks the page that is open."""
    window.run("window.stays = true")


def has_stayed(window: Window) -> bool:
    """True if the page is still the one that was marked."""
    return bool(window.run("return window.stays === true"))
