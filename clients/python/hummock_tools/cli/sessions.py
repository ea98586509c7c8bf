"""`hummock sessions`: conversations and their messages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import typer
from google.protobuf.field_mask_pb2 import FieldMask
from typer import Argument, Option

from hummock_client.channel import DEFAULT_TARGET
from hummock_client.requests import enum_word, new_request_id
from hummock_client.v1 import context_service_pb2, session_pb2
from hummock_client.v1 import session_service_pb2 as pb
from hummock_tools.cli import options
from hummock_tools.cli.connection import CALL_TIMEOUT_S, CommandFailed, Service, connect
from hummock_tools.cli.output import ask, cell, new_table, note, print_json, print_line, print_page

app = typer.Typer(no_args_is_help=True, help="Read conversations, watch them, and correct what was said.")

SessionArgument = Annotated[str, options.text_argument("[SESSION]", "Id of the session; the active one if unset.")]
NamedSessionArgument = Annotated[str, options.text_argument("SESSION", "Id of the session.")]
MessageArgument = Annotated[str, options.text_argument("MESSAGE", "Id of the message; `show --json` prints it.")]
FollowingFlag = Annotated[bool, Option("--following", help="Also delete all messages behind it.")]


@app.command("ls")
def ls(
    project: options.Project,
    archived: Annotated[bool, Option("--archived", help="Those that are archived.")] = False,
    limit: Annotated[int, Option("--limit", min=1, max=1000, help="Sessions of one page.")] = 100,
    page: options.Page = "",
    json: options.Json = False,
    target: options.Target = DEFAULT_TARGET,
) -> None:
    """List sessions, the active one first."""
    request = pb.ListSessionsRequest(project=project, archived=archived, page_size=limit, page_token=page)
    response = ask(target, lambda service: service.sessions.ListSessions, request, json=json)
    table = new_table({"id": 2, "title": 3, "messages": "right", "updated": "left"})
    for session in response.sessions:
        updated = f"{session.update_time.ToDatetime(options.clock()):%Y-%m-%d %H:%M}"
        table.add_row(cell(session.id), cell(session.title), str(session.message_count), updated)
    nothing = "no archived sessions" if archived else "no sessions"
    print_page(table, f"{nothing} in project {project}", response.next_page_token)


@app.command("show")
def show(
    project: options.Project,
    session: SessionArgument = "",
    limit: Annotated[int, Option("--limit", min=1, max=1000, help="Messages of one page.")] = 20,
    page: options.Page = "",
    json: options.Json = False,
    target: options.Target = DEFAULT_TARGET,
) -> None:
    """Print the newest messages of a session, in the order of time."""
    with connect(target) as service:
        session_id = session or _active_id(service, project)
        request = pb.ListMessagesRequest(project=project, session_id=session_id, page_size=limit, page_token=page)
        response = service.sessions.ListMessages(request, timeout=CALL_TIMEOUT_S)
    if json:
        return print_json(response)
    _print_messages(response.messages)
    if not response.messages:
        note("no messages")
    if response.next_page_token:
        note(f"there are older ones: --page {response.next_page_token}")


@app.command("watch")
def watch(
    project: options.Project,
    session: SessionArgument = "",
    newest: Annotated[int | None, Option("--newest", min=0, max=1000, help="So many come first; 20 if unset.")] = None,
    after: Annotated[int | None, options.count_option("--after", "Begin behind this position instead.", 64)] = None,
    json: options.JsonLines = False,
    target: options.Target = DEFAULT_TARGET,
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
                        print_json(message, indent=None)
                else:
                    _print_messages(told)
                if news.deleted_ids:
                    note(f"deleted: {', '.join(news.deleted_ids)}")
                position = max([position, *(message.position for message in news.messages)])
        except KeyboardInterrupt:
            note(f"--after {position} goes on from here")


@app.command("edit")
def edit(
    project: options.NamedProject,
    session: NamedSessionArgument,
    message: MessageArgument,
    content: Annotated[str, Argument(help="What it says from now on.", callback=options.utf8)],
    following: FollowingFlag = False,
    json: options.Json = False,
    target: options.Target = DEFAULT_TARGET,
) -> None:
    """Change what a message says, and the memory that it was learnt as."""
    request = pb.UpdateMessageRequest(
        project=project,
        request_id=new_request_id(),
        session_id=session,
        message=pb.MessageUpdate(id=message, content=content),
        update_mask=FieldMask(paths=["content"]),
        delete_following=following,
    )
    response = ask(target, lambda service: service.sessions.UpdateMessage, request, json=json)
    print_line(f"changed message {response.position}, deleted {response.deleted_count} behind it")
    if response.held_for:
        note(f"its memory is held for review: {', '.join(response.held_for)}; see `hummock review ls`")


@app.command("rm")
def rm(
    project: options.NamedProject,
    session: NamedSessionArgument,
    message: MessageArgument,
    following: FollowingFlag = False,
    json: options.Json = False,
    target: options.Target = DEFAULT_TARGET,
) -> None:
    """Delete a message, and the memory that it was learnt as."""
    request = pb.DeleteMessageRequest(
        project=project, request_id=new_request_id(), session_id=session, id=message, delete_following=following
    )
    response = ask(target, lambda service: service.sessions.DeleteMessage, request, json=json)
    print_line(f"deleted {response.deleted_count} messages")


def _active_id(service: Service, project: str) -> str:
    """The id of the active session; none is created. Raises: CommandFailed."""
    page = service.sessions.ListSessions(pb.ListSessionsRequest(project=project, page_size=1), timeout=CALL_TIMEOUT_S)
    if not page.sessions:
        others = "`hummock sessions ls --archived` lists the others"
        raise CommandFailed(f"project {project} has no session that is not archived; {others}")
    return page.sessions[0].id


def _print_messages(messages: Iterable[session_pb2.ChatMessage]) -> None:
    for message in messages:
        sent = f"{message.send_time.ToDatetime(options.clock()):%Y-%m-%d %H:%M:%S}"
        print_line(f"{message.position}  {enum_word(context_service_pb2.PromptRole, message.role)}  {sent}")
        for line in message.content.splitlines():
            print_line(f"    {line}")
