"""`hummock-hook-py`: what `hummock-hook` does, for machines without that binary; Python's own library is all it needs.

An agent starts it for each event and writes the event to its standard input as JSON; what it prints is put before the
model (docs/hooks.md). It never stands in an agent's way: whatever goes wrong, it prints nothing and ends with status 0,
and hook.log says why in one line, without what was said.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time

from hummock_tools.hook.calls import BadTarget, CallFailed, Service
from hummock_tools.hook.event import LARGEST_EVENT, STARTED, SUBAGENT, SUBAGENT_STARTED, BadEvent, Event
from hummock_tools.hook.session import Session
from hummock_tools.hook.state import Home, Record

_LONGEST_LIFE_S = 15
"""Ends a process whose standard input stays open."""


def main() -> None:
    """Answers one event; never returns."""
    began_s = time.monotonic()
    _limit_life()
    # Files and folders are for their owner alone.
    os.umask(0o077)
    try:
        _run(began_s)
    finally:
        # What the interpreter puts away at its end takes longer than the event.
        os._exit(0)


def _limit_life() -> None:
    """Have this process end after `_LONGEST_LIFE_S`, whatever it waits for."""
    if sys.platform == "win32":
        # Elsewhere an alarm is quicker to set than a thread.
        from threading import Timer

        timer = Timer(_LONGEST_LIFE_S, os._exit, [0])
        timer.daemon = True
        timer.start()
    else:
        signal.signal(signal.SIGALRM, lambda number, frame: os._exit(0))
        signal.alarm(_LONGEST_LIFE_S)


def _run(began_s: float) -> None:
    """Answers one event, and logs what became of it."""
    try:
        home = Home()
    except OSError:
        return
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    name, project = "-", "-"
    try:
        given = Event(_sent())
        name, project = given.kind, given.project()
        outcome = _answer(home, given, project, began_s)
    except BadEvent:
        outcome = "failed: the event is no JSON object, or too large"
    except BadTarget:
        outcome = "failed: HUMMOCK_TARGET, HUMMOCK_HTTP_PORT or HUMMOCK_TOKEN cannot be used"
    except Exception as error:
        # Its text may quote what was said.
        outcome = f"failed: {type(error).__name__}"
    took_ms = int((time.monotonic() - began_s) * 1000)
    home.log(f"{at} {name} project={json.dumps(project, ensure_ascii=False)} took={took_ms}ms {outcome}")


def _sent() -> bytes:
    with open(0, "rb", closefd=False) as stdin:
        return stdin.read(LARGEST_EVENT + 1)


def _answer(home: Home, given: Event, project: str, began_s: float) -> str:
    """Does what the event calls for. Raises: BadTarget, OSError."""
    if given.kind == "other" or not given.session or not project:
        return "nothing to do"
    # A subagent's context is its own: it has nothing of what the session was given.
    record = Record() if given.kind == SUBAGENT_STARTED else home.read(project, given.session)
    try:
        outcome = Session(Service(), project, given, record, began_s).handle()
    except CallFailed as error:
        outcome = f"failed: {error.reason}"
    if given.kind == STARTED:
        home.prune()
    # A subagent's events change nothing, and may meet another of the session.
    if given.kind not in (SUBAGENT_STARTED, SUBAGENT):
        home.write(project, given.session, record)
    return outcome
