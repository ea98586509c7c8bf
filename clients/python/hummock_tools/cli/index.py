"""`hummock index`: a repository into a project."""

from __future__ import annotations

import json as json_lib
import shlex
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import grpc
import typer
from typer import Argument, Option

from hummock.installation import command_for
from hummock_client.channel import DEFAULT_TARGET
from hummock_client.errors import call_error, describe
from hummock_client.v1 import project_service_pb2
from hummock_client.v1.context_service_pb2 import SecretsFound
from hummock_tools.cli import options
from hummock_tools.cli.background import ending_signals_interrupt
from hummock_tools.cli.connection import (
    CALL_TIMEOUT_S,
    CommandFailed,
    Service,
    calling,
    channel_to,
    connect,
    packages_of,
    resolved_target,
)
from hummock_tools.cli.output import Meter, note, print_line, secret_sums, warn

if TYPE_CHECKING:
    from hummock_tools.indexing.sync import InfoReport, Progress, SyncReport
    from hummock_tools.indexing.watch import Batch


STAGES = {"read": "reading files", "send": "sending memories", "delete": "removing the vanished"}
_SHOWN_FAILURES = 5
_SHOWN_LINES = 10


def index(
    path: Annotated[Path, Argument(metavar="PATH", help="The repository, or a folder of one.")],
    project: Annotated[
        str,
        Option(
            *("--project", "-p"),
            envvar="HUMMOCK_PROJECT",
            help="The project to fill; that of PATH's repository if unset.",
            default_factory=str,
            show_default=False,
            callback=options.utf8,
        ),
    ],
    name: Annotated[
        str, Option("--name", help="Names its index: clones of it on other machines share that by the name.")
    ] = "",
    remove: Annotated[
        bool, Option("--remove", help="Delete the index of PATH, which need not be there any more.")
    ] = False,
    watch: Annotated[bool, Option("--watch", help="Go on: follow what changes, until Ctrl-C.")] = False,
    verbose: Annotated[bool, Option("--verbose", "-v", help="Name each path that is left out.")] = False,
    wait: Annotated[bool, Option("--wait", help="Wait until all is found by meaning, too.")] = False,
    json: Annotated[
        bool, Option("--json", help="Print the report as JSON; with --watch a line for each batch.")
    ] = False,
    target: options.Target = DEFAULT_TARGET,
) -> None:
    """Bring a project to hold what a repository has; what did not change is not sent again.

    When it ends, all is found by words and names. Vectors follow in the service, whoever waits for them.

    Each folder of a project has an index of its own; a folder inside an indexed one renews its part of that. A folder \
that was moved is another one: --remove the old path first, or give both one --name.

    Left out are what git ignores, what may hold secrets, and what nobody asks about: generated files, lock files, \
data, licences, vendored folders. A file .hummockignore in PATH, written as a .gitignore is, leaves out more; lines \
with ! bring something back.
    """
    if watch and wait:
        raise typer.BadParameter("--watch never ends: leave out --wait, or run it once with --wait first")
    if remove and (watch or wait):
        raise typer.BadParameter("--remove goes without --watch and --wait")
    if not project:
        if remove:
            raise typer.BadParameter("--remove wants the project named, with --project or HUMMOCK_PROJECT")
        project = options.project_of_repository(path)
        if not json:
            note(f"indexing into project {project}")
    if remove:
        return _remove(path, project, target, name=name, json=json)
    if watch:
        return _watch(path, project, target, name=name, verbose=verbose, json=json)
    with connect(target) as service:
        report = index_repository(service, path, project, name=name, verbose=verbose)
        if report.info is not None:
            await_vectors(service, project) if wait else say_pending(service, project)
    conclude(report, json=json)


def conclude(report: SyncReport, *, json: bool) -> None:
    """Prints the report of a run. Raises: typer.Exit with 1, where the service refused a part."""
    if json:
        print_line(json_lib.dumps(report, ensure_ascii=False, indent=2, default=plain))
    else:
        print_report(report)
    if report.failures:
        raise typer.Exit(1)


@contextmanager
def reading(root: Path) -> Iterator[None]:
    """Raises: CommandFailed, for an error in reading or following a folder inside."""
    from hummock_tools.indexing.skips import MissingExtra
    from hummock_tools.indexing.watch import CannotWatch

    try:
        yield
    except OSError as error:
        raise CommandFailed(f"{error.filename or root}: {error.strerror or error}") from error
    except (MissingExtra, CannotWatch, ValueError) as error:
        raise CommandFailed(str(error)) from error


def _remove(path: Path, project: str, target: str, *, name: str, json: bool) -> None:
    with packages_of("code"):
        from hummock_tools.indexing.sync import remove
    with connect(target) as service, Meter() as meter:
        try:
            deleted = remove(path, project, service.channel, name=name, on_progress=shown_by(meter))
        except ValueError as error:
            raise CommandFailed(str(error)) from error
    print_line(json_lib.dumps({"deleted": deleted}) if json else f"{deleted} deleted")


def index_repository(
    service: Service, root: Path, project: str, *, name: str = "", verbose: bool = False
) -> SyncReport:
    """Index a folder with a progress bar on stderr. Raises: CommandFailed, grpc.RpcError."""
    with packages_of("code"):
        from hummock_tools.indexing.sync import sync
    with Meter() as meter, reading(root):

        def skip(path: str, reason: str) -> None:
            if verbose:
                meter.say(f"left out: {path} ({reason})")

        return sync(root, project, service.channel, name=name, on_progress=shown_by(meter), on_skip=skip)


def shown_by(meter: Meter) -> Callable[[Progress], None]:
    """Shows the progress of a run."""
    return lambda progress: meter.show(STAGES[progress.stage], progress.done, progress.total)


def await_vectors(service: Service, project: str) -> None:
    """Returns when no memory of a project waits for its vectors, with a progress bar on stderr."""
    most = 0
    with Meter() as meter:
        for reply in service.projects.WatchProject(project_service_pb2.WatchProjectRequest(project=project)):
            most = max(most, reply.pending_count)
            if most:
                meter.show("embedding", most - reply.pending_count, most)
            if not reply.pending_count:
                return


def say_pending(service: Service, project: str) -> None:
    """Says on stderr how many memories of a project wait for their vectors; nothing where none does."""
    request = project_service_pb2.GetProjectRequest(project=project)
    pending = service.projects.GetProject(request, timeout=CALL_TIMEOUT_S).project.pending_count
    if pending:
        note(
            f"all is found by words and names; vectors for {pending} memories follow in the background "
            "(`hummock status` shows how far they are, --wait waits for them)"
        )


def print_report(report: SyncReport, say: Callable[[str], None] = print_line) -> None:
    """Prints a short report of the run."""
    say(
        f"{report.walked.files} files: {report.fragments} code fragments, {report.domain_entries} domain entries; "
        f"{report.sent} sent, {report.unchanged} unchanged, {report.deleted} deleted"
    )
    if report.walked.skipped:
        reasons = ", ".join(f"{count} {reason}" for reason, count in report.walked.skipped.items())
        say(f"{report.walked.skipped_total} paths left out: {reasons}")
    if not report.walked.files:
        note(f"nothing in {Path(report.root, report.part)} is indexed")
    _say_where(report, say)
    if report.guessed:
        say(f"{len(report.guessed)} files are not UTF-8 and do not say their encoding; it was guessed:")
        _say_first([f"{each.path} ({each.encoding})" for each in report.guessed], say)
    if report.undecided:
        say(f"{len(report.undecided)} files were left out; a line such as `coding: gbk` in them says what they are:")
        _say_first(report.undecided, say)
    for line in secret_sums(report.secrets):
        say(line)
    if report.info:
        _print_info(report.info, say)
    if report.without_grammar:
        note(f"cut by lines, for want of `{command_for('code')}`: {', '.join(report.without_grammar)}")
    warn_of_failures(report)


def _say_where(report: SyncReport, say: Callable[[str], None]) -> None:
    """Print the index unless it is the project's only one, folders without an index, and indexes of missing folders."""
    project = shlex.quote(report.project)
    if report.part:
        say(f"{report.part} is a part of {report.root}, which is indexed: only that part was compared")
    if report.name:
        say(f"kept apart from other folders of the project: paths begin with {report.name}/")
    if report.nested:
        say(f"{len(report.nested)} nested repositories are not indexed; each has an index of its own by:")
        _say_first([f"hummock index {shlex.quote(path)} -p {project}" for path in report.nested], say)
    if report.taken:
        say(f"{len(report.taken)} files have memories whose ids another index has: those were not sent; --name helps:")
        _say_first(report.taken, say)
    gone = [each for each in report.others if each.is_gone()]
    if gone:
        say("indexed in the project, and not on this machine; if they are gone for good, delete their indexes by:")
        _say_first([f"hummock index {shlex.quote(each.root)} -p {project} --remove" for each in gone], say)


def _say_first(lines: Sequence[str], say: Callable[[str], None]) -> None:
    for line in lines[:_SHOWN_LINES]:
        say(f"  {line}")
    if len(lines) > _SHOWN_LINES:
        say(f"  and {len(lines) - _SHOWN_LINES} more (--json has all)")


def warn_of_failures(report: SyncReport) -> None:
    """Warns of memories that were refused, and why; the next run sends them again."""
    for failure in report.failures[:_SHOWN_FAILURES]:
        warn(f"{len(failure.ids)} memories from {failure.ids[0]} on were refused: {failure.message}")
    if len(report.failures) > _SHOWN_FAILURES:
        warn(f"and {len(report.failures) - _SHOWN_FAILURES} more batches")


def plain(value: object) -> dict[str, object]:
    """JSON object for a part of a report."""
    if isinstance(value, SecretsFound):
        return {"kind": value.kind, "count": value.count, "redacted": value.redacted}
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(type(value).__name__)


def _print_info(info: InfoReport, say: Callable[[str], None]) -> None:
    if info.tech_stack:
        sources = "as somebody said" if "tech_stack" in info.kept else f"by {', '.join(info.made.manifests)}"
        say(f"tech stack: {', '.join(info.tech_stack)} ({sources})")
    for unread in info.made.unread:
        note(f"not read for the tech stack: {unread.path} ({unread.reason})")
    if info.kept:
        note(f"kept what somebody said: {', '.join(info.kept)}; `hummock projects set` changes it")


def _watch(root: Path, project: str, target: str, *, name: str, verbose: bool, json: bool) -> None:
    """Index a folder, then follow it until Ctrl-C or SIGTERM, with a line to stdout for each batch."""

    def on_batch(batch: Batch, is_first: bool) -> None:
        if json:
            line = {"files_changed": batch.files_changed, **plain(batch.report)}
            print_line(json_lib.dumps(line, ensure_ascii=False, default=plain))
        else:
            _print_batch(batch, is_first, print_line)
        if is_first:
            note(f"following {root.resolve()}; Ctrl-C ends it")

    with ending_signals_interrupt():
        try:
            _follow(root, project, target, name=name, verbose=verbose, on_batch=on_batch)
        except KeyboardInterrupt:
            note("ended; what was sent is kept, and the next run goes on from there")


def follow_beside(root: Path, project: str, target: str) -> None:
    """Follow a folder on a thread for as long as this process lives, saying so on stderr. Raises: CommandFailed."""
    if not root.is_dir():
        raise CommandFailed(f"{root}: there is no such folder to index")
    _require_watchfiles()

    def follow() -> None:
        try:
            _follow(root, project, target, on_batch=lambda batch, is_first: _print_batch(batch, is_first, note))
        except CommandFailed as failure:
            warn(f"{root} is not followed any more: {failure}")

    # A daemon thread may end at any point: everything that the service has acknowledged is complete.
    threading.Thread(target=follow, name="index", daemon=True).start()


def _follow(
    root: Path,
    project: str,
    target: str,
    *,
    name: str = "",
    verbose: bool = False,
    on_batch: Callable[[Batch, bool], None],
) -> None:
    """Index the folder and follow it for ever; `on_batch` hears if a batch is the first. Raises: CommandFailed."""
    _require_watchfiles()
    from hummock_tools.indexing.folder import Folder
    from hummock_tools.indexing.sync import counting
    from hummock_tools.indexing.watch import Follower, WatchCallbacks, changes_of

    resolved = resolved_target(target)
    meter = Meter()
    named: set[tuple[str, str]] = set()
    is_first = True

    def away(error: grpc.Call) -> None:
        meter.say(f"{describe(call_error(error, resolved), resolved)}; trying again until it answers")

    def trouble(error: ValueError) -> None:
        warn(f"{error}; nothing is sent until that is mended")

    def show(progress: Progress) -> None:
        # A batch is read in no time.
        if is_first or progress.stage != "read":
            shown_by(meter)(progress)

    def skip(path: str, reason: str) -> None:
        if verbose and (path, reason) not in named:
            named.add((path, reason))
            meter.say(f"left out: {path} ({reason})")

    told = WatchCallbacks(on_away=away, on_trouble=trouble, on_progress=show)
    with calling(resolved), reading(root):
        folder = Folder(root, name, on_file=counting(show), on_skip=skip)
        follower = Follower(folder, project, lambda: channel_to(resolved), told)
        with meter:
            first = follower.take(frozenset())
        is_first = False
        if first is not None:
            on_batch(first, True)
        for batch in follower.follow(changes_of(folder)):
            on_batch(batch, False)


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
    for line in secret_sums(report.secrets):
        say(line)
    warn_of_failures(report)
