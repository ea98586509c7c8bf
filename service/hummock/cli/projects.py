"""`hummock projects`: what is kept apart."""

from __future__ import annotations

import uuid
from typing import Annotated

import typer
from google.protobuf.field_mask_pb2 import FieldMask
from rich.text import Text

from hummock.cli.connection import CALL_TIMEOUT_S, DEFAULT_TARGET, connect
from hummock.cli.options import JsonFlag, TargetOption, utf8
from hummock.cli.output import new_table, note, print_json, print_line, print_table, printable
from hummock.cli.settings import settings
from hummock.v1 import project_service_pb2 as pb

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, help="List projects, and say what prompts tell of them and what recalls mean.")
app.add_typer(settings, name="settings")

NameArgument = Annotated[str, typer.Argument(metavar="PROJECT", envvar="HUMMOCK_PROJECT", callback=utf8)]


@app.command("ls")
def ls(
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000, help="Projects of one page.")] = 100,
    page: Annotated[str, typer.Option("--page", help="The token that the page before ended with.")] = "",
    json: JsonFlag = False,
    target: TargetOption = DEFAULT_TARGET,
) -> None:
    """List projects by name."""
    request = pb.ProjectServiceListRequest(page_size=limit, page_token=page)
    with connect(target) as service:
        response = service.projects.List(request, timeout=CALL_TIMEOUT_S)
    if json:
        print_json(response)
        return
    table = new_table()
    table.add_column("project", ratio=2, overflow="fold")
    table.add_column("memories", justify="right", no_wrap=True)
    table.add_column("writes", justify="right", no_wrap=True)
    table.add_column("tech stack", ratio=3, overflow="fold")
    for project in response.projects:
        stack = Text(printable(", ".join(project.info.tech_stack)))
        table.add_row(Text(printable(project.name)), str(project.memory_count), str(project.seq), stack)
    if response.projects:
        print_table(table)
    else:
        note("no projects; the first `hummock learn` makes one")
    if response.next_page_token:
        note(f"there are more: --page {response.next_page_token}")


@app.command("show")
def show(name: NameArgument, json: JsonFlag = False, target: TargetOption = DEFAULT_TARGET) -> None:
    """Print one project."""
    with connect(target) as service:
        response = service.projects.Get(pb.ProjectServiceGetRequest(project=name), timeout=CALL_TIMEOUT_S)
    if json:
        print_json(response)
    else:
        _print_project(response.project)


@app.command("set")
def set_info(
    name: NameArgument,
    tech: Annotated[list[str] | None, typer.Option("--tech", help="Part of the tech stack; repeatable.")] = None,
    path: Annotated[str | None, typer.Option("--path", help="Where the project lies for its users.")] = None,
    json: JsonFlag = False,
    target: TargetOption = DEFAULT_TARGET,
) -> None:
    """Change what prompts tell of a project; creates it when it does not exist."""
    paths = (["tech_stack"] if tech else []) + (["path"] if path is not None else [])
    if not paths:
        raise typer.BadParameter("nothing to change: give --tech or --path")
    request = pb.ProjectServiceUpdateRequest(
        project=name,
        request_id=str(uuid.uuid4()),
        info=pb.ProjectInfo(tech_stack=tech or (), path=path or ""),
        update_mask=FieldMask(paths=paths),
    )
    with connect(target) as service:
        response = service.projects.Update(request, timeout=CALL_TIMEOUT_S)
    if json:
        print_json(response)
    else:
        _print_project(response.project)


def _print_project(project: pb.Project) -> None:
    print_line(printable(project.name))
    if project.info.tech_stack:
        print_line(printable(f"  tech stack  {', '.join(project.info.tech_stack)}"))
    if project.info.path:
        print_line(printable(f"  path        {project.info.path}"))
    kinds = ", ".join(f"{each.count} {each.kind}" for each in project.kinds)
    print_line(f"  memories    {project.memory_count}{f' ({kinds})' if kinds else ''}")
    if project.HasField("feedback"):
        said = project.feedback
        print_line(f"  feedback    {said.helpful} helpful, {said.not_helpful} not helpful, {said.wrong} wrong")
    print_line(f"  seq         {project.seq} (content {project.content_seq})")
    print_line(f"  space       {project.emb_space}")
    print_line(f"  created     {project.create_time.ToJsonString()}")
