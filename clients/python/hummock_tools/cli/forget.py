"""`hummock forget`: memories and sessions for good, with all that was learnt of them."""

from __future__ import annotations

import uuid
from typing import Annotated

import typer

from hummock_client.channel import DEFAULT_TARGET
from hummock_client.v1 import memory_service_pb2 as pb
from hummock_tools.cli.connection import CALL_TIMEOUT_S, Service, connect
from hummock_tools.cli.memories import KindsOption, OriginsOption, SessionsOption, WritersOption
from hummock_tools.cli.options import (
    JsonFlag,
    MetaOption,
    ProjectOption,
    SinceOption,
    TagOption,
    TargetOption,
    UntilOption,
    filter_of,
    utf8,
)
from hummock_tools.cli.output import confirm, note, print_json, print_line, printable
from hummock_tools.cli.projects import delete_project, memory_count

_BYTES_STAY = "their bytes stay in the data directory until `hummock purge`, and in backups of before"


def forget(
    context: typer.Context,
    project: ProjectOption,
    ids: Annotated[list[str] | None, typer.Argument(metavar="[ID]...", help="Ids of memories.")] = None,
    contains: Annotated[
        str, typer.Option("--contains", help="What holds this text, also in the learning log.", callback=utf8)
    ] = "",
    kind: KindsOption = None,
    origin: OriginsOption = None,
    tag: TagOption = None,
    path: Annotated[
        list[str] | None, typer.Option("--path", help="What comes from this file, or path's end; repeatable.")
    ] = None,
    speaker: Annotated[list[str] | None, typer.Option("--speaker", help="What this speaker said; repeatable.")] = None,
    writer: WritersOption = None,
    meta: MetaOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    session: SessionsOption = None,
    whole: Annotated[
        bool, typer.Option("--all", help="The whole project that -p names, its sessions and its log too.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say how much would be forgotten.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Forget without asking.")] = False,
    json: JsonFlag = False,
    target: TargetOption = DEFAULT_TARGET,
) -> None:
    """Forget what meets all conditions, a session with its messages; `hummock purge` then erases the bytes."""
    where = filter_of(tag, kind, origin, session, since, until, meta)
    where.paths.extend(path or ())
    where.speakers.extend(speaker or ())
    where.writers.extend(writer or ())
    request = pb.ForgetRequest(
        project=project, ids=ids or (), filter=where, contains=contains, with_sessions=bool(session)
    )
    is_chosen = bool(ids or contains or where.ListFields())
    if whole:
        if is_chosen:
            raise typer.BadParameter("--all goes without ids and conditions")
        said_by = context.get_parameter_source("project")
        if said_by is None or said_by.name != "COMMANDLINE":
            raise typer.BadParameter("--all wants the project named by -p: what is lost is said, not set")
        _forget_project(project, target, dry_run=dry_run, yes=yes, json=json)
        return
    if not is_chosen:
        raise typer.BadParameter("give ids or conditions, or --all with -p for a whole project")
    with connect(target) as service:
        if dry_run or not yes:
            request.dry_run = True
            receipt = service.memories.Forget(request, timeout=CALL_TIMEOUT_S)
            if not dry_run:
                confirm(
                    f"Forget {_counts(receipt)} of {project}?", "nothing was forgotten; --yes forgets without asking"
                )
                request.dry_run = False
        if not dry_run:
            receipt = _forget_all(service, request)
    if json:
        print_json(receipt)
        return
    print_line(f"{'would be forgotten' if dry_run else 'forgotten'}: {_counts(receipt)}")
    if not dry_run:
        note(_BYTES_STAY)


def _forget_project(project: str, target: str, *, dry_run: bool, yes: bool, json: bool) -> None:
    """Forgets all of a project in one write; its receipt has counts of all and the digest over all ids."""
    with connect(target) as service:
        if dry_run or not yes:
            count = memory_count(service, project)
            if dry_run:
                print_line(printable(f"would be forgotten: {project}, {count} memories and all that is beside them"))
                return
            question = f"Forget {project} with its {count} memories, its sessions and its log?"
            confirm(question, "nothing was forgotten; --yes forgets without asking")
        receipt = delete_project(service, project)
    if json:
        print_json(receipt)
        return
    print_line(
        f"forgotten: {receipt.memory_count} memories, {receipt.session_count} sessions with {receipt.message_count} "
        f"messages, {receipt.event_count} events, {receipt.held_count} held for review; digest {receipt.ids_digest}"
    )
    note(_BYTES_STAY)


def _forget_all(service: Service, request: pb.ForgetRequest) -> pb.ForgetResponse:
    """Write by write; the last receipt, with the counts of all. Its digest is that of the last write."""
    total = pb.ForgetResponse()
    while True:
        request.request_id = str(uuid.uuid4())
        receipt = service.memories.Forget(request, timeout=CALL_TIMEOUT_S)
        for name in ("memory_count", "session_count", "message_count", "event_count", "held_count"):
            setattr(receipt, name, getattr(receipt, name) + getattr(total, name))
        total = receipt
        if not receipt.remaining_count:
            return receipt


def _counts(receipt: pb.ForgetResponse) -> str:
    return (
        f"{receipt.memory_count} memories, {receipt.session_count} sessions with {receipt.message_count} messages, "
        f"words in {receipt.event_count} events, {receipt.held_count} held for review"
    )
