"""`hummock memories` and `hummock review`: what is stored or held, shown, changed, decided on and watched."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from typing import Annotated

import grpc
import typer
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.message import Message
from rich.text import Text

from hummock_client.channel import DEFAULT_TARGET
from hummock_client.v1 import memory_pb2, memory_service_pb2
from hummock_client.v1 import memory_service_pb2 as pb
from hummock_tools.cli.connection import CALL_TIMEOUT_S, Service, connect
from hummock_tools.cli.options import (
    JsonFlag,
    JsonLinesFlag,
    KindName,
    MetaOption,
    OriginName,
    PageOption,
    ProjectOption,
    SinceOption,
    TagOption,
    TargetOption,
    UntilOption,
    filter_of,
    origin_value,
    unsigned,
)
from hummock_tools.cli.output import (
    confirm,
    kind_word,
    new_table,
    note,
    one_line,
    print_json,
    print_json_line,
    print_line,
    print_page,
    printable,
    title_of,
    warn,
)

app = typer.Typer(no_args_is_help=True, help="Read, change and remove memories one by one, and watch them.")

_MARKS = {
    memory_service_pb2.MEMORY_EVENT_TYPE_CREATED: "+",
    memory_service_pb2.MEMORY_EVENT_TYPE_UPDATED: "~",
    memory_service_pb2.MEMORY_EVENT_TYPE_DELETED: "-",
}

KindsOption = Annotated[list[KindName] | None, typer.Option("--kind", help="Of this kind; repeatable.")]
OriginsOption = Annotated[list[OriginName] | None, typer.Option("--origin", help="Of this origin; repeatable.")]
WritersOption = Annotated[
    list[str] | None, typer.Option("--writer", help="Written with the access token of this name; repeatable.")
]
SessionsOption = Annotated[list[str] | None, typer.Option("--session", help="Of this session; repeatable.")]
IdsArgument = Annotated[list[str], typer.Argument(metavar="ID...", help="Ids of memories.")]


@app.command("watch")
def watch(
    project: ProjectOption,
    kind: KindsOption = None,
    origin: OriginsOption = None,
    tag: TagOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    after: Annotated[
        int | None,
        typer.Option("--after", help="Begin behind this write; the newest one if unset.", callback=unsigned(64)),
    ] = None,
    json: JsonLinesFlag = False,
    target: TargetOption = DEFAULT_TARGET,
) -> None:
    """Show memories as they are stored, changed and removed, until Ctrl-C."""
    request = memory_service_pb2.WatchMemoriesRequest(
        project=project, after_seq=after, filter=filter_of(tag, kind, origin, since=since, until=until)
    )
    seq = 0
    with connect(target) as service:
        try:
            for news in service.memories.WatchMemories(request):
                seq = news.seq
                if json:
                    print_json_line(news)
                else:
                    _print_news(news)
        except KeyboardInterrupt:
            note(f"--after {seq} goes on from here")
        except grpc.RpcError:
            if seq:
                note(f"cut off; --after {seq} goes on from here")
            raise


@app.command("ls")
def ls(
    project: ProjectOption,
    kind: KindsOption = None,
    origin: OriginsOption = None,
    tag: TagOption = None,
    writer: WritersOption = None,
    meta: MetaOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    session: SessionsOption = None,
    contains: Annotated[str, typer.Option("--contains", help="Only with this string in title, tags or text.")] = "",
    newest: Annotated[bool, typer.Option("--newest", help="What was written last first.")] = False,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000, help="Memories of one page.")] = 100,
    page: PageOption = "",
    json: JsonFlag = False,
    target: TargetOption = DEFAULT_TARGET,
) -> None:
    """List memories, oldest write first."""
    where = filter_of(tag, kind, origin, session, since, until, meta)
    where.writers.extend(writer or ())
    request = memory_service_pb2.ListMemoriesRequest(
        project=project,
        filter=where,
        page_size=limit,
        page_token=page,
        order=memory_service_pb2.LIST_ORDER_NEWEST_FIRST if newest else memory_service_pb2.LIST_ORDER_UNSPECIFIED,
        contains=contains,
    )
    with connect(target) as service:
        response = service.memories.ListMemories(request, timeout=CALL_TIMEOUT_S)
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
    print_page(table, "no memories", response.next_page_token)


@app.command("get")
def get(
    ids: IdsArgument, project: ProjectOption, json: JsonFlag = False, target: TargetOption = DEFAULT_TARGET
) -> None:
    """Print memories in full."""
    with connect(target) as service:
        if len(ids) == 1:
            one = service.memories.GetMemory(
                memory_service_pb2.GetMemoryRequest(project=project, id=ids[0]), timeout=CALL_TIMEOUT_S
            )
            if json:
                print_json(one)
            else:
                _print_memory(one.memory)
            return
        several = service.memories.BatchGetMemories(
            memory_service_pb2.BatchGetMemoriesRequest(project=project, ids=ids), timeout=CALL_TIMEOUT_S
        )
    if json:
        print_json(several)
        return
    for memory in several.memories:
        _print_memory(memory)
    warn_of_missing(list(several.missing_ids))


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
        "title": title,
        "summary": summary,
        "tags": tag or None,
        "content": content,
        "origin": origin,
        "emotion_label": emotion,
        "trust": trust,
    }
    paths = [path for path, value in changes.items() if value is not None]
    if not paths:
        raise typer.BadParameter(
            "nothing to change: give --title, --summary, --content, --tag, --origin, --emotion or --trust"
        )
    memory = memory_pb2.Memory(
        id=memory_id,
        title=title or "",
        summary=summary or "",
        tags=tag or (),
        content=content or "",
        origin=origin_value(origin) if origin else memory_pb2.ORIGIN_UNSPECIFIED,
        emotion_label=emotion or "",
        trust=trust,
    )
    request = memory_service_pb2.UpdateMemoryRequest(
        project=project, request_id=str(uuid.uuid4()), memory=memory, update_mask=FieldMask(paths=paths)
    )
    with connect(target) as service:
        response = service.memories.UpdateMemory(request, timeout=CALL_TIMEOUT_S)
    if json:
        print_json(response)
    else:
        _print_memory(response.memory)


def warn_of_missing(missing_ids: list[str]) -> None:
    """Ends a command with status 1 where ids name nothing."""
    for missing in missing_ids:
        warn(f"memory {printable(missing)} does not exist in this project")
    if missing_ids:
        raise typer.Exit(1)


def _print_memory(memory: memory_pb2.Memory) -> None:
    tags = " ".join(f"#{tag}" for tag in memory.tags)
    tokens, created = f"{memory.token_count} tokens", memory.create_time.ToJsonString()
    metadata = " ".join(f"{name}={value}" for name, value in sorted(memory.metadata.items()))
    ends = f"until {memory.expire_time.ToJsonString()}" if memory.HasField("expire_time") else ""
    writer = f"written by {memory.writer}" if memory.writer else ""
    facts = [kind_word(memory.kind), _origin_word(memory), writer, tokens, created, ends, tags, metadata]
    print_line(printable(memory.id))
    print_line(printable("  " + " · ".join(fact for fact in facts if fact)))
    for text in (memory.title, memory.summary, *_body(memory)):
        if text:
            print_line(printable(text))
    print_line("")


def _body(memory: memory_pb2.Memory) -> list[str]:
    match memory.WhichOneof("detail"):
        case "learning_record":
            record = memory.learning_record
            return [record.question, record.answer, *record.source_files, memory.content]
        case "domain_knowledge":
            domain = memory.domain_knowledge
            return [" ".join((domain.domain, *domain.aliases)), domain.summary, *domain.key_files, memory.content]
        case "code_fragment":
            fragment = memory.code_fragment
            return [f"{fragment.path}:{fragment.start_line}-{fragment.end_line}", memory.content]
    return [memory.content]


def _print_news(news: memory_service_pb2.WatchMemoriesResponse) -> None:
    match news.WhichOneof("news"):
        case "start":
            note(f"watching behind write {news.seq}; Ctrl-C ends it")
        case "reset":
            warn(f"what happened before write {news.seq} is no longer known; `hummock memories ls` shows what is there")
    for event in news.events.events:
        print_line(_event_line(event))


def _event_line(event: memory_service_pb2.MemoryEvent) -> str:
    line = f"{_MARKS.get(event.change, '?')} {event.seq}  {printable(event.id)}"
    if not event.HasField("memory"):
        return line
    tags = "".join(f" #{printable(tag)}" for tag in event.memory.tags)
    title = " ".join(title_of(event.memory).split())
    return f"{line}  {kind_word(event.memory.kind)}/{_origin_word(event.memory)}  {title}{tags}"


def _origin_word(memory: memory_pb2.Memory) -> str:
    return memory_pb2.Origin.Name(memory.origin).removeprefix("ORIGIN_").lower()


_SHOWN_CHARACTERS = 160
_AT_ONCE = 512

review_app = typer.Typer(
    no_args_is_help=True,
    help="Memories that read like instructions to a model: they are recalled once they are approved.",
)

Ids = Annotated[list[str] | None, typer.Argument(metavar="[ID]...", help="Ids of what is held.")]
All = Annotated[bool, typer.Option("--all", help="Everything that is held.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do it without asking.")]


@review_app.command("ls")
def list_held(project: ProjectOption, json: JsonFlag = False, target: TargetOption = DEFAULT_TARGET) -> None:
    """List held memories: id, what each reads like, where it comes from, and how it begins."""
    with connect(target) as service:
        for held in _held(service, project):
            if json:
                print_json_line(held)
            else:
                print_line(_line(held))


@review_app.command()
def approve(
    project: ProjectOption,
    ids: Ids = None,
    all_held: All = False,
    yes: Yes = False,
    json: JsonFlag = False,
    target: TargetOption = DEFAULT_TARGET,
) -> None:
    """Make memories of what is held, as it was sent: from then on it is recalled."""
    total = pb.ApproveReviewResponse()
    with connect(target) as service:
        for some in _batches(_chosen(service, project, ids, is_all=all_held), f"approve it in {project}", yes=yes):
            request = pb.ApproveReviewRequest(project=project, request_id=str(uuid.uuid4()), ids=some)
            response = service.memories.ApproveReview(request, timeout=CALL_TIMEOUT_S)
            total.seq = response.seq
            total.approved_count += response.approved_count
            total.missing_ids.extend(response.missing_ids)
    _say(total, f"approved {total.approved_count}", total.missing_ids, json=json)


@review_app.command()
def reject(
    project: ProjectOption,
    ids: Ids = None,
    all_held: All = False,
    yes: Yes = False,
    json: JsonFlag = False,
    target: TargetOption = DEFAULT_TARGET,
) -> None:
    """Remove what is held."""
    total = pb.RejectReviewResponse()
    with connect(target) as service:
        for some in _batches(_chosen(service, project, ids, is_all=all_held), f"reject it in {project}", yes=yes):
            request = pb.RejectReviewRequest(project=project, request_id=str(uuid.uuid4()), ids=some)
            response = service.memories.RejectReview(request, timeout=CALL_TIMEOUT_S)
            total.seq = response.seq
            total.rejected_count += response.rejected_count
            total.missing_ids.extend(response.missing_ids)
    _say(total, f"rejected {total.rejected_count}", total.missing_ids, json=json)


def _held(service: Service, project: str) -> Iterator[pb.HeldMemory]:
    request = pb.ListReviewRequest(project=project)
    while True:
        page = service.memories.ListReview(request, timeout=CALL_TIMEOUT_S)
        yield from page.held
        request.page_token = page.next_page_token
        if not request.page_token:
            return


def _chosen(service: Service, project: str, ids: Sequence[str] | None, *, is_all: bool) -> list[str]:
    if bool(ids) == is_all:
        raise typer.BadParameter("give either ids or --all")
    return list(ids or (held.memory.id for held in _held(service, project)))


def _batches(ids: Sequence[str], what: str, *, yes: bool) -> Iterator[Sequence[str]]:
    """Yield the ids in parts of one write each, after a confirmation."""
    if ids and not yes:
        confirm(f"{len(ids)} held: {what}?", "nothing was decided; --yes decides without asking")
    for start in range(0, len(ids), _AT_ONCE):
        yield ids[start : start + _AT_ONCE]


def _say(response: Message, done: str, missing_ids: Sequence[str], *, json: bool) -> None:
    if json:
        print_json(response)
        return
    print_line(done)
    if missing_ids:
        note(printable(f"nothing is held under {', '.join(missing_ids)}"))


def _line(held: pb.HeldMemory) -> str:
    memory = held.memory
    # Held text may be long, and may contain control sequences for the terminal.
    beginning = one_line(memory.text)[:_SHOWN_CHARACTERS]
    return printable(f"{memory.id}  {', '.join(held.families)}  {_origin_word(memory)}  {beginning}")
