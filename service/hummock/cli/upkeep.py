"""Commands that look after a data directory: `doctor`, `fsck`, `remove bytes` and `slack`, which rewrite its file."""

from __future__ import annotations

import json as json_lib
import time
from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import version
from typing import TYPE_CHECKING, Annotated

import typer

from hummock.cli.save import JsonOption, data_directory, files_are_said
from hummock.core.errors import HummockError
from hummock_client.v1 import admin_service_pb2
from hummock_tools.cli.background import listens
from hummock_tools.cli.connection import CommandFailed, connect, packages_of
from hummock_tools.cli.options import DataOption
from hummock_tools.cli.output import Meter, confirm, note, print_line, printable, warn

if TYPE_CHECKING:
    from hummock.config import Settings
    from hummock.doctor import Case, Finding
    from hummock.store.upkeep import Problem, Rebuilt

_MIB = 1 << 20
_ANSWER_TIMEOUT_S = 3.0
_EVERY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 # what is asked for these is loopback


def fsck(data: DataOption = None, json: JsonOption = False) -> None:
    """Check all that the data directory holds, also while the service writes; ends with 1 when something is wrong."""
    with packages_of("server"):
        from hummock.store.upkeep import check
    directory = data_directory(data)
    with Meter() as meter:
        report = check(directory, lambda done, total: meter.show("projects", done, total))
    if json:
        problems = [asdict(problem) for problem in report.problems]
        print_line(json_lib.dumps({"counts": report.counts, "problems": problems}, ensure_ascii=False))
    else:
        for problem in report.problems:
            print_line(_in_words(problem))
        note(", ".join(f"{count} {what}" for what, count in sorted(report.counts.items())))
    if report.problems:
        note(f"{directory} is damaged: restore it from a backup (`hummock restore`), or export what can be read")
        raise typer.Exit(1)
    note(f"{directory} is as it should be")


def _in_words(problem: Problem) -> str:
    where = f"project {problem.project}: " if problem.project else ""
    numbers = f" (numbers {', '.join(map(str, problem.examples))})" if problem.examples else ""
    return printable(f"{where}{problem.what}, {problem.count} times{numbers}")


def purge(
    data: DataOption = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Purge without asking.")] = False,
    json: JsonOption = False,
) -> None:
    """Leave no byte of what was deleted in the data directory; stop the service first.

    Answers that are kept for repeated requests go too. Words in the learning log go with `hummock remove traces`.
    """
    with packages_of("server"):
        from hummock.store.upkeep import purge as purge_directory
    directory = data_directory(data)
    if not yes:
        question = f"Erase all that was deleted from {directory}, its logs, and the answers kept for repeated requests?"
        confirm(question, "nothing was erased; --yes erases without asking")
    with files_are_said("the data is as it was"), Meter() as meter:
        purged = purge_directory(directory, time.time(), lambda done, total: meter.show("tables", done, total))
    if json:
        print_line(json_lib.dumps(asdict(purged), ensure_ascii=False))
    else:
        gone = ", ".join(f"{count} of {table}" for table, count in sorted(purged.left_out.items()))
        print_line(f"purged: {_sizes(purged.rebuilt)}; entries that are gone: {gone or 'none'}")
    if purged.expired_count:
        warn(
            f"{purged.expired_count} memories have expired and are removed when the service runs: purge again after it"
        )
    for backup in purged.backups:
        warn(printable(f"backup {backup.name} in {backup.directory} may hold what is gone here: remove it (--keep)"))


def compact(data: DataOption = None, json: JsonOption = False) -> None:
    """Give the room of what was deleted back to the disk; stop the service first."""
    with packages_of("server"):
        from hummock.store.upkeep import compact as compact_directory
    directory = data_directory(data)
    with files_are_said("the data is as it was"), Meter() as meter:
        rebuilt = compact_directory(directory, lambda done, total: meter.show("tables", done, total))
    print_line(json_lib.dumps(asdict(rebuilt)) if json else f"compacted: {_sizes(rebuilt)}")


def _sizes(rebuilt: Rebuilt) -> str:
    return f"{rebuilt.before_bytes / _MIB:.1f} MiB before, {rebuilt.after_bytes / _MIB:.1f} MiB after"


def doctor(data: DataOption = None, json: JsonOption = False) -> None:
    """Say what is wrong with the directory, the machine and the service, and what mends it; ends with 1 on errors.

    Warnings alone end with 0.
    """
    with packages_of("server"):
        from hummock.config import load_settings
        from hummock.doctor import Finding, Level, examine
    try:
        settings = load_settings({"data_dir": data})
    except HummockError as failure:
        findings = [Finding(level=Level.ERROR, what=str(failure), command="env | grep HUMMOCK_; cat hummock.toml")]
    else:
        findings = examine(_case(settings))
    if json:
        print_line(json_lib.dumps({"findings": [asdict(each) for each in findings]}, ensure_ascii=False))
    else:
        _print_page(findings)
    if any(each.level is Level.ERROR for each in findings):
        raise typer.Exit(1)


def _print_page(findings: Sequence[Finding]) -> None:
    """Errors, warnings, and how much is fine."""
    for level in ("error", "warning"):
        for finding in findings:
            if finding.level == level:
                print_line(printable(f"{level:<8} {finding.what}"))
                if finding.command:
                    print_line(printable(f"{'':<8} $ {finding.command}"))
    print_line(f"{sum(finding.level == 'ok' for finding in findings)} checks fine")


def _case(settings: Settings) -> Case:
    """Collect the owner of the directory and the status of the service at its address."""
    with packages_of("server"):
        from hummock.doctor import Case
        from hummock.store import holder
    target = _target(settings)
    is_listened_at, status, refusal = _is_listened_at(target), None, ""
    if is_listened_at:
        try:
            status = _asked(target)
        except CommandFailed as failure:
            refusal = str(failure)
    return Case(
        settings=settings,
        version=version("hummock"),
        now_s=time.time(),
        holder=holder(settings.data_dir),
        address=target,
        is_listened_at=is_listened_at,
        status=status,
        refusal=refusal,
    )


def _target(settings: Settings) -> str:
    if settings.unix_socket is not None:
        return f"unix:{settings.unix_socket}"
    host = _EVERY_ADDRESS.get(settings.host, settings.host)
    return f"[{host}]:{settings.port}" if ":" in host else f"{host}:{settings.port}"


def _is_listened_at(target: str) -> bool:
    try:
        return listens(target)
    except OSError:
        # A name that is none, or a path that is too long: a start says so.
        return False


def _asked(target: str) -> admin_service_pb2.GetStatusResponse:
    """Raises: CommandFailed."""
    with connect(target) as service:
        return service.admin.GetStatus(admin_service_pb2.GetStatusRequest(), timeout=_ANSWER_TIMEOUT_S)
