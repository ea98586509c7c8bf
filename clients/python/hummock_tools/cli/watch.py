"""Following a repository on the command line: what is said of each batch, of the service's absence and of the end."""

from __future__ import annotations

import json as json_lib
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import grpc

from hummock_client.errors import call_error, describe
from hummock_tools.cli.child import ending_signals_interrupt
from hummock_tools.cli.connection import CommandFailed, channel_to, packages_of, resolved_target
from hummock_tools.cli.index import STAGES, plain, print_report, said_of, say_secrets, warn_of_failures
from hummock_tools.cli.output import Meter, note, print_line, printable, warn

if TYPE_CHECKING:
    from hummock_tools.indexing.sync import Progress
    from hummock_tools.indexing.watch import Batch

OnBatch: TypeAlias = "Callable[[Batch, bool], None]"
"""Called with each batch, and whether it is the first, which is the whole repository."""


def watch_repository(root: Path, project: str, target: str, *, name: str, verbose: bool, json: bool) -> None:
    """Index a folder, then follow it until Ctrl-C or SIGTERM, with a line to stdout for each batch.

    Raises:
        CommandFailed: The folder cannot be read or watched, packages of the extra `code` are missing, or the service
            refuses the project.
    """

    def on_batch(batch: Batch, is_first: bool) -> None:
        if json:
            line = {"files_changed": batch.files_changed, **plain(batch.report)}
            print_line(printable(json_lib.dumps(line, ensure_ascii=False, default=plain)))
        else:
            _print_batch(batch, is_first, print_line)
        if is_first:
            note(printable(f"following {root.resolve()}; Ctrl-C ends it"))

    with ending_signals_interrupt():
        try:
            _follow(root, project, target, name=name, verbose=verbose, on_batch=on_batch)
        except KeyboardInterrupt:
            note("ended; what was sent is kept, and the next run goes on from there")


def follow_beside(root: Path, project: str, target: str) -> None:
    """Follow a folder on a thread for as long as this process lives; all that is said goes to stderr.

    Raises:
        CommandFailed: There is no such folder, or packages of the extra `code` are missing.
    """
    if not root.is_dir():
        raise CommandFailed(f"{root}: there is no such folder to index")
    _require_watchfiles()

    def follow() -> None:
        try:
            _follow(root, project, target, on_batch=lambda batch, is_first: _print_batch(batch, is_first, note))
        except CommandFailed as failure:
            warn(printable(f"{root} is not followed any more: {failure}"))

    # A thread that ends with the process, wherever it is: what the service has acknowledged is whole.
    threading.Thread(target=follow, name="index", daemon=True).start()


def _follow(root: Path, project: str, target: str, *, name: str = "", verbose: bool = False, on_batch: OnBatch) -> None:
    """Index the folder and follow it for ever. Raises: CommandFailed."""
    _require_watchfiles()
    from hummock_tools.indexing import MissingExtra
    from hummock_tools.indexing.folder import Folder
    from hummock_tools.indexing.sync import counting
    from hummock_tools.indexing.watch import CannotWatch, Follower, WatchCallbacks, changes_of

    resolved = resolved_target(target)
    meter = Meter()
    named: set[tuple[str, str]] = set()
    is_first = True

    def dial() -> AbstractContextManager[grpc.Channel]:
        return channel_to(resolved)

    def away(error: grpc.Call) -> None:
        meter.say(f"{describe(call_error(error), resolved)}; trying again until it answers")

    def trouble(error: ValueError) -> None:
        warn(printable(f"{error}; nothing is sent until that is mended"))

    def show(progress: Progress) -> None:
        # A batch is read in no time.
        if is_first or progress.stage != "read":
            meter.show(STAGES[progress.stage], progress.done, progress.total)

    def skip(path: str, reason: str) -> None:
        if verbose and (path, reason) not in named:
            named.add((path, reason))
            meter.say(f"left out: {printable(path)} ({reason})")

    try:
        told = WatchCallbacks(on_away=away, on_trouble=trouble, on_progress=show)
        folder = Folder(root, name, on_file=counting(show), on_skip=skip)
        follower = Follower(folder, project, dial, told)
        with meter:
            first = follower.take(frozenset())
        is_first = False
        if first is not None:
            on_batch(first, True)
        for batch in follower.follow(changes_of(folder)):
            on_batch(batch, False)
    except grpc.RpcError as error:
        said = describe(call_error(error), resolved) if isinstance(error, grpc.Call) else str(error)
        raise CommandFailed(said) from error
    except (MissingExtra, CannotWatch, OSError, ValueError) as error:
        raise CommandFailed(said_of(error, root)) from error


def _require_watchfiles() -> None:
    with packages_of("code"):
        # What needs it imports it late, when all is indexed already.
        import watchfiles  # noqa: F401


def _print_batch(batch: Batch, is_first: bool, say: Callable[[str], None]) -> None:
    report = batch.report
    if is_first:
        print_report(report, say)
        return
    files = "1 file" if batch.files_changed == 1 else f"{batch.files_changed} files"
    say(f"{files} changed: {report.sent} sent, {report.deleted} deleted, {report.unchanged} unchanged")
    say_secrets(report, say)
    warn_of_failures(report)
