"""`hummock export` and `hummock import`: a project as a file of JSON lines, and files of others into a project."""

from __future__ import annotations

import json as json_lib
import sys
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer
from google.protobuf.json_format import MessageToJson

from hummock.cli.connection import CALL_TIMEOUT_S, CommandFailed, Service, connect
from hummock.cli.options import TargetOption, utf8
from hummock.cli.output import Meter, note, print_line, printable, warn
from hummock.importing import BadLine, FileFormat, Line, OtherProject, Part, read_file
from hummock.v1 import project_service_pb2 as pb
from hummock.v1.admin_service_pb2 import GetStatusRequest
from hummock.v1.transfer_pb2 import TransferRecord
from hummock_client.channel import DEFAULT_TARGET
from hummock_client.errors import HummockCallError, describe, status_error
from hummock_client.streaming import IMPORT, exchange, import_messages

_INTERRUPTED = 130
_SHOWN_FAILURES = 20


def export(
    project: Annotated[str, typer.Argument(metavar="PROJECT", help="The project to write out.", callback=utf8)],
    vectors: Annotated[bool, typer.Option("--vectors", help="With vectors, for a service of the same model.")] = False,
    target: TargetOption = DEFAULT_TARGET,
) -> None:
    """Write all memories of a project to stdout, a line of JSON each, for `hummock import`."""
    request = pb.ExportProjectRequest(project=project, with_vectors=vectors)
    done = 0
    with connect(target) as service, Meter() as meter:
        for message in service.projects.ExportProject(request):
            for record in message.records:
                # UTF-8 whatever the terminal speaks.
                sys.stdout.buffer.write(MessageToJson(record, ensure_ascii=False, indent=None).encode() + b"\n")
                done += record.HasField("memory")
            meter.show("exporting", done, max(message.memory_count, done))
    sys.stdout.buffer.flush()


def import_file(
    project: Annotated[str, typer.Argument(metavar="PROJECT", help="The project to store in.", callback=utf8)],
    file: Annotated[Path, typer.Argument(metavar="FILE", help='What to take in; "-" reads stdin.')],
    format: Annotated[FileFormat, typer.Option("--format", help="What the file is.")] = FileFormat.JSONL,
    vectors: Annotated[
        bool,
        typer.Option("--vectors", help="legacy: take the file's vectors; the service's model must have made them."),
    ] = False,
    project_key: Annotated[
        str, typer.Option("--project-key", help="legacy: take records of this projectKey; PROJECT if unset.")
    ] = "",
    json: Annotated[bool, typer.Option("--json", help="Print the outcome as JSON.")] = False,
    target: TargetOption = DEFAULT_TARGET,
) -> None:
    """Take memories into a project. Doing it again changes nothing, so what was cut off can be done again."""
    if format is not FileFormat.LEGACY and (vectors or project_key):
        raise typer.BadParameter("--vectors and --project-key go with --format legacy")
    run = _Run(name="stdin" if str(file) == "-" else str(file))
    try:
        with ExitStack() as stack:
            lines = sys.stdin.buffer if run.name == "stdin" else stack.enter_context(file.open("rb"))
            service = stack.enter_context(connect(target))
            emb_space = _emb_space(service) if vectors else ""
            run.send(service, target, project, read_file(lines, format, project_key or project, emb_space))
    except OSError as error:
        raise CommandFailed(f"{run.name} cannot be read: {error.strerror}") from error
    except KeyboardInterrupt:
        note(f"interrupted: what stands up to line {run.stored_line} is stored; the same command does the rest")
        raise typer.Exit(_INTERRUPTED) from None
    run.report(is_export=format is FileFormat.JSONL, as_json=json)
    if run.failures:
        raise typer.Exit(1)


@dataclass(slots=True, kw_only=True)
class _Run:
    """One import, and what became of it so far.

    Attributes:
        name: Of the file, for people.
        counts: Memories by what became of them.
        failures: Line and reason of what was not taken in.
        stored_line: All lines up to it have been answered.
        others: Records of other projects by their key.
        unused_vectors: Records whose vectors were left out.
        memories: Memories that were read.
        end: How many the file says that it holds.
    """

    name: str
    counts: Counter[str] = field(default_factory=Counter)
    failures: list[tuple[int, str]] = field(default_factory=list)
    stored_line: int = 0
    others: Counter[str] = field(default_factory=Counter)
    unused_vectors: int = 0
    memories: int = 0
    end: int | None = None
    _sent: deque[int] = field(default_factory=deque)
    _shown: int = 0

    def send(self, service: Service, target: str, project: str, parts: Iterable[Part]) -> None:
        """Sends all parts, with a progress bar. Raises: CommandFailed."""
        try:
            with Meter() as meter:
                messages = self._messages(project, parts)
                for reply in exchange(service.channel, (), IMPORT, pb.ImportProjectResponse, messages, None):
                    self._count(reply)
                    self._show_failures(meter)
                    meter.show("lines", self.stored_line, None)
                self._show_failures(meter)
        except HummockCallError as error:
            stored = f" (what stands up to line {self.stored_line} is stored)" if self.stored_line else ""
            raise CommandFailed(describe(error, target) + stored) from error

    def report(self, *, is_export: bool, as_json: bool) -> None:
        """What became of the file."""
        if as_json:
            failures = [{"line": number, "reason": reason} for number, reason in sorted(self.failures)]
            left_out = {"otherProjects": dict(self.others), "vectors": self.unused_vectors}
            found = {**self.counts, "failures": failures, "leftOut": left_out}
            print_line(printable(json_lib.dumps(found, ensure_ascii=False)))
        # They are found by words already.
        said = [f"{count} {_IN_WORDS.get(name, name)}" for name, count in self.counts.items() if count]
        if self.failures:
            said.append(f"{len(self.failures)} lines not taken in")
        note(", ".join(said) or "nothing to import")
        if len(self.failures) > self._shown:
            warn(f"and {len(self.failures) - self._shown} more lines are wrong")
        for key, count in self.others.items():
            warn(f"{count} records of projectKey {printable(key)} were left out; --project-key takes them")
        if self.unused_vectors:
            note(f"{self.unused_vectors} vectors were left out; --vectors takes them, if the service's model made them")
        if is_export and self.end != self.memories:
            warn(
                f"{self.name} was cut off: " + ("it has no end" if self.end is None else f"it says {self.end} memories")
            )

    def _messages(self, project: str, parts: Iterable[Part]) -> Iterator[pb.ImportProjectRequest]:
        for message in import_messages(project, self._records(parts)):
            self._sent.append(message.lines[-1].number if message.lines else 0)
            yield message

    def _records(self, parts: Iterable[Part]) -> Iterator[tuple[int, TransferRecord]]:
        for part in parts:
            match part:
                case BadLine(number=number, reason=reason):
                    self.failures.append((number, reason))
                case OtherProject(key=key):
                    self.others[key] += 1
                case Line(number=number, record=record):
                    self.unused_vectors += part.has_unused_vector
                    self.memories += record.HasField("memory")
                    if record.HasField("end"):
                        self.end = record.end.memory_count
                    yield number, record

    def _count(self, reply: pb.ImportProjectResponse) -> None:
        self.stored_line = max(self.stored_line, self._sent.popleft())
        self.counts["created"] += reply.created_count
        self.counts["updated"] += reply.updated_count
        self.counts["unchanged"] += reply.unchanged_count
        self.counts["removed"] += reply.removed_count
        self.counts["embedded"] += reply.embedded_count
        self.counts["sessions"] += reply.session_count
        self.counts["messages"] += reply.message_count
        for failure in reply.failures:
            self.failures.append((failure.number, describe(status_error(failure.status), "")))

    def _show_failures(self, meter: Meter) -> None:
        while self._shown < min(len(self.failures), _SHOWN_FAILURES):
            number, reason = self.failures[self._shown]
            meter.say(f"{self.name}, line {number}: {printable(reason)}")
            self._shown += 1


_IN_WORDS = {"embedded": "being embedded"}


def _emb_space(service: Service) -> str:
    """The space of the service's model."""
    return str(service.admin.GetStatus(GetStatusRequest(), timeout=CALL_TIMEOUT_S).model.emb_space)
