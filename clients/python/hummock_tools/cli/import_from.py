"""`hummock import --from`: the conversations, notes and memories that other tools keep."""

from __future__ import annotations

import json as json_lib
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import typer

from hummock_client.errors import HummockCallError, describe
from hummock_client.streaming import Connection
from hummock_client.v1.context_service_pb2 import SecretsFound
from hummock_tools.cli.connection import CommandFailed, connect, packages_of
from hummock_tools.cli.index import STAGES, describe_error, index_repository, plain, print_report, say_pending
from hummock_tools.cli.output import HOW_TO_KEEP, Meter, note, one_line, print_line, secret_sums, warn
from hummock_tools.importing.conversations import Part, Wrong, project_of
from hummock_tools.importing.databases import NotRead
from hummock_tools.importing.sources import READERS, Source, check_kind
from hummock_tools.importing.storing import Report, SessionCounts, Storing

INTERRUPTED = 130
_SHOWN_SESSIONS = 20
_SHOWN_LINES = 20
_OUTCOMES = {
    "new": "new",
    "changed": "changed",
    "unchanged": "unchanged",
    "elsewhere": "left alone: stored by hummock-hook, held for review or removed",
}


def import_from(source: Source, path: Path | None, project: str, target: str, *, dry_run: bool, json: bool) -> None:
    """Takes in what a tool keeps. Raises: CommandFailed; typer.Exit with 1 where the service refused a part."""
    if source is Source.MARKDOWN:
        return _index(path, project, target, dry_run=dry_run, json=json)
    if not project and source in (Source.MEM0, Source.OPENMEMORY):
        raise CommandFailed(f"{source} says no working directory of its memories: name the project with --project")
    chosen = path or _well_known(source)
    try:
        check_kind(chosen, source)
        report = _store(READERS[source].read(chosen), source, project, target, dry_run=dry_run)
    except NotRead as error:
        raise CommandFailed(str(error)) from error
    if not (report.projects or report.left_out or report.wrong_count):
        raise CommandFailed(f"{chosen} holds nothing of {source}")
    if json:
        print_line(json_lib.dumps(_in_json(report, source, dry_run=dry_run), ensure_ascii=False, indent=2))
    else:
        _print(report, dry_run=dry_run)
    if report.refused_count:
        raise typer.Exit(1)


def _well_known(source: Source) -> Path:
    """Where the tool keeps its files. Raises: CommandFailed."""
    find = READERS[source].well_known
    if find is None:
        raise CommandFailed(f"--from {source} needs the PATH of a file that it has given out")
    return find()


def _store(parts: Iterator[Part], source: Source, project: str, target: str, *, dry_run: bool) -> Report:
    with connect(target) as service, Meter() as meter:
        stage = "comparing" if dry_run else "learning"
        storing = Storing(
            Connection(channel=service.channel, target=target),
            project=project,
            dry_run=dry_run,
            on_progress=lambda done: meter.show(stage, done, None),
        )
        try:
            storing.take(parts)
        except HummockCallError as error:
            raise CommandFailed(describe(error, target)) from error
        except KeyboardInterrupt:
            kept = "nothing was to be stored" if dry_run else "what was sent is stored"
            note(f"interrupted: {kept}; the same command does the rest")
            raise typer.Exit(INTERRUPTED) from None
    return storing.report


def _print(report: Report, *, dry_run: bool) -> None:
    """Prints what was learnt of each project and session, and on stderr what was not."""
    for project, sessions in report.projects.items():
        print_line(f"{'would go into' if dry_run else 'into'} {project}: {_counts(_sum(sessions.values()))}")
        named = [(id, counts) for id, counts in sessions.items() if id and (counts.new or counts.changed)]
        for id, counts in named[:_SHOWN_SESSIONS]:
            print_line(f"  {one_line(counts.title or id)}: {_counts(counts)}")
        if len(named) > _SHOWN_SESSIONS:
            print_line(f"  and {len(named) - _SHOWN_SESSIONS} more sessions (--json has all)")
    if report.kinds:
        print_line(f"kinds: {_listed(report.kinds)}")
    if report.left_out:
        print_line(f"left out: {_listed(report.left_out)}")
    _name("not read", report.wrong, report.wrong_count)
    _name("refused by the service", report.refused, report.refused_count)
    if report.held:
        note(f"{report.held} are held for review: they read like instructions to a model (`hummock review ls`)")
    for line in secret_sums(_secrets(report)):
        note(line)
    if any(redacted for _, redacted in report.secrets):
        note(HOW_TO_KEEP.format(project=" or ".join(map(shlex.quote, report.projects))))


def _name(what: str, wrong: Iterable[Wrong], count: int) -> None:
    for one in list(wrong)[:_SHOWN_LINES]:
        warn(f"{what}: {one.where}: {one.reason}")
    if count > _SHOWN_LINES:
        warn(f"{what}: and {count - _SHOWN_LINES} more")


def _sum(counts: Iterable[SessionCounts]) -> SessionCounts:
    total = SessionCounts()
    for one in counts:
        for name in _OUTCOMES:
            setattr(total, name, getattr(total, name) + getattr(one, name))
    return total


def _counts(counts: SessionCounts) -> str:
    said = [f"{getattr(counts, name)} {words}" for name, words in _OUTCOMES.items() if getattr(counts, name)]
    return ", ".join(said)


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))


def _secrets(report: Report) -> list[SecretsFound]:
    found = sorted(report.secrets.items())
    return [SecretsFound(kind=kind, count=count, redacted=redacted) for (kind, redacted), count in found]


def _in_json(report: Report, source: Source, *, dry_run: bool) -> dict[str, object]:
    return {
        "from": str(source),
        "dryRun": dry_run,
        **{name: report.total(name) for name in _OUTCOMES},
        "messages": report.messages,
        "held": report.held,
        "kinds": dict(report.kinds),
        "projects": {
            project: {
                **_without_title(_sum(sessions.values())),
                "sessions": {id: {"title": each.title, **_without_title(each)} for id, each in sessions.items() if id},
            }
            for project, sessions in report.projects.items()
        },
        "leftOut": dict(report.left_out),
        "wrong": {"count": report.wrong_count, "first": _places(report.wrong)},
        "refused": {"count": report.refused_count, "first": _places(report.refused)},
        "secrets": [plain(each) for each in _secrets(report)],
    }


def _without_title(counts: SessionCounts) -> dict[str, int]:
    return {name: getattr(counts, name) for name in _OUTCOMES}


def _places(wrong: Iterable[Wrong]) -> list[dict[str, str]]:
    return [{"where": one.where, "reason": one.reason} for one in wrong]


def _index(path: Path | None, project: str, target: str, *, dry_run: bool, json: bool) -> None:
    """A folder of Markdown is indexed as a repository is: what is gone from it goes from the project as well."""
    if path is None:
        raise CommandFailed("--from markdown needs the PATH of a folder of notes")
    if not path.is_dir():
        raise CommandFailed(f"{path} is no folder; --from markdown takes a folder of notes")
    into = project or project_of(str(path.resolve()))
    if dry_run:
        return _preview(path, into, target, json=json)
    with connect(target) as service:
        try:
            report = index_repository(service, path, into)
        except KeyboardInterrupt:
            note("interrupted: what was sent is stored; the same command does the rest")
            raise typer.Exit(INTERRUPTED) from None
        if report.info is not None:
            say_pending(service, into)
    if json:
        print_line(json_lib.dumps(report, ensure_ascii=False, indent=2, default=plain))
    else:
        print_report(report)
    if report.failures:
        raise typer.Exit(1)


def _preview(path: Path, project: str, target: str, *, json: bool) -> None:
    with packages_of("code"):
        from hummock_tools.indexing.skips import MissingExtra
        from hummock_tools.indexing.sync import preview
    with connect(target) as service, Meter() as meter:
        try:
            plan, walked = preview(
                path,
                project,
                service.channel,
                on_progress=lambda progress: meter.show(STAGES[progress.stage], progress.done, progress.total),
                on_skip=lambda path, reason: None,
            )
        except (MissingExtra, OSError, ValueError) as error:
            raise CommandFailed(describe_error(error, path)) from error
    skipped = Counter({str(reason): count for reason, count in walked.skipped.items()})
    if json:
        counts = {"send": len(plan.send), "delete": len(plan.delete), "unchanged": plan.unchanged}
        said = {"from": "markdown", "dryRun": True, "project": project, "files": walked.files, **counts}
        print_line(json_lib.dumps({**said, "leftOut": skipped}, ensure_ascii=False, indent=2))
        return
    print_line(
        f"would go into {project}: {walked.files} files; {len(plan.send)} memories sent, {plan.unchanged} unchanged, "
        f"{len(plan.delete)} deleted"
    )
    if skipped:
        print_line(f"left out: {_listed(skipped)}")
