"""`hummock memories`: the garden."""

from __future__ import annotations

import uuid
from typing import Annotated

import typer
from google.protobuf.field_mask_pb2 import FieldMask
from rich.text import Text

from hummock.cli.connection import CALL_TIMEOUT_S, DEFAULT_TARGET, connect
from hummock.cli.hits import kind_word, title_of
from hummock.cli.options import JsonFlag, KindName, OriginName, ProjectOption, TagOption, TargetOption
from hummock.cli.output import new_table, note, print_json, print_line, print_table, printable, warn
from hummock.cli.requests import filter_of, origin_value
from hummock.cli.watch import watch
from hummock.v1 import memory_pb2 as memory_pb
from hummock.v1 import memory_service_pb2 as pb

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, help="Read, change and remove memories one by one, and watch them.")
app.command()(watch)

IdsArgument = Annotated[list[str], typer.Argument(metavar="ID...", help="Ids of memories.")]


@app.command("ls")
def ls(
    project: ProjectOption,
    kind: Annotated[list[KindName] | None, typer.Option("--kind", help="Of this kind; repeatable.")] = None,
    origin: Annotated[list[OriginName] | None, typer.Option("--origin", help="Of this origin; repeatable.")] = None,
    tag: TagOption = None,
    session: Annotated[list[str] | None, typer.Option("--session", help="Of this session; repeatable.")] = None,
    contains: Annotated[str, typer.Option("--contains", help="Only with this string in title, tags or text.")] = "",
    newest: Annotated[bool, typer.Option("--newest", help="What was written last first.")] = False,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000, help="Memories of one page.")] = 100,
    page: Annotated[str, typer.Option("--page", help="The token that the page before ended with.")] = "",
    json: JsonFlag = False,
    target: TargetOption = DEFAULT_TARGET,
) -> None:
    """List memories, oldest write first."""
    request = pb.MemoryServiceListRequest(
        project=project,
        filter=filter_of(tag, kind, origin, session),
        page_size=limit,
        page_token=page,
        order=pb.LIST_ORDER_NEWEST_FIRST if newest else pb.LIST_ORDER_UNSPECIFIED,
        contains=contains,
    )
    with connect(target) as service:
        response = service.memories.List(request, timeout=CALL_TIMEOUT_S)
    if json:
        print_json(response)
        return
    table = new_table()
    table.add_column("kind", no_wrap=True)
    table.add_column("id", ratio=2, overflow="fold")
    table.add_column("title", ratio=3, overflow="fold")
    table.add_column("tokens", justify="right", no_wrap=True)
    for memory in response.memories:
        table.add_row(
            kind_word(memory.kind), Text(printable(memory.id)), Text(title_of(memory)), str(memory.token_count)
        )
    if response.memories:
        print_table(table)
    else:
        note("no memories")
    if response.next_page_token:
        note(f"there are more: --page {response.next_page_token}")


@app.command("get")
def get(
    ids: IdsArgument, project: ProjectOption, json: JsonFlag = False, target: TargetOption = DEFAULT_TARGET
) -> None:
    """Print memories in full."""
    with connect(target) as service:
        if len(ids) == 1:
            one = service.memories.Get(pb.MemoryServiceGetRequest(project=project, id=ids[0]), timeout=CALL_TIMEOUT_S)
            if json:
                print_json(one)
            else:
                _print_memory(one.memory)
            return
        several = service.memories.BatchGet(
            pb.MemoryServiceBatchGetRequest(project=project, ids=ids), timeout=CALL_TIMEOUT_S
        )
    if json:
        print_json(several)
        return
    for memory in several.memories:
        _print_memory(memory)
    _complain(list(several.missing_ids))


@app.command("edit")
def edit(
    memory_id: Annotated[str, typer.Argument(metavar="ID", help="Id of the memory.")],
    project: ProjectOption,
    title: Annotated[str | None, typer.Option("--title", help="Its new title.")] = None,
    summary: Annotated[str | None, typer.Option("--summary", help="Its new summary.")] = None,
    content: Annotated[str | None, typer.Option("--content", help="Its new text.")] = None,
    tag: Annotated[list[str] | None, typer.Option("--tag", help="Its new tags, all of them; repeatable.")] = None,
    origin: Annotated[OriginName | None, typer.Option("--origin", help="Its new origin.")] = None,
    emotion: Annotated[str | None, typer.Option("--emotion", help='Its new feeling, for example "joy".')] = None,
    trust: Annotated[float | None, typer.Option("--trust", help="How far it is believed, 0 to 1.")] = None,
    json: JsonFlag = False,
    target: TargetOption = DEFAULT_TARGET,
) -> None:
    """Change what is given and leave the rest."""
    changes = {
        "index.title": title,
        "index.summary": summary,
        "index.tags": tag or None,
        "payload.content": content,
        "origin": origin,
        "emotion_label": emotion,
        "trust": trust,
    }
    paths = [path for path, value in changes.items() if value is not None]
    if not paths:
        raise typer.BadParameter(
            "nothing to change: give --title, --summary, --content, --tag, --origin, --emotion or --trust"
        )
    memory = memory_pb.MemoryInput(
        id=memory_id,
        index=memory_pb.MemoryIndex(title=title or "", summary=summary or "", tags=tag or ()),
        payload=memory_pb.MemoryPayload(content=content or ""),
        origin=origin_value(origin) if origin else memory_pb.ORIGIN_UNSPECIFIED,
        emotion_label=emotion or "",
        trust=trust,
    )
    request = pb.MemoryServiceUpdateRequest(
        project=project, request_id=str(uuid.uuid4()), memory=memory, update_mask=FieldMask(paths=paths)
    )
    with connect(target) as service:
        response = service.memories.Update(request, timeout=CALL_TIMEOUT_S)
    if json:
        print_json(response)
    else:
        _print_memory(response.memory)


@app.command("rm")
def rm(ids: IdsArgument, project: ProjectOption, json: JsonFlag = False, target: TargetOption = DEFAULT_TARGET) -> None:
    """Remove memories."""
    request = pb.MemoryServiceDeleteRequest(project=project, request_id=str(uuid.uuid4()), ids=ids)
    with connect(target) as service:
        response = service.memories.Delete(request, timeout=CALL_TIMEOUT_S)
    if json:
        print_json(response)
        return
    print_line(f"{response.deleted_count} removed")
    _complain(list(response.missing_ids))


def _complain(missing_ids: list[str]) -> None:
    for missing in missing_ids:
        warn(f"memory {printable(missing)} does not exist in this project")
    if missing_ids:
        raise typer.Exit(1)


def _print_memory(memory: memory_pb.Memory) -> None:
    origin = memory_pb.Origin.Name(memory.origin).removeprefix("ORIGIN_").lower()
    tags = " ".join(f"#{tag}" for tag in memory.index.tags)
    facts = [kind_word(memory.kind), origin, f"{memory.token_count} tokens", memory.create_time.ToJsonString(), tags]
    print_line(printable(memory.id))
    print_line(printable("  " + " · ".join(fact for fact in facts if fact)))
    for text in (memory.index.title, memory.index.summary, *_body(memory.payload)):
        if text:
            print_line(printable(text))
    print_line("")


def _body(payload: memory_pb.MemoryPayload) -> list[str]:
    match payload.WhichOneof("detail"):
        case "learning_record":
            record = payload.learning_record
            return [record.question, record.answer, *record.source_files, payload.content]
        case "domain_knowledge":
            domain = payload.domain_knowledge
            return [" ".join((domain.domain, *domain.aliases)), domain.summary, *domain.key_files, payload.content]
        case "code_fragment":
            fragment = payload.code_fragment
            return [f"{fragment.path}:{fragment.start_line}-{fragment.end_line}", payload.content]
    return [payload.content]
