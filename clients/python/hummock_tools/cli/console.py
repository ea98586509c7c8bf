"""`hummock console`: pages on this machine that show what a service remembers, and why."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import webbrowser
from threading import Thread
from typing import Annotated

import typer

from hummock_client.channel import DEFAULT_TARGET
from hummock_tools import loopback
from hummock_tools.cli.background import ending_signals_interrupt
from hummock_tools.cli.connection import CommandFailed, channel_to, packages_of, resolved_target
from hummock_tools.cli.options import TargetOption
from hummock_tools.cli.output import note, print_line

CONSOLE_PORT = 7421
"""Default port of a console that runs alongside the service."""

CONSOLE_ON = "console on "
"""Begins the one line of stdout; the address follows."""

_HOST = "127.0.0.1"


def console(
    target: TargetOption = DEFAULT_TARGET,
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="Port of loopback; 0 takes a free one.")
    ] = CONSOLE_PORT,
    opens: Annotated[bool, typer.Option("--open", help="Open it in a browser.")] = False,
    until_stdin_ends: Annotated[bool, typer.Option("--until-stdin-ends", hidden=True)] = False,
) -> None:
    """Look into a service in a browser: ask and see why, prompts, memories, sessions, learning. Ctrl-C ends it."""
    resolved = resolved_target(target)
    # What is wrong with the token is said now, not on the first page.
    channel_to(resolved).close()
    with packages_of("console"):
        from hummock_tools.console.app import serve_console
    try:
        listener = loopback.listen(_HOST, port)
    except OSError as error:
        raise CommandFailed(f"{_HOST}:{port}: {error.strerror or error}") from error
    with listener, ending_signals_interrupt():
        url = loopback.url_of(listener)
        print_line(f"{CONSOLE_ON}{url}")
        if opens:
            webbrowser.open(url)
        if until_stdin_ends:
            Thread(target=_end_with_stdin, name="stdin", daemon=True).start()
        try:
            asyncio.run(serve_console(resolved, listener))
        except KeyboardInterrupt:
            if not until_stdin_ends:
                note("ended")


def _end_with_stdin() -> None:
    """Ends this process in order when whoever started it closes its stdin, or is gone."""
    # Past Python's own buffer, whose lock a waiting thread would hold at the end of the process.
    while os.read(sys.stdin.fileno(), 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
