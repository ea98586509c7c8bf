"""`hummock memories watch`: what becomes of a project's memories, line by line."""

from __future__ import annotations

import sys
from typing import Annotated

import grpc
import typer
from google.protobuf.json_format import MessageToJson

from hummock.cli.connection import DEFAULT_TARGET, connect
from hummock.cli.hits import kind_word, title_of
from hummock.cli.options import KindName, OriginName, ProjectOption, TagOption, TargetOption, unsigned
from hummock.cli.output import note, print_line, printable, warn
from hummock.cli.requests import filter_of
from hummock.v1 import memory_pb2 as memory_pb
from hummock.v1 import memory_service_pb2 as pb

__all__ = ["watch"]

_MARKS = {pb.MEMORY_EVENT_TYPE_CREATED: "+", pb.MEMORY_EVENT_TYPE_UPDATED: "~", pb.MEMORY_EVENT_TYPE_DELETED: "-"}


def watch(
    project: ProjectOption,
    kind: Annotated[list[KindName] | None, typer.Option("--kind", help="Of this kind; repeatable.")] = None,
    origin: Annotated[list[OriginName] | None, typer.Option("--origin", help="Of this origin; repeatable.")] = None,
    tag: TagOption = None,
    after: Annotated[
        int | None,
        typer.Option("--after", help="Begin behind this write; the newest one if unset.", callback=unsigned(64)),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print each message as a line of JSON.")] = False,
    target: TargetOption = DEFAULT_TARGET,
) -> None:
    """Show memories as they are stored, changed and removed, until Ctrl-C."""
    request = pb.MemoryServiceWatchRequest(project=project, after_seq=after, filter=filter_of(tag, kind, origin))
    seq = 0
    with connect(target) as service:
        try:
            for news in service.memories.Watch(request):
                seq = news.seq
                if json:
                    print_line(MessageToJson(news, ensure_ascii=False, indent=None))
                else:
                    _show(news)
                # Whoever reads a pipe shall not wait for a full buffer.
                sys.stdout.flush()
        except KeyboardInterrupt:
            note(f"--after {seq} goes on from here")
        except grpc.RpcError:
            if seq:
                note(f"cut off; --after {seq} goes on from here")
            raise


def _show(news: pb.MemoryServiceWatchResponse) -> None:
    match news.WhichOneof("news"):
        case "start":
            note(f"watching behind write {news.seq}; Ctrl-C ends it")
        case "reset":
            warn(f"what happened before write {news.seq} is no longer known; `hummock memories ls` shows what is there")
    for event in news.events.events:
        print_line(_line(event))


def _line(event: pb.MemoryEvent) -> str:
    line = f"{_MARKS.get(event.type, '?')} {event.seq}  {printable(event.id)}"
    if not event.HasField("memory"):
        return line
    origin = memory_pb.Origin.Name(event.memory.origin).removeprefix("ORIGIN_").lower()
    tags = "".join(f" #{printable(tag)}" for tag in event.memory.index.tags)
    title = " ".join(title_of(event.memory).split())
    return f"{line}  {kind_word(event.memory.kind)}/{origin}  {title}{tags}"
