"""`hummock save project` and `hummock import`: a project as a file of JSON lines, other files, and what tools keep."""

from __future__ import annotations

import json as json_lib
import shlex
import sys
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from os import environ
from pathlib import Path
from typing import Annotated

import typer
from google.protobuf.json_format import MessageToJson
from typer import Argument, Option

from hummock_client.channel import DEFAULT_TARGET
from hummock_client.errors import HummockCallError, describe, status_error
from hummock_client.streaming import IMPORT, Connection, exchange, import_messages
from hummock_client.v1 import project_service_pb2 as pb
from hummock_client.v1.admin_service_pb2 import GetStatusRequest
from hummock_client.v1.context_service_pb2 import SecretsFound
from hummock_client.v1.transfer_pb2 import TransferRecord
from hummock_tools.cli import options
from hummock_tools.cli.connection import CALL_TIMEOUT_S, CommandFailed, Service, connect, packages_of
from hummock_tools.cli.index import conclude, index_repository, plain, reading, say_pending, shown_by
from hummock_tools.cli.output import HOW_TO_KEEP, Meter, note, one_line, print_line, secret_sums, warn
from hummock_tools.importing.conversations import Finding, Wrong, project_of
from hummock_tools.importing.databases import NotRead
from hummock_tools.importing.formats import FileFormat, read_file
from hummock_tools.importing.json_items import BadLine, Line, NotWhole, OtherProject, Part, Place, Retired, lines_of
from hummock_tools.importing.sources import READERS, Source, check_kind
from hummock_tools.importing.storing import Report, SessionCounts, Storing

_SHOWN_LINES = 20


def export(
    project: Annotated[str, options.text_argument("PROJECT", "The project to write out.")],
    vectors: Annotated[bool, Option("--vectors", help="With vectors, for a service of the same model.")] = False,
    target: options.Target = DEFAULT_TARGET,
) -> None:
    """Write a project to stdout, for `hummock import`: settings, what was learnt, memories, conversations.

    Not in it: memories held for review, whose number is said; tokens, the audit log, answers for repeated requests.
    """
    request = pb.ExportProjectRequest(project=project, with_vectors=vectors)
    done = held = 0
    with connect(target) as service, Meter() as meter:
        for message in service.projects.ExportProject(request):
            for record in message.records:
                # UTF-8 whatever the terminal speaks.
                sys.stdout.buffer.write(MessageToJson(record, ensure_ascii=False, indent=None).encode() + b"\n")
                done += record.HasField("memory")
                held = record.end.held_count
            meter.show("exporting", done, max(message.memory_count, done))
    sys.stdout.buffer.flush()
    if held:
        is_one = "memory that is held for review is" if held == 1 else "memories that are held for review are"
        note(f"{held} {is_one} not in it; `hummock review ls --project {project}` shows them")


def import_file(
    project: Annotated[
        str | None,
        options.text_argument("PROJECT|PATH", "The project to store in. With --from, where the tool keeps it."),
    ] = None,
    file: Annotated[
        Path | None, Argument(metavar="FILE", help='What to take in; "-" reads stdin. Left out with --from.')
    ] = None,
    source: Annotated[Source | None, Option("--from", help="Take in what another tool keeps.")] = None,
    into: Annotated[
        str,
        options.text_option(
            "--project", "With --from: the project, or HUMMOCK_PROJECT; else that of each working directory."
        ),
    ] = "",
    dry_run: Annotated[bool, Option("--dry-run", help="With --from: only count.")] = False,
    format: Annotated[FileFormat, Option("--format", help="What the file is.")] = FileFormat.JSONL,
    vectors: Annotated[
        bool, Option("--vectors", help="legacy: take the file's vectors; the service's model must have made them.")
    ] = False,
    project_key: Annotated[
        str, Option("--project-key", help="legacy: take records of this projectKey; PROJECT if unset.")
    ] = "",
    json: Annotated[bool, Option("--json", help="Print the outcome as JSON.")] = False,
    target: options.Target = DEFAULT_TARGET,
) -> None:
    """Take a file of memories, plain or gzip, into a project, or with --from what another tool keeps.

    That is `hummock import PROJECT FILE`, or `hummock import --from TOOL [PATH]`. Doing it again changes nothing.

    An export that was cut off or is not whole otherwise ends with 1; what was read is stored and stays. Files of \
other formats have no end: where one was cut between two lines nobody can tell.
    """
    if source is not None:
        if file is not None:
            raise typer.BadParameter("--from takes one PATH; --project names the project")
        if format is not FileFormat.JSONL or vectors or project_key:
            raise typer.BadParameter("--format, --vectors and --project-key go without --from")
        path = None if project is None else Path(project)
        return _import_from(
            source, path, into or environ.get("HUMMOCK_PROJECT", ""), target, dry_run=dry_run, json=json
        )
    if into or dry_run:
        raise typer.BadParameter("--project and --dry-run go with --from")
    if project is None or file is None:
        raise typer.BadParameter("give PROJECT and FILE, or --from and the PATH of what a tool keeps")
    if format is not FileFormat.LEGACY and (vectors or project_key):
        raise typer.BadParameter("--vectors and --project-key go with --format legacy")
    run = _Run(name="stdin" if str(file) == "-" else str(file))
    try:
        with ExitStack() as stack:
            lines = lines_of(sys.stdin.buffer if run.name == "stdin" else stack.enter_context(file.open("rb")))
            service = stack.enter_context(connect(target))
            emb_space = ""
            if vectors:
                emb_space = service.admin.GetStatus(GetStatusRequest(), timeout=CALL_TIMEOUT_S).model.emb_space
            run.send(service, target, project, read_file(lines, format, project_key or project, emb_space))
    except OSError as error:
        raise CommandFailed(f"{run.name} cannot be read: {error.strerror}") from error
    except KeyboardInterrupt:
        note(f"interrupted: what stands up to line {run.stored_line} is stored; the same command does the rest")
        raise typer.Exit(_INTERRUPTED) from None
    run.report(as_json=json)
    if run.failures or run.not_whole is not None:
        raise typer.Exit(1)


@dataclass(slots=True, kw_only=True)
class _Run:
    """State and counts of one import; all lines up to `stored_line` have been answered.

    Left out are records of `others`, other projects by their key, and `retired` ones by their state, `unused_vectors`,
    `unfit` labels and facts, and `left_events` of the learning log.
    """

    name: str
    counts: Counter[str] = field(default_factory=Counter)
    failures: list[tuple[Place, str]] = field(default_factory=list)
    stored_line: int = 0
    others: Counter[str] = field(default_factory=Counter)
    retired: Counter[str] = field(default_factory=Counter)
    unused_vectors: int = 0
    unfit: int = 0
    left_events: int = 0
    not_whole: NotWhole | None = None
    _sent: deque[dict[int, Place]] = field(default_factory=deque)
    _places: dict[int, Place] = field(default_factory=dict)
    _shown: int = 0

    def send(self, service: Service, target: str, project: str, parts: Iterable[Part]) -> None:
        """Sends all parts, with a progress bar. Raises: CommandFailed."""
        try:
            with Meter() as meter:
                messages = self._messages(project, parts)
                connection = Connection(channel=service.channel, target=target)
                for reply in exchange(connection, IMPORT, pb.ImportProjectResponse, messages, None):
                    self._count(reply)
                    self._show_failures(meter)
                    meter.show("lines", self.stored_line, None)
                self._show_failures(meter)
        except HummockCallError as error:
            stored = f" (what stands up to line {self.stored_line} is stored)" if self.stored_line else ""
            raise CommandFailed(describe(error, target) + stored) from error

    def report(self, *, as_json: bool) -> None:
        """Prints the outcome of the import."""
        if as_json:
            print_line(json_lib.dumps(self._in_json(), ensure_ascii=False))
        # They are found by words already.
        said = [f"{count} {_IN_WORDS.get(name, name)}" for name, count in self.counts.items() if count]
        said += [f"{count} left out as {state}" for state, count in self.retired.items()]
        if self.failures:
            said.append(f"{len(self.failures)} records not taken in")
        note(", ".join(said) or "nothing to import")
        if len(self.failures) > self._shown:
            warn(f"and {len(self.failures) - self._shown} more records are wrong")
        for key, count in self.others.items():
            warn(f"{count} records of projectKey {key} were left out; --project-key takes them")
        if self.unused_vectors:
            note(f"{self.unused_vectors} vectors were left out; --vectors takes them, if the service's model made them")
        if self.unfit:
            warn(f"{self.unfit} tags and facts were left out: too long or too many, or their names hold what none may")
        if self.left_events:
            warn(f"{self.left_events} learning events were left out: the project has a history of its own")
        if self.not_whole is not None:
            warn(f"{self.name} {self.not_whole.reason} ({self.not_whole.place})")
            warn("what was read is stored and stays; import the whole file: what is there already is not stored twice")

    def _in_json(self) -> dict[str, object]:
        failures = sorted(self.failures, key=lambda failure: (failure[0].line, failure[0].record))
        return {
            **self.counts,
            "failures": [{**_in_fields(place), "reason": reason} for place, reason in failures],
            "leftOut": {
                "otherProjects": dict(self.others),
                "states": dict(self.retired),
                "vectors": self.unused_vectors,
                "tagsAndFacts": self.unfit,
                "events": self.left_events,
            },
            "whole": self.not_whole is None,
            **({"why": f"{self.not_whole.reason} ({self.not_whole.place})"} if self.not_whole else {}),
        }

    def _messages(self, project: str, parts: Iterable[Part]) -> Iterator[pb.ImportProjectRequest]:
        for message in import_messages(project, self._records(parts)):
            self._sent.append({line.number: self._places.pop(line.number) for line in message.lines})
            yield message

    def _records(self, parts: Iterable[Part]) -> Iterator[tuple[int, TransferRecord]]:
        for number, part in enumerate(parts, start=1):
            match part:
                case BadLine(place=place, reason=reason):
                    self.failures.append((place, reason))
                case NotWhole():
                    self.not_whole = part
                case OtherProject(key=key):
                    self.others[key] += 1
                case Retired(state=state):
                    self.retired[state] += 1
                case Line(place=place, record=record):
                    self.unused_vectors += part.has_unused_vector
                    self.unfit += part.unfit
                    self._places[number] = place
                    yield number, record

    def _count(self, reply: pb.ImportProjectResponse) -> None:
        places = self._sent.popleft()
        self.stored_line = max(self.stored_line, *(place.line for place in places.values()), 0)
        for name in _COUNTED:
            self.counts[name] += getattr(reply, f"{name.removesuffix('s')}_count")
        self.left_events += reply.left_event_count
        refused = ((places[one.number], describe(status_error(one.status), "")) for one in reply.failures)
        self.failures.extend(refused)

    def _show_failures(self, meter: Meter) -> None:
        while self._shown < min(len(self.failures), _SHOWN_LINES):
            place, reason = self.failures[self._shown]
            meter.say(f"{self.name}, {place}: {reason}")
            self._shown += 1


def _in_fields(place: Place) -> dict[str, int]:
    return {"line": place.line} | ({"record": place.record} if place.record else {})


_COUNTED = ["created", "updated", "unchanged", "removed", "embedded", "sessions", "messages", "events", "expired"]
_IN_WORDS = {"embedded": "being embedded", "events": "learning events", "expired": "left out as expired"}


_INTERRUPTED = 130
_OUTCOMES = {
    "new": "new",
    "changed": "changed",
    "unchanged": "unchanged",
    "elsewhere": "left alone: stored by hummock-hook, held for review or removed",
}


def _import_from(source: Source, path: Path | None, project: str, target: str, *, dry_run: bool, json: bool) -> None:
    """Takes in what a tool keeps. Raises: CommandFailed; typer.Exit with 1 where the service refused a part."""
    if source is Source.MARKDOWN:
        return _index_notes(path, project, target, dry_run=dry_run, json=json)
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
        print_line(json_lib.dumps(_import_in_json(report, source, dry_run=dry_run), ensure_ascii=False, indent=2))
    else:
        _print_import(report, dry_run=dry_run)
    if report.refused_count:
        raise typer.Exit(1)


def _well_known(source: Source) -> Path:
    """Where the tool keeps its files. Raises: CommandFailed."""
    find = READERS[source].well_known
    if find is None:
        raise CommandFailed(f"--from {source} needs the PATH of a file that it has given out")
    return find()


def _store(parts: Iterator[Finding], source: Source, project: str, target: str, *, dry_run: bool) -> Report:
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
            raise typer.Exit(_INTERRUPTED) from None
    return storing.report


def _print_import(report: Report, *, dry_run: bool) -> None:
    """Prints what was learnt of each project and session, and on stderr what was not."""
    for project, sessions in report.projects.items():
        print_line(f"{'would go into' if dry_run else 'into'} {project}: {_counts(_sum(sessions))}")
        named = [(id, counts) for id, counts in sessions.items() if id and _is_learnt(counts)]
        for id, counts in named[:_SHOWN_LINES]:
            print_line(f"  {one_line(counts.title or id)}: {_counts(counts.outcomes)}")
        if len(named) > _SHOWN_LINES:
            print_line(f"  and {len(named) - _SHOWN_LINES} more sessions (--json has all)")
    if report.kinds:
        print_line(f"kinds: {_listed(report.kinds)}")
    if report.left_out:
        print_line(f"left out: {_listed(report.left_out)}")
    _warn_of_wrong("not read", report.wrong, report.wrong_count)
    _warn_of_wrong("refused by the service", report.refused, report.refused_count)
    if report.held:
        note(f"{report.held} are held for review: they read like instructions to a model (`hummock review ls`)")
    for line in secret_sums(_secrets(report)):
        note(line)
    if any(redacted for _, redacted in report.secrets):
        note(HOW_TO_KEEP.format(project=" or ".join(map(shlex.quote, report.projects))))


def _warn_of_wrong(what: str, wrong: Iterable[Wrong], count: int) -> None:
    for one in list(wrong)[:_SHOWN_LINES]:
        warn(f"{what}: {one.where}: {one.reason}")
    if count > _SHOWN_LINES:
        warn(f"{what}: and {count - _SHOWN_LINES} more")


def _is_learnt(counts: SessionCounts) -> bool:
    return bool(counts.outcomes["new"] or counts.outcomes["changed"])


def _sum(sessions: Mapping[str, SessionCounts]) -> Counter[str]:
    return sum((each.outcomes for each in sessions.values()), Counter())


def _counts(outcomes: Counter[str]) -> str:
    return ", ".join(f"{outcomes[name]} {words}" for name, words in _OUTCOMES.items() if outcomes[name])


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))


def _secrets(report: Report) -> list[SecretsFound]:
    found = sorted(report.secrets.items())
    return [SecretsFound(kind=kind, count=count, redacted=redacted) for (kind, redacted), count in found]


def _import_in_json(report: Report, source: Source, *, dry_run: bool) -> dict[str, object]:
    return {
        "from": str(source),
        "dryRun": dry_run,
        **{name: report.total(name) for name in _OUTCOMES},
        "messages": report.messages,
        "held": report.held,
        "kinds": dict(report.kinds),
        "projects": {
            project: {
                **_in_order(_sum(sessions)),
                "sessions": {
                    id: {"title": each.title, **_in_order(each.outcomes)} for id, each in sessions.items() if id
                },
            }
            for project, sessions in report.projects.items()
        },
        "leftOut": dict(report.left_out),
        "wrong": {"count": report.wrong_count, "first": _places(report.wrong)},
        "refused": {"count": report.refused_count, "first": _places(report.refused)},
        "secrets": [plain(each) for each in _secrets(report)],
    }


def _in_order(outcomes: Counter[str]) -> dict[str, int]:
    return {name: outcomes[name] for name in _OUTCOMES}


def _places(wrong: Iterable[Wrong]) -> list[dict[str, str]]:
    return [{"where": one.where, "reason": one.reason} for one in wrong]


def _index_notes(path: Path | None, project: str, target: str, *, dry_run: bool, json: bool) -> None:
    """A folder of Markdown is indexed as a repository is: what is gone from it goes from the project as well."""
    if path is None:
        raise CommandFailed("--from markdown needs the PATH of a folder of notes")
    if not path.is_dir():
        raise CommandFailed(f"{path} is no folder; --from markdown takes a folder of notes")
    into = project or project_of(str(path.resolve()))
    if dry_run:
        return _preview_notes(path, into, target, json=json)
    with connect(target) as service:
        try:
            report = index_repository(service, path, into)
        except KeyboardInterrupt:
            note("interrupted: what was sent is stored; the same command does the rest")
            raise typer.Exit(_INTERRUPTED) from None
        if report.info is not None:
            say_pending(service, into)
    conclude(report, json=json)


def _preview_notes(path: Path, project: str, target: str, *, json: bool) -> None:
    with packages_of("code"):
        from hummock_tools.indexing.sync import preview
    with connect(target) as service, Meter() as meter, reading(path):
        plan, walked = preview(
            path, project, service.channel, on_progress=shown_by(meter), on_skip=lambda path, reason: None
        )
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
