"""`hummock learn`: sentences from the command line, or records from a file."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from hummock.cli.connection import CALL_TIMEOUT_S, DEFAULT_TARGET, Service, connect
from hummock.cli.failure import CommandFailed
from hummock.cli.meter import Meter
from hummock.cli.options import JsonFlag, OriginName, ProjectOption, TargetOption
from hummock.cli.output import note, print_json, print_line, printable, warn
from hummock.cli.records import BadLine, learn_request, parse_lines
from hummock.cli.requests import origin_value
from hummock.v1 import context_service_pb2 as pb
from hummock.v1 import memory_pb2 as memory_pb
from hummock_client.batches import batches

__all__ = ["learn", "store"]


def learn(
    project: ProjectOption,
    text: Annotated[list[str] | None, typer.Argument(metavar="[TEXT]...", help="Each becomes a memory.")] = None,
    file: Annotated[
        Path | None,
        typer.Option("--file", "-f", help='Learn a MemoryInput in JSON from each line instead; "-" reads stdin.'),
    ] = None,
    title: Annotated[str, typer.Option("--title", help="A name for people.")] = "",
    tag: Annotated[list[str] | None, typer.Option("--tag", help="A tag to give; repeatable.")] = None,
    kind: Annotated[str, typer.Option("--kind", help='"note" or "entry".')] = "note",
    origin: Annotated[OriginName, typer.Option("--origin", help="Who it comes from.")] = OriginName.MANUAL,
    keep_going: Annotated[bool, typer.Option("--continue", help="Pass over lines that are wrong.")] = False,
    json: JsonFlag = False,
    target: TargetOption = DEFAULT_TARGET,
) -> None:
    """Store memories; when it ends they are durable and can be recalled."""
    if bool(text) == (file is not None):
        raise typer.BadParameter("give either TEXT or --file")
    if file is not None:
        if title or tag or json or kind != "note" or origin is not OriginName.MANUAL:
            raise typer.BadParameter("--title, --tag, --kind, --origin and --json go with TEXT; a line says its own")
        memories, bad_lines = _read(file, keep_going=keep_going)
        with connect(target) as service:
            counts = store(service, project, memories)
        _report(counts, bad_lines)
        return
    if kind not in {"note", "entry"}:
        raise typer.BadParameter(f'{kind} is not "note" or "entry"; other kinds are learnt with --file')
    request = learn_request(project, [_sentence(each, title, tag or [], kind, origin) for each in text or ()])
    with connect(target) as service:
        response = service.context.Learn(request, timeout=CALL_TIMEOUT_S)
    if json:
        print_json(response)
        return
    for result in response.results:
        print_line(f"{_status_word(result.status)} {printable(result.id)}")


def store(service: Service, project: str, memories: list[memory_pb.MemoryInput]) -> Counter[str]:
    """Learn the memories as a stream of batches, with a progress bar; what became of them, by status.

    A batch that fails is reported at once and counted as "failed"; the others go on.
    """
    parts = list(batches(memories))
    requests = (pb.LearnStreamRequest(batch=learn_request(project, part)) for part in parts)
    counts: Counter[str] = Counter()
    with Meter() as meter:
        done = 0
        for answer in service.context.LearnStream(requests):
            size = len(parts[answer.batch_index])
            if answer.WhichOneof("outcome") == "failed":
                counts["failed"] += size
                where = f"{answer.failed.field}: " if answer.failed.field else ""
                meter.say(f"memories {done + 1} to {done + size} are not stored: {where}{answer.failed.message}")
            counts.update(_status_word(result.status) for result in answer.stored.results)
            done += size
            meter.show("learning", done, len(memories))
    return counts


def _read(file: Path, *, keep_going: bool) -> tuple[list[memory_pb.MemoryInput], list[BadLine]]:
    """All of the file before anything is sent: a wrong line is found while nothing is stored yet."""
    name = "stdin" if str(file) == "-" else str(file)
    memories: list[memory_pb.MemoryInput] = []
    bad_lines: list[BadLine] = []
    try:
        with sys.stdin.buffer if name == "stdin" else file.open("rb") as lines:
            for parsed in parse_lines(lines):
                if not isinstance(parsed, BadLine):
                    memories.append(parsed)
                elif keep_going:
                    bad_lines.append(parsed)
                    warn(f"{name}, line {parsed.number}: {parsed.reason}")
                else:
                    raise CommandFailed(
                        f"{name}, line {parsed.number}: {parsed.reason}; nothing was stored (--continue passes over it)"
                    )
    except OSError as error:
        raise CommandFailed(f"{name} cannot be read: {error.strerror}") from error
    return memories, bad_lines


def _report(counts: Counter[str], bad_lines: list[BadLine]) -> None:
    said = [f"{count} {status}" for status, count in sorted(counts.items())]
    if bad_lines:
        said.append(f"{len(bad_lines)} lines passed over")
    note(", ".join(said) or "nothing to learn")
    if counts["failed"] or bad_lines:
        raise typer.Exit(1)


def _sentence(text: str, title: str, tags: list[str], kind: str, origin: OriginName) -> memory_pb.MemoryInput:
    try:
        return memory_pb.MemoryInput(
            kind=memory_pb.MEMORY_KIND_ENTRY if kind == "entry" else memory_pb.MEMORY_KIND_NOTE,
            origin=origin_value(origin),
            index=memory_pb.MemoryIndex(title=title, tags=tags),
            payload=memory_pb.MemoryPayload(content=text),
        )
    except UnicodeEncodeError:
        raise typer.BadParameter("is not valid UTF-8") from None


def _status_word(status: pb.LearnStatus.ValueType) -> str:
    return pb.LearnStatus.Name(status).removeprefix("LEARN_STATUS_").lower()
