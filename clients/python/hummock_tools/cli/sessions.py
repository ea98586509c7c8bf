"""`hummock sessions`: conversations and their messages."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Annotated

import typer
from google.protobuf.field_mask_pb2 import FieldMask
from rich.text import Text

from hummock_client.channel import DEFAULT_TARGET
from hummock_client.v1 import context_service_pb2, session_pb2
from hummock_client.v1 import session_service_pb2 as pb
from hummock_tools.cli.connection import CALL_TIMEOUT_S, CommandFailed, Service, connect
from hummock_tools.cli.options import (
    JsonFlag,
    JsonLinesFlag,
    PageOption,
    ProjectOption,
    TargetOption,
    clock,
    unsigned,
    utf8,
)
from hummock_tools.cli.output import new_table, note, print_json, print_json_line, print_line, print_page, printable

app = typer.Typer(no_args_is_help=True, help="Read conversations, watch them, and correct what was said.")

SessionArgument = Annotated[
    str, typer.Argument(metavar="[SESSION]", help="Id of the session; the active one if unset.", callback=utf8)
]

NamedSessionArgument = Annotated[str, typer.Argument(metavar="SESSION", help="Id of the session.", callback=utf8)]
MessageArgument = Annotated[
    str, typer.Argument(metavar="MESSAGE", help="Id of the message; `show --json` prints it.", callback=utf8)
]


@app.command("ls")
def ls(
    project: ProjectOption,
    archived: Annotated[bool, typer.Option("--archived", help="Those that are archived.")] = False,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000, help="Sessions of one page.")] = 100,
    page: PageOption = "",
    json: JsonFlag = False,
    target: TargetOption = DEFAULT_TARGET,
) -> None:
    """List sessions, the active one first."""
    request = pb.ListSessionsRequest(project=project, archived=archived, page_size=limit, page_token=page)
    with connect(target) as service:
        response = service.sessions.ListSessions(request, timeout=CALL_TIMEOUT_S)
    if json:
        print_json(response)
        return
    table = new_table()
    table.add_column("id", ratio=2, overflow="fold")
    table.add_column("title", ratio=3, overflow="fold")
    table.add_column("messages", justify="right", no_wrap=True)
    table.add_column("updated", no_wrap=True)
    for session in response.sessions:
        updated = f"{session.update_time.ToDatetime(clock()):%Y-%m-%d %H:%M}"
        table.add_row(
            Text(printable(session.id)), Text(printable(session.title)), str(session.message_count), Text(updated)
        )
    print_page(table, "no archived sessions" if archived else "no sessions", response.next_page_token)


@app.command("show")
def show(
    project: ProjectOption,
    session: SessionArgument = "",
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000, help="Messages of one page.")] = 20,
    page: PageOption = "",
    json: JsonFlag = False,
    target: TargetOption = DEFAULT_TARGET,
) -> None:
    """Print the newest messages of a session, in the order of time."""
    with connect(target) as service:
        request = pb.ListMessagesRequest(
            project=project,
            session_id=session or _active_id(service, project),
            page_size=limit,
            page_token=page,
        )
        response = service.sessions.ListMessages(request, timeout=CALL_TIMEOUT_S)
    if json:
        print_json(response)
        return
    _print_messages(response.messages)
    if not response.messages:
        note("no messages")
    if response.next_page_token:
        note(f"there are older ones: --page {response.next_page_token}")


@app.command("watch")
def watch(
    project: ProjectOption,
    session: SessionArgument = "",
    newest: Annotated[
        int | None, typer.Option("--newest", min=0, max=1000, help="So many come first; 20 if unset.")
    ] = None,
    after: Annotated[
        int | None, typer.Option("--after", help="Begin behind this position instead.", callback=unsigned(64))
    ] = None,
    json: JsonLinesFlag = False,
    target: TargetOption = DEFAULT_TARGET,
) -> None:
    """Print the newest messages of a session, then each as it comes or is changed, until Ctrl-C."""
    position = 0 if after is None else after
    with connect(target) as service:
        session_id = session or _active_id(service, project)
        request = pb.WatchMessagesRequest(project=project, session_id=session_id, newest=newest, after_position=after)
        try:
            for news in service.sessions.WatchMessages(request):
                told = [*news.updated_messages, *news.messages]
                if json:
                    for message in told:
                        print_json_line(message)
                else:
                    _print_messages(told)
                if news.deleted_ids:
                    note(printable(f"deleted: {', '.join(news.deleted_ids)}"))
                position = max([position, *(message.position for message in news.messages)])
        except KeyboardInterrupt:
            note(f"--after {position} goes on from here")


@app.command("edit")
def edit(
    project: ProjectOption,
    session: NamedSessionArgument,
    message: MessageArgument,
    content: Annotated[str, typer.Argument(help="What it says from now on.", callback=utf8)],
    following: Annotated[bool, typer.Option("--following", help="Also delete all messages behind it.")] = False,
    json: JsonFlag = False,
    target: TargetOption = DEFAULT_TARGET,
) -> None:
    """Change what a message says, and the memory that it was learnt as."""
    request = pb.UpdateMessageRequest(
        project=project,
        request_id=str(uuid.uuid4()),
        session_id=session,
        message=pb.MessageUpdate(id=message, content=content),
        update_mask=FieldMask(paths=["content"]),
        delete_following=following,
    )
    with connect(target) as service:
        response = service.sessions.UpdateMessage(request, timeout=CALL_TIMEOUT_S)
    if json:
        print_json(response)
        return
    print_line(printable(f"changed message {response.position}, deleted {response.deleted_count} behind it"))
    if response.held_for:
        note(f"its memory is held for review: {', '.join(response.held_for)}; see `hummock review ls`")


@app.command("rm")
def rm(
    project: ProjectOption,
    session: NamedSessionArgument,
    message: MessageArgument,
    following: Annotated[bool, typer.Option("--following", help="Also delete all messages behind it.")] = False,
    json: JsonFlag = False,
    target: TargetOption = DEFAULT_TARGET,
) -> None:
    """Delete a message, and the memory that it was learnt as."""
    request = pb.DeleteMessageRequest(
        project=project, request_id=str(uuid.uuid4()), session_id=session, id=message, delete_following=following
    )
    with connect(target) as service:
        response = service.sessions.DeleteMessage(request, timeout=CALL_TIMEOUT_S)
    if json:
        print_json(response)
        return
    print_line(f"deleted {response.deleted_count} messages")


def _active_id(service: Service, project: str) -> str:
    """The id of the active session; none is created. Raises: CommandFailed."""
    page = service.sessions.ListSessions(pb.ListSessionsRequest(project=project, page_size=1), timeout=CALL_TIMEOUT_S)
    if not page.sessions:
        raise CommandFailed(
            f"project {printable(project)} has no session that is not archived; `hummock sessions ls --archived` "
            "lists the others"
        )
    return page.sessions[0].id


def _print_messages(messages: Iterable[session_pb2.ChatMessage]) -> None:
    for message in messages:
        role = context_service_pb2.PromptRole.Name(message.role).removeprefix("PROMPT_ROLE_").lower()
        sent = f"{message.send_time.ToDatetime(clock()):%Y-%m-%d %H:%M:%S}"
        print_line(printable(f"{message.position}  {role}  {sent}"))
        for line in message.content.splitlines():
            print_line(printable(f"    {line}"))
