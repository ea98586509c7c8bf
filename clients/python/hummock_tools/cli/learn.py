"""`hummock learn`: stores a sentence, or the memories of a file."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from hummock_client.channel import DEFAULT_TARGET
from hummock_client.errors import describe, status_error
from hummock_client.requests import enum_word, new_request_id
from hummock_client.streaming import batches
from hummock_client.time_zone import own_zone
from hummock_client.v1 import context_service_pb2 as pb
from hummock_client.v1 import memory_pb2
from hummock_tools.cli import options
from hummock_tools.cli.connection import CommandFailed, Service, connect
from hummock_tools.cli.output import HOW_TO_KEEP, Meter, ask, note, print_line, secret_sums, warn
from hummock_tools.importing.json_items import BadFile, BadLine, lines_of, messages


def learn(
    project: options.Project,
    text: Annotated[list[str] | None, Argument(metavar="[TEXT]...", help="Each becomes a memory.")] = None,
    file: Annotated[
        Path | None, Option("--file", "-f", help='Learn a Memory in JSON from each line instead; "-" reads stdin.')
    ] = None,
    title: Annotated[str, Option("--title", help="A name for people.")] = "",
    tag: Annotated[list[str] | None, Option("--tag", help="A tag to give; repeatable.")] = None,
    meta: Annotated[
        list[str] | None, Option("--meta", metavar="NAME=VALUE", help="Metadata to give; repeatable.")
    ] = None,
    expires: options.Expires = None,
    pin: Annotated[bool, Option("--pin", help="Show it in every prompt, whatever is asked.")] = False,
    kind: Annotated[str, Option("--kind", help='"note" or "entry".')] = "note",
    origin: Annotated[options.OriginName, Option("--origin", help="Who it comes from.")] = options.OriginName.MANUAL,
    keep_going: Annotated[bool, Option("--continue", help="Pass over lines that are wrong.")] = False,
    json: options.Json = False,
    target: options.Target = DEFAULT_TARGET,
) -> None:
    """Store memories; when it ends they are durable and can be recalled."""
    if bool(text) == (file is not None):
        raise typer.BadParameter("give either TEXT or --file")
    if file is not None:
        if title or tag or meta or expires or pin or json or kind != "note" or origin is not options.OriginName.MANUAL:
            raise typer.BadParameter(
                "--title, --tag, --meta, --expires, --pin, --kind, --origin and --json go with TEXT, "
                "not with a file, whose lines say their own"
            )
        memories, bad_lines = _memories_of(file, keep_going=keep_going)
        with connect(target) as service:
            counts = store(service, project, memories)
        return _conclude(counts, bad_lines)
    if kind not in {"note", "entry"}:
        raise typer.BadParameter(f'{kind} is not "note" or "entry"; other kinds are learnt with --file')
    common = memory_pb2.Memory(
        kind=memory_pb2.MEMORY_KIND_ENTRY if kind == "entry" else memory_pb2.MEMORY_KIND_NOTE,
        origin=options.origin_value(origin),
        metadata=options.metadata_of(meta),
        expire_time=options.timestamp(expires),
        pinned=pin,
        time_zone=own_zone(),
    )
    request = _learn_request(project, [_sentence(common, each, title, tag or []) for each in text or ()])
    response = ask(target, lambda service: service.context.Learn, request, json=json)
    for result in response.results:
        print_line(f"{_status_word(result)} {result.id}")
    for result in response.results:
        if result.duplicate_of:
            note(f"memory {result.duplicate_of} says the same, word for word; nothing new was stored")
    _say_held_and_secrets(response.results, project)


def store(service: Service, project: str, memories: Sequence[memory_pb2.Memory]) -> Counter[str]:
    """Learn the memories as a stream of batches, with a progress bar. Returns counts by status.

    A batch that fails is reported at once and counted as "failed"; the others go on. Secrets are summed up at the end.
    """
    parts = list(batches(memories))
    requests = (pb.LearnStreamRequest(learn=_learn_request(project, part)) for part in parts)
    counts: Counter[str] = Counter()
    results: list[pb.LearnResult] = []
    with Meter() as meter:
        done = 0
        for answer in service.context.LearnStream(requests):
            size = len(parts[answer.batch_index])
            if answer.WhichOneof("outcome") == "failed":
                counts["failed"] += size
                why = describe(status_error(answer.failed), "")
                meter.say(f"memories {done + 1} to {done + size} are not stored: {why}")
            results += answer.learnt.results
            done += size
            meter.show("learning", done, len(memories))
    counts.update(map(_status_word, results))
    _say_held_and_secrets(results, project)
    return counts


def _say_held_and_secrets(results: Sequence[pb.LearnResult], project: str) -> None:
    """Prints what was not pinned or is held for review, and how many secrets were found, by kind."""
    unpinned = [result.id for result in results if result.pin_ignored]
    if unpinned:
        note(f"stored, but not pinned, for nobody vouches for it (origin or trust): {', '.join(unpinned)}")
        note(f"`hummock memories pin --project {project} ID...` pins it")
    families = Counter(family for result in results for family in result.held_for)
    if families:
        kinds = ", ".join(f"{count} {family}" for family, count in families.most_common())
        note(f"held for review, for they read like instructions to a model: {kinds}")
        note(f"`hummock review ls --project {project}` shows them; none is recalled until it is approved")
    found = [each for result in results for each in result.secrets]
    for line in secret_sums(found):
        note(line)
    if any(each.redacted for each in found):
        note(HOW_TO_KEEP.format(project=project))


def _learn_request(project: str, memories: Sequence[memory_pb2.Memory]) -> pb.LearnRequest:
    return pb.LearnRequest(project=project, request_id=new_request_id(), memories=memories)


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
                    said = f"{name}, {parsed.place}: {parsed.reason}"
                    raise CommandFailed(f"{said}; nothing was stored (--continue passes over it)")
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


def _status_word(result: pb.LearnResult) -> str:
    return enum_word(pb.LearnStatus, result.status)
