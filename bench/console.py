"""Part `console`: what the console costs a recall, and how soon its pages are there.

Pages are looked at with Debian's Chromium on the same cores, its own time included.
"""

from __future__ import annotations

import gzip
import time
from collections.abc import Sequence
from statistics import median
from urllib.parse import urlencode

import grpc

from bench.access import caller, in_turns
from bench.asking import LEARN, TAG, WARM_UP_CALLS, Latency, recall_messages
from bench.chromium import PACKAGES, Window, chromium, missing_programs
from bench.command import Options
from bench.corpus import Corpus
from bench.report import Findings, Row
from bench.service import console_at
from bench.stores import A, B, Setting
from hummock_client.v1 import context_service_pb2 as pb
from hummock_tools.console.view import STATIC

PART = "console"
_COST_LIMIT, _PAGE_LIMIT_MS, _LIVE_LIMIT_MS, _SIZE_LIMIT_KB = 3.0, 1000.0, 500.0, 300.0
_STARS_LIMIT_MS, _LEAST_FRAMES, _FRAMES_MS = 2000.0, 30.0, 3000
_MOVES = (("ArrowLeft", "ArrowRight"), ("+", "-"))
_ONE = Setting(name="console", memories=A.memories // A.projects, projects=1)
_OPENED, _CHANGES, _CALL_S = 5, 40, 60.0
_COST = (
    "one project of A: recall over gRPC, one client; what metrics and a console that is looked at add, in turns, p50"
)
_QUESTION = "why does the snapshot depend on the gateway?"
PAGES = {
    "garden": ("/garden", {}),
    "ask": ("/ask", {"q": _QUESTION}),
    "prompt": ("/prompt", {"q": _QUESTION}),
    "projects": ("/", {}),
}
"""Path and query of the pages that are timed, by their names in the figures; the first is opened before all others."""

_PAINTED = """
new Promise((done) => new PerformanceObserver((list) => {
  for (const { name, startTime } of list.getEntries()) if (name === "first-contentful-paint") done(startTime);
}).observe({ type: "paint", buffered: true }))
"""
_EXPECT = """
const rows = document.getElementById("memories");
window.appeared = new Promise((done) => new MutationObserver((_, observer) => {
  if (![...rows.children].some(({ dataset }) => dataset.id === arguments[0])) return;
  observer.disconnect();
  requestAnimationFrame(() => done(Date.now()));
}).observe(rows, { childList: true }));
"""

_FIRST_STARS = """
new Promise((done) => new PerformanceObserver((list) => {
  const [{ startTime }] = list.getEntriesByName("hummock-map-part");
  requestAnimationFrame(() => done(Math.max(startTime, performance.now())));
}).observe({ type: "mark", buffered: true }))
"""
_ALL_STARS = """
new Promise((done) => new PerformanceObserver((list) => {
  for (const { name, startTime } of list.getEntries()) if (name === "hummock-map-whole") done(startTime);
}).observe({ type: "mark", buffered: true }))
"""
_FRAMES = """
new Promise((done) => {
  const canvas = document.getElementById("map");
  const began = performance.now();
  let frames = 0;
  const next = () => {
    const passed = performance.now() - began;
    if (passed > arguments[2]) return done(1000 * frames / passed);
    canvas.dispatchEvent(new KeyboardEvent("keydown", { key: arguments[(frames >> 3) % 2] }));
    frames += 1;
    requestAnimationFrame(next);
  };
  requestAnimationFrame(next);
})
"""
"""Frames a second while two keys take turns, eight frames each, for so many milliseconds."""


def measure(options: Options) -> Findings:
    """Its cost and its pages; without Chromium the size of what is loaded alone."""
    rows = [_size()]
    if missing := missing_programs():
        said = f"the console: {' and '.join(missing)} missing, of Debian's {PACKAGES}"
        return Findings(part=PART, rows=tuple(rows), skipped=(said,))
    cost, figures = _cost(options)
    pages, of_pages = _pages(options)
    stars, of_stars = _stars(options)
    return Findings(
        part=PART,
        rows=(cost, *pages, *stars, *rows),
        figures=(*figures, *of_pages, *of_stars),
        not_measured=("a browser on another machine", "pages of a project that a model must embed a question for"),
    )


def _cost(options: Options) -> tuple[Row, Sequence[tuple[str, str]]]:
    """Measures one store behind a bare service, and behind one with metrics whose console shows two live pages."""
    filled = options.stores.filled(_ONE)
    asked = recall_messages(filled.corpus, range(options.queries + WARM_UP_CALLS), TAG)
    with filled.copied() as copied:
        with (copied.bench.directory / "hummock.toml").open("a", encoding="utf-8") as settings:
            settings.write("metrics_port = 0\n")
        with (
            filled.bench.serving() as plain,
            copied.bench.serving() as seen,
            console_at(seen.target) as origin,
            chromium() as window,
        ):
            window.open(_address(origin, filled.corpus, "/garden", {}))
            # A page in the background keeps its stream; the one in front asks every two seconds.
            window.driver.switch_to.new_window("tab")
            window.open(f"{origin}/operations")
            found = in_turns(caller(plain.channel), caller(seen.channel), asked)
    figures = (
        ("bare", Latency.of(found.plain_s).line()),
        ("with metrics and a console", Latency.of(found.guarded_s).line()),
    )
    return Row.at_most(_COST, _COST_LIMIT, found.added_percent, "%"), figures


def _pages(options: Options) -> tuple[Sequence[Row], Sequence[tuple[str, str]]]:
    """Pages of a project of 100,000 memories, on a copy, to which memories are added."""
    with (
        options.stores.filled(B).copied() as filled,
        filled.bench.serving() as service,
        console_at(service.target) as origin,
        chromium() as window,
    ):
        first_ms = 0.0
        figures = []
        for name, (path, query) in PAGES.items():
            times_ms = [_opened(window, _address(origin, filled.corpus, path, query)) for _ in range(_OPENED)]
            first_ms = first_ms or times_ms[0]
            figures.append((f"{name}, painted", f"first {times_ms[0]:.0f}, then {median(times_ms[1:]):.0f} ms"))
        window.open(_address(origin, filled.corpus, "/garden", {}))
        changes = Latency.of([_appeared_s(window, service.channel, filled.corpus, n) for n in range(_CHANGES)])
    what = "B: the garden"
    return (
        Row.at_most(f"{what}, first page after the start, painted", _PAGE_LIMIT_MS, first_ms, "ms"),
        Row.at_most(f"{what}: a memory that is learnt is seen, p95", _LIVE_LIMIT_MS, changes.p95_ms, "ms"),
    ), (*figures, ("from Learn to the frame that shows it", changes.line()))


def _stars(options: Options) -> tuple[Sequence[Row], Sequence[tuple[str, str]]]:
    """The star map of as many, the first thing that is asked of the service."""
    filled = options.stores.filled(B)
    with filled.bench.serving() as service, console_at(service.target) as origin, chromium() as window:
        address = _address(origin, filled.corpus, "/map", {})
        found = []
        for _ in range(_OPENED):
            window.command("Network.clearBrowserCache")
            window.open(address)
            found.append((float(window.awaited(_FIRST_STARS)), float(window.awaited(_ALL_STARS))))
        panned, zoomed = (float(window.awaited(_FRAMES, *keys, _FRAMES_MS)) for keys in _MOVES)
    first_ms, whole_ms = found[0]
    again = [median(times_ms) for times_ms in zip(*found[1:], strict=True)]
    what = f"B: the star map of {B.memories:,}"
    return (
        Row.at_most(f"{what}, first thing after the start, first stars drawn", _STARS_LIMIT_MS, first_ms, "ms"),
        Row.at_least(f"{what}, moved by keys: frames", _LEAST_FRAMES, min(panned, zoomed), "1/s"),
    ), (
        ("star map, first stars, then all", f"{first_ms:.0f}, {whole_ms:.0f}; again {again[0]:.0f}, {again[1]:.0f} ms"),
        ("frames a second", f"to the left and right {panned:.0f}, nearer and farther {zoomed:.0f}"),
    )


def _size() -> Row:
    """All that a page may load, each file compressed alone."""
    files = [each.read_bytes() for each in STATIC.rglob("*") if each.is_file()]
    compressed = sum(len(gzip.compress(each, 9, mtime=0)) for each in files)
    note = f"{len(files)} files"
    return Row.at_most("scripts, styles and icon, gzip", _SIZE_LIMIT_KB, compressed / 1000, "KB", note)


def _address(origin: str, corpus: Corpus, path: str, query: dict[str, str]) -> str:
    return f"{origin}{path}?{urlencode({'project': corpus.project_name(0), **query})}"


def _opened(window: Window, url: str) -> float:
    """Milliseconds from going to a page to its first paint, with nothing kept of an earlier one."""
    window.command("Network.clearBrowserCache")
    window.open(url)
    return float(window.awaited(_PAINTED))


def _appeared_s(window: Window, channel: grpc.Channel, corpus: Corpus, number: int) -> float:
    """Seconds from sending a Learn until the page that is open has drawn the memory."""
    memory = corpus.memory(corpus.size + number)
    request = pb.LearnRequest(project=corpus.project_name(0), memories=[memory])
    call: grpc.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(LEARN)
    window.run(_EXPECT, memory.id)
    began_s = time.time()
    call(request.SerializeToString(), timeout=_CALL_S)
    return float(window.awaited("window.appeared")) / 1000 - began_s
