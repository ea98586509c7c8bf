"""`hummock review`: what is held for review, and what becomes of it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from typing import Annotated

import typer
from google.protobuf.message import Message

from hummock_client.channel import DEFAULT_TARGET
from hummock_client.v1 import memory_pb2
from hummock_client.v1 import memory_service_pb2 as pb
from hummock_tools.cli.connection import CALL_TIMEOUT_S, Service, connect
from hummock_tools.cli.options import JsonFlag, ProjectOption, TargetOption
from hummock_tools.cli.output import confirm, note, one_line, print_json, print_json_line, print_line, printable

_SHOWN_CHARACTERS = 160
_AT_ONCE = 512

app = typer.Typer(
    no_args_is_help=True,
    help="Memories that read like instructions to a model: they are recalled once they are approved.",
)

Ids = Annotated[list[str] | None, typer.Argument(metavar="[ID]...", help="Ids of what is held.")]
All = Annotated[bool, typer.Option("--all", help="Everything that is held.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do it without asking.")]


@app.command("ls")
def list_held(project: ProjectOption, json: JsonFlag = False, target: TargetOption = DEFAULT_TARGET) -> None:
    """List held memories: id, what each reads like, where it comes from, and how it begins."""
    with connect(target) as service:
        for held in _held(service, project):
            if json:
                print_json_line(held)
            else:
                print_line(_line(held))


@app.command()
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


@app.command()
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
    """The ids in parts of a write each, once it is clear that it is meant."""
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
    origin = memory_pb2.Origin.Name(memory.origin).removeprefix("ORIGIN_").lower()
    # What is shown to a person may be long, and may be meant for the terminal.
    beginning = one_line(memory.text)[:_SHOWN_CHARACTERS]
    return printable(f"{memory.id}  {', '.join(held.families)}  {origin}  {beginning}")
