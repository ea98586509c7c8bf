"""`hummock learn`: stores a sentence, or the memories of a file."""

from __future__ import annotations

import sys
import uuid
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from hummock_client.channel import DEFAULT_TARGET
from hummock_client.errors import describe, status_error
from hummock_client.streaming import batches
from hummock_client.v1 import context_service_pb2, memory_pb2
from hummock_tools.cli.connection import CALL_TIMEOUT_S, CommandFailed, Service, connect
from hummock_tools.cli.options import (
    ExpiresOption,
    JsonFlag,
    OriginName,
    ProjectOption,
    TargetOption,
    metadata_of,
    origin_value,
    timestamp,
)
from hummock_tools.cli.output import (
    HOW_TO_KEEP,
    Meter,
    note,
    print_json,
    print_line,
    printable,
    secret_sums,
    warn,
)
from hummock_tools.importing import BadFile, BadLine, lines_of, messages


def learn(
    project: ProjectOption,
    text: Annotated[list[str] | None, typer.Argument(metavar="[TEXT]...", help="Each becomes a memory.")] = None,
    file: Annotated[
        Path | None,
        typer.Option("--file", "-f", help='Learn a Memory in JSON from each line instead; "-" reads stdin.'),
    ] = None,
    title: Annotated[str, typer.Option("--title", help="A name for people.")] = "",
    tag: Annotated[list[str] | None, typer.Option("--tag", help="A tag to give; repeatable.")] = None,
    meta: Annotated[
        list[str] | None, typer.Option("--meta", metavar="NAME=VALUE", help="Metadata to give; repeatable.")
    ] = None,
    expires: ExpiresOption = None,
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
        if title or tag or meta or expires or json or kind != "note" or origin is not OriginName.MANUAL:
            raise typer.BadParameter(
                "--title, --tag, --meta, --expires, --kind, --origin and --json go with TEXT; a line says its own"
            )
        memories, bad_lines = _memories_of(file, keep_going=keep_going)
        with connect(target) as service:
            counts = store(service, project, memories)
        _conclude(counts, bad_lines)
        return
    if kind not in {"note", "entry"}:
        raise typer.BadParameter(f'{kind} is not "note" or "entry"; other kinds are learnt with --file')
    common = memory_pb2.Memory(
        kind=memory_pb2.MEMORY_KIND_ENTRY if kind == "entry" else memory_pb2.MEMORY_KIND_NOTE,
        origin=origin_value(origin),
        metadata=metadata_of(meta),
        expire_time=timestamp(expires),
    )
    request = _learn_request(project, [_sentence(common, each, title, tag or []) for each in text or ()])
    with connect(target) as service:
        response = service.context.Learn(request, timeout=CALL_TIMEOUT_S)
    if json:
        print_json(response)
        return
    for result in response.results:
        print_line(f"{_status_word(result.status)} {printable(result.id)}")
    _say_duplicates(response.results)
    _say_held(response.results, project)
    _say_secrets([each for result in response.results for each in result.secrets], project)


def store(service: Service, project: str, memories: list[memory_pb2.Memory]) -> Counter[str]:
    """Learn the memories as a stream of batches, with a progress bar. Returns counts by status.

    A batch that fails is reported at once and counted as "failed"; the others go on. Secrets are summed up at the end.
    """
    parts = list(batches(memories))
    requests = (context_service_pb2.LearnStreamRequest(learn=_learn_request(project, part)) for part in parts)
    counts: Counter[str] = Counter()
    secrets: list[context_service_pb2.SecretsFound] = []
    held: list[context_service_pb2.LearnResult] = []
    with Meter() as meter:
        done = 0
        for answer in service.context.LearnStream(requests):
            size = len(parts[answer.batch_index])
            if answer.WhichOneof("outcome") == "failed":
                counts["failed"] += size
                why = describe(status_error(answer.failed), "")
                meter.say(f"memories {done + 1} to {done + size} are not stored: {why}")
            counts.update(_status_word(result.status) for result in answer.learnt.results)
            secrets += [each for result in answer.learnt.results for each in result.secrets]
            held += answer.learnt.results
            done += size
            meter.show("learning", done, len(memories))
    _say_held(held, project)
    _say_secrets(secrets, project)
    return counts


def _say_duplicates(results: Iterable[context_service_pb2.LearnResult]) -> None:
    """Prints the duplicates; nothing if everything is new."""
    for result in results:
        if result.duplicate_of:
            note(printable(f"memory {result.duplicate_of} says the same, word for word; nothing new was stored"))


def _say_held(results: Iterable[context_service_pb2.LearnResult], project: str) -> None:
    """Prints how many memories are held for review, by kind; nothing if none is."""
    families = Counter(family for result in results for family in result.held_for)
    if families:
        kinds = ", ".join(f"{count} {family}" for family, count in families.most_common())
        note(printable(f"held for review, for they read like instructions to a model: {kinds}"))
        note(printable(f"`hummock review ls --project {project}` shows them; none is recalled until it is approved"))


def _say_secrets(found: Sequence[context_service_pb2.SecretsFound], project: str) -> None:
    for line in secret_sums(found):
        note(printable(line))
    if any(each.redacted for each in found):
        note(printable(HOW_TO_KEEP.format(project=project)))


def _learn_request(project: str, memories: Sequence[memory_pb2.Memory]) -> context_service_pb2.LearnRequest:
    """Build a LearnRequest with its own id, so that a repeated delivery is one write."""
    return context_service_pb2.LearnRequest(project=project, request_id=str(uuid.uuid4()), memories=memories)


def _memories_of(file: Path, *, keep_going: bool) -> tuple[list[memory_pb2.Memory], list[BadLine]]:
    """All of the file before anything is sent: a wrong line is found while nothing is stored yet."""
    name = "stdin" if str(file) == "-" else str(file)
    memories: list[memory_pb2.Memory] = []
    bad_lines: list[BadLine] = []
    try:
        with sys.stdin.buffer if name == "stdin" else file.open("rb") as opened:
            for parsed in messages(lines_of(opened), memory_pb2.Memory):
                if not isinstance(parsed, BadLine):
                    memories.append(parsed[1])
                elif keep_going:
                    bad_lines.append(parsed)
                    warn(f"{name}, {parsed.place}: {parsed.reason}")
                else:
                    raise CommandFailed(
                        f"{name}, {parsed.place}: {parsed.reason}; nothing was stored (--continue passes over it)"
                    )
    except BadFile as error:
        raise CommandFailed(f"{name}, line {error.number}: {error}; nothing was stored") from error
    except OSError as error:
        raise CommandFailed(f"{name} cannot be read: {error.strerror}") from error
    return memories, bad_lines


def _conclude(counts: Counter[str], bad_lines: list[BadLine]) -> None:
    said = [f"{count} {status}" for status, count in sorted(counts.items())]
    if bad_lines:
        said.append(f"{len(bad_lines)} lines passed over")
    note(", ".join(said) or "nothing to learn")
    if counts["failed"] or bad_lines:
        raise typer.Exit(1)


def _sentence(common: memory_pb2.Memory, text: str, title: str, tags: list[str]) -> memory_pb2.Memory:
    try:
        memory = memory_pb2.Memory(title=title, tags=tags, content=text)
    except UnicodeEncodeError:
        raise typer.BadParameter("is not valid UTF-8") from None
    memory.MergeFrom(common)
    return memory


def _status_word(status: context_service_pb2.LearnStatus.ValueType) -> str:
    return context_service_pb2.LearnStatus.Name(status).removeprefix("LEARN_STATUS_").lower()
