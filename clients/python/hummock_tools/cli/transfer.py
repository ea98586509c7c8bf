"""`hummock save project` and `hummock import`: a project as a file of JSON lines, and other files into a project."""

from __future__ import annotations

import json as json_lib
import sys
from collections import Counter, deque
from collections.abc import Iterable, Iterator
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
from hummock_client.v1.transfer_pb2 import TransferRecord
from hummock_tools.cli import options
from hummock_tools.cli.connection import CALL_TIMEOUT_S, CommandFailed, Service, connect
from hummock_tools.cli.import_from import INTERRUPTED, import_from
from hummock_tools.cli.output import Meter, note, print_line, warn
from hummock_tools.importing.formats import FileFormat, read_file
from hummock_tools.importing.json_items import BadLine, Line, NotWhole, OtherProject, Part, Place, Retired, lines_of
from hummock_tools.importing.sources import Source

_SHOWN_FAILURES = 20


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
        return import_from(source, path, into or environ.get("HUMMOCK_PROJECT", ""), target, dry_run=dry_run, json=json)
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
        raise typer.Exit(INTERRUPTED) from None
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
        while self._shown < min(len(self.failures), _SHOWN_FAILURES):
            place, reason = self.failures[self._shown]
            meter.say(f"{self.name}, {place}: {reason}")
            self._shown += 1


def _in_fields(place: Place) -> dict[str, int]:
    return {"line": place.line} | ({"record": place.record} if place.record else {})


_COUNTED = ["created", "updated", "unchanged", "removed", "embedded", "sessions", "messages", "events", "expired"]
_IN_WORDS = {"embedded": "being embedded", "events": "learning events", "expired": "left out as expired"}
