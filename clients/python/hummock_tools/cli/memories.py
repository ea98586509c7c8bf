"""`hummock memories` and `hummock review`: what is stored or held, shown, changed, decided on and watched."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import grpc
import typer
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.message import Message
from typer import Argument, Option

from hummock_client.channel import DEFAULT_TARGET
from hummock_client.requests import enum_word, new_request_id
from hummock_client.v1 import memory_pb2
from hummock_client.v1 import memory_service_pb2 as pb
from hummock_tools.cli import options
from hummock_tools.cli.connection import CALL_TIMEOUT_S, CommandFailed, Service, connect
from hummock_tools.cli.output import (
    ask,
    cell,
    confirm,
    kind_word,
    new_table,
    note,
    one_line,
    print_json,
    print_line,
    print_page,
    title_of,
    warn,
)

app = typer.Typer(no_args_is_help=True, help="Read, change and remove memories one by one, and watch them.")

_MARKS = {pb.MEMORY_EVENT_TYPE_CREATED: "+", pb.MEMORY_EVENT_TYPE_UPDATED: "~", pb.MEMORY_EVENT_TYPE_DELETED: "-"}

IdsArgument = Annotated[list[str], Argument(metavar="ID...", help="Ids of memories.")]


@app.command("watch")
def watch(
    project: options.Project,
    kind: options.Kinds = None,
    origin: options.Origins = None,
    tag: options.Tags = None,
    since: options.Since = None,
    until: options.Until = None,
    after: Annotated[
        int | None, options.count_option("--after", "Begin behind this write; the newest one if unset.", 64)
    ] = None,
    json: options.JsonLines = False,
    target: options.Target = DEFAULT_TARGET,
) -> None:
    """Show memories as they are stored, changed and removed, until Ctrl-C."""
    request = pb.WatchMemoriesRequest(
        project=project, after_seq=after, filter=options.filter_of(tag, kind, origin, since=since, until=until)
    )
    seq = 0
    with connect(target) as service:
        try:
            for news in service.memories.WatchMemories(request):
                seq = news.seq
                print_json(news, indent=None) if json else _print_news(news)
        except KeyboardInterrupt:
            note(f"--after {seq} goes on from here")
        except grpc.RpcError:
            if seq:
                note(f"cut off; --after {seq} goes on from here")
            raise


@app.command("ls")
def ls(
    project: options.Project,
    kind: options.Kinds = None,
    origin: options.Origins = None,
    tag: options.Tags = None,
    path: options.Paths = None,
    writer: options.Writers = None,
    meta: options.Meta = None,
    since: options.Since = None,
    until: options.Until = None,
    session: options.Sessions = None,
    contains: Annotated[str, Option("--contains", help="Only with this string in title, tags or text.")] = "",
    pinned: Annotated[bool, Option("--pinned", help="Only what is pinned.")] = False,
    newest: Annotated[bool, Option("--newest", help="What was written last first.")] = False,
    limit: Annotated[int, Option("--limit", min=1, max=1000, help="Memories of one page.")] = 100,
    page: options.Page = "",
    json: options.Json = False,
    target: options.Target = DEFAULT_TARGET,
) -> None:
    """List memories, oldest write first."""
    where = options.filter_of(tag, kind, origin, session, since, until, meta, writer, path)
    where.pinned = pinned
    request = pb.ListMemoriesRequest(
        project=project,
        filter=where,
        page_size=limit,
        page_token=page,
        order=pb.LIST_ORDER_NEWEST_FIRST if newest else pb.LIST_ORDER_UNSPECIFIED,
        contains=contains,
    )
    response = ask(target, lambda service: service.memories.ListMemories, request, json=json)
    table = new_table({"kind": "left", "id": 2, "title": 3, "tokens": "right"})
    for memory in response.memories:
        table.add_row(kind_word(memory.kind), cell(memory.id), title_of(memory), str(memory.token_count))
    print_page(table, f"no memories found in project {project}", response.next_page_token)


@app.command("get")
def get(
    ids: IdsArgument, project: options.Project, json: options.Json = False, target: options.Target = DEFAULT_TARGET
) -> None:
    """Print memories in full."""
    with connect(target) as service:
        if len(ids) == 1:
            one = service.memories.GetMemory(pb.GetMemoryRequest(project=project, id=ids[0]), timeout=CALL_TIMEOUT_S)
            return print_json(one) if json else _print_memory(one.memory)
        request = pb.BatchGetMemoriesRequest(project=project, ids=ids)
        several = service.memories.BatchGetMemories(request, timeout=CALL_TIMEOUT_S)
    if json:
        return print_json(several)
    for memory in several.memories:
        _print_memory(memory)
    warn_of_missing(several.missing_ids)


@app.command("edit")
def edit(
    memory_id: Annotated[str, Argument(metavar="ID", help="Id of the memory.")],
    project: options.NamedProject,
    title: Annotated[str | None, Option("--title", help="Its new title.")] = None,
    summary: Annotated[str | None, Option("--summary", help="Its new summary.")] = None,
    content: Annotated[str | None, Option("--content", help="Its new text.")] = None,
    tag: Annotated[list[str] | None, Option("--tag", help="Its new tags, all of them; repeatable.")] = None,
    origin: Annotated[options.OriginName | None, Option("--origin", help="Its new origin.")] = None,
    emotion: Annotated[str | None, Option("--emotion", help='Its new feeling, for example "joy".')] = None,
    trust: Annotated[float | None, Option("--trust", help="How far it is believed, 0 to 1.")] = None,
    json: options.Json = False,
    target: options.Target = DEFAULT_TARGET,
) -> None:
    """Change what is given and leave the rest."""
    changes = {
        "title": title,
        "summary": summary,
        "tags": tag or None,
        "content": content,
        "origin": options.origin_value(origin) if origin else None,
        "emotion_label": emotion,
        "trust": trust,
    }
    given: dict[str, Any] = {path: value for path, value in changes.items() if value is not None}
    if not given:
        raise typer.BadParameter(
            "nothing to change: give --title, --summary, --content, --tag, --origin, --emotion or --trust"
        )
    request = pb.UpdateMemoryRequest(
        project=project,
        request_id=new_request_id(),
        memory=memory_pb2.Memory(id=memory_id, **given),
        update_mask=FieldMask(paths=list(given)),
    )
    response = ask(target, lambda service: service.memories.UpdateMemory, request, json=json)
    _print_memory(response.memory)


@app.command("pin")
def pin(
    ids: IdsArgument, project: options.NamedProject, json: options.Json = False, target: options.Target = DEFAULT_TARGET
) -> None:
    """Show memories in every prompt, whatever is asked."""
    _set_pinned(ids, project, target, pinned=True, json=json)


@app.command("unpin")
def unpin(
    ids: IdsArgument, project: options.NamedProject, json: options.Json = False, target: options.Target = DEFAULT_TARGET
) -> None:
    """Show memories only where they are recalled."""
    _set_pinned(ids, project, target, pinned=False, json=json)


def _set_pinned(ids: Sequence[str], project: str, target: str, *, pinned: bool, json: bool) -> None:
    with connect(target) as service:
        for memory_id in ids:
            request = pb.UpdateMemoryRequest(
                project=project,
                request_id=new_request_id(),
                memory=memory_pb2.Memory(id=memory_id, pinned=pinned),
                update_mask=FieldMask(paths=["pinned"]),
            )
            response = service.memories.UpdateMemory(request, timeout=CALL_TIMEOUT_S)
            print_json(response) if json else print_line(f"{'pinned' if pinned else 'unpinned'} {memory_id}")


def warn_of_missing(missing_ids: Sequence[str]) -> None:
    """Ends a command with status 1 where ids name nothing."""
    for missing in missing_ids:
        warn(f"memory {missing} does not exist in this project")
    if missing_ids:
        raise typer.Exit(1)


def _print_memory(memory: memory_pb2.Memory) -> None:
    tags = " ".join(f"#{tag}" for tag in memory.tags)
    tokens, created = f"{memory.token_count} tokens", memory.create_time.ToJsonString()
    metadata = " ".join(f"{name}={value}" for name, value in sorted(memory.metadata.items()))
    ends = f"until {memory.expire_time.ToJsonString()}" if memory.HasField("expire_time") else ""
    writer = f"written by {memory.writer}" if memory.writer else ""
    words = [kind_word(memory.kind), enum_word(memory_pb2.Origin, memory.origin)]
    facts = [*words, "pinned" if memory.pinned else "", writer, tokens, created, ends, tags, metadata]
    print_line(memory.id)
    print_line("  " + " · ".join(fact for fact in facts if fact))
    for text in filter(None, (memory.title, memory.summary, *_body(memory), *memory.files)):
        print_line(text)
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


def _print_news(news: pb.WatchMemoriesResponse) -> None:
    match news.WhichOneof("news"):
        case "start":
            note(f"watching behind write {news.seq}; Ctrl-C ends it")
        case "reset":
            warn(f"what happened before write {news.seq} is no longer known; `hummock memories ls` shows what is there")
    for event in news.events.events:
        print_line(_event_line(event))


def _event_line(event: pb.MemoryEvent) -> str:
    line = f"{_MARKS.get(event.change, '?')} {event.seq}  {event.id}"
    if not event.HasField("memory"):
        return line
    tags = "".join(f" #{tag}" for tag in event.memory.tags)
    title = " ".join(title_of(event.memory).split())
    return f"{line}  {kind_word(event.memory.kind)}/{enum_word(memory_pb2.Origin, event.memory.origin)}  {title}{tags}"


_SHOWN_CHARACTERS = 160
_AT_ONCE = 512

review_app = typer.Typer(
    no_args_is_help=True,
    help="What waits for a decision: memories that read like instructions to a model, and what newer notes replace.",
)

Ids = Annotated[list[str] | None, Argument(metavar="[ID]...", help="Ids of what is held.")]
All = Annotated[bool, Option("--all", help="Everything that is held.")]
Yes = Annotated[bool, Option("--yes", "-y", help="Do it without asking.")]


@review_app.command("ls")
def list_held(project: options.Project, json: options.Json = False, target: options.Target = DEFAULT_TARGET) -> None:
    """List held memories: id, what each reads like, where it comes from, and how it begins."""
    held = None
    with connect(target) as service:
        for held in _held(service, project):
            print_json(held, indent=None) if json else print_line(_line(held))
    if held is None and not json:
        note(f"nothing is held in project {project}")


@review_app.command()
def approve(
    project: options.Project,
    ids: Ids = None,
    all_held: All = False,
    yes: Yes = False,
    json: options.Json = False,
    target: options.Target = DEFAULT_TARGET,
) -> None:
    """Make memories of what is held, as it was sent: from then on it is recalled."""
    total = pb.ApproveReviewResponse()
    with connect(target) as service:
        for some in _batches(service, project, ids, "approve", is_all=all_held, yes=yes):
            request = pb.ApproveReviewRequest(project=project, request_id=new_request_id(), ids=some)
            response = service.memories.ApproveReview(request, timeout=CALL_TIMEOUT_S)
            total.seq = response.seq
            total.approved_count += response.approved_count
            total.missing_ids.extend(response.missing_ids)
    _say(total, f"approved {total.approved_count}", total.missing_ids, json=json)


@review_app.command()
def reject(
    project: options.NamedProject,
    ids: Ids = None,
    all_held: All = False,
    yes: Yes = False,
    json: options.Json = False,
    target: options.Target = DEFAULT_TARGET,
) -> None:
    """Remove what is held."""
    total = pb.RejectReviewResponse()
    with connect(target) as service:
        for some in _batches(service, project, ids, "reject", is_all=all_held, yes=yes):
            request = pb.RejectReviewRequest(project=project, request_id=new_request_id(), ids=some)
            response = service.memories.RejectReview(request, timeout=CALL_TIMEOUT_S)
            total.seq = response.seq
            total.rejected_count += response.rejected_count
            total.missing_ids.extend(response.missing_ids)
    _say(total, f"rejected {total.rejected_count}", total.missing_ids, json=json)


NewerArgument = Annotated[str, Argument(metavar="NEWER", help="Id of the note that tells a change.")]
OlderArgument = Annotated[str, Argument(metavar="OLDER", help="Id of the older note.")]


@review_app.command("replaced")
def list_replacements(
    project: options.Project, json: options.Json = False, target: options.Target = DEFAULT_TARGET
) -> None:
    """List notes that a newer one probably replaces: both ids, how much they are alike, and the words that say so."""
    request = pb.ListReviewRequest(project=project, kind=pb.REVIEW_KIND_REPLACEMENT)
    one = None
    with connect(target) as service:
        for page in _pages(service, request):
            for one in page.replacements:
                print_json(one, indent=None) if json else print_line(_replacement_line(one))
    if one is None and not json:
        note(f"no note of project {project} is probably replaced")


@review_app.command("replace")
def replace_older(
    newer: NewerArgument,
    older: OlderArgument,
    project: options.Project,
    json: options.Json = False,
    target: options.Target = DEFAULT_TARGET,
) -> None:
    """Let a newer note replace an older one, which no recall brings back from then on."""
    request = pb.ApproveReviewRequest(project=project, request_id=new_request_id(), replacements=_pair(newer, older))
    reply = ask(target, lambda service: service.memories.ApproveReview, request)
    _say_decided(reply, f"{newer} replaces {older}", json=json)


@review_app.command("keep")
def keep_older(
    newer: NewerArgument,
    older: OlderArgument,
    project: options.Project,
    json: options.Json = False,
    target: options.Target = DEFAULT_TARGET,
) -> None:
    """Keep an older note beside a newer one, and do not ask about them again."""
    request = pb.RejectReviewRequest(project=project, request_id=new_request_id(), replacements=_pair(newer, older))
    reply = ask(target, lambda service: service.memories.RejectReview, request)
    _say_decided(reply, f"{newer} does not replace {older}", json=json)


def _pair(newer: str, older: str) -> list[pb.ReplacementPair]:
    return [pb.ReplacementPair(newer_id=newer, older_id=older)]


def _say_decided(response: pb.ApproveReviewResponse | pb.RejectReviewResponse, done: str, *, json: bool) -> None:
    if json:
        print_json(response)
    if response.missing_ids:
        raise CommandFailed(
            "one of them does not exist, or was changed meanwhile; `hummock review replaced` lists pairs"
        )
    if not json:
        print_line(done)


def _replacement_line(one: pb.Replacement) -> str:
    older = one_line(one.older.text)[:_SHOWN_CHARACTERS]
    return f"{one.newer.id}  {one.older.id}  {one.similarity:.2f}  {one_line(one.evidence)}  <-  {older}"


def _pages(service: Service, request: pb.ListReviewRequest) -> Iterator[pb.ListReviewResponse]:
    while True:
        page = service.memories.ListReview(request, timeout=CALL_TIMEOUT_S)
        yield page
        request.page_token = page.next_page_token
        if not request.page_token:
            return


def _held(service: Service, project: str) -> Iterator[pb.HeldMemory]:
    for page in _pages(service, pb.ListReviewRequest(project=project)):
        yield from page.held


def _batches(
    service: Service, project: str, ids: Sequence[str] | None, verb: str, *, is_all: bool, yes: bool
) -> Iterator[Sequence[str]]:
    """Yield the ids, or those of all that is held, in parts of one write each, after a confirmation."""
    if bool(ids) == is_all:
        raise typer.BadParameter("give either ids or --all")
    chosen = list(ids or (held.memory.id for held in _held(service, project)))
    if chosen and not yes:
        confirm(f"{len(chosen)} held: {verb} it in {project}?", "nothing was decided; --yes decides without asking")
    for start in range(0, len(chosen), _AT_ONCE):
        yield chosen[start : start + _AT_ONCE]


def _say(response: Message, done: str, missing_ids: Sequence[str], *, json: bool) -> None:
    if json:
        return print_json(response)
    print_line(done)
    if missing_ids:
        note(f"nothing is held under {', '.join(missing_ids)}")


def _line(held: pb.HeldMemory) -> str:
    memory = held.memory
    # Held text may be long, and may contain control sequences for the terminal.
    beginning = one_line(memory.text)[:_SHOWN_CHARACTERS]
    origin = enum_word(memory_pb2.Origin, memory.origin)
    return f"{memory.id}  {', '.join(held.families)}  {origin}  {beginning}"
