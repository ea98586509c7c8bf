"""`hummock sessions`: conversations and their messages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import typer
from rich.text import Text

from hummock.cli.connection import CALL_TIMEOUT_S, CommandFailed, Service, connect
from hummock.cli.options import JsonFlag, JsonLinesFlag, PageOption, ProjectOption, TargetOption, clock, unsigned, utf8
from hummock.cli.output import new_table, note, print_json, print_json_line, print_line, print_page, printable
from hummock.v1 import context_service_pb2, session_pb2
from hummock.v1 import session_service_pb2 as pb
from hummock_client.channel import DEFAULT_TARGET

app = typer.Typer(no_args_is_help=True, help="Read conversations, and watch them.")

SessionArgument = Annotated[
    str, typer.Argument(metavar="[SESSION]", help="Id of the session; the active one if unset.", callback=utf8)
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
    """Print the newest messages of a session, then each as it comes, until Ctrl-C."""
    position = 0 if after is None else after
    with connect(target) as service:
        session_id = session or _active_id(service, project)
        request = pb.WatchMessagesRequest(project=project, session_id=session_id, newest=newest, after_position=after)
        try:
            for news in service.sessions.WatchMessages(request):
                if json:
                    for message in news.messages:
                        print_json_line(message)
                else:
                    _print_messages(news.messages)
                position = max([position, *(message.position for message in news.messages)])
        except KeyboardInterrupt:
            note(f"--after {position} goes on from here")


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
