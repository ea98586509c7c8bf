"""`hummock remove`: memories, what was learnt of them, and projects; the service's own commands erase bytes."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, TypeVar

import grpc
import typer
from typer import Argument, Option

from hummock_client.channel import DEFAULT_TARGET
from hummock_client.requests import new_request_id
from hummock_client.v1 import memory_service_pb2 as pb
from hummock_client.v1 import project_service_pb2 as project_pb
from hummock_client.v1.memory_pb2 import MemoryFilter
from hummock_tools.cli import options
from hummock_tools.cli.connection import CALL_TIMEOUT_S, Service, connect
from hummock_tools.cli.memories import warn_of_missing
from hummock_tools.cli.output import confirm, note, print_json, print_line
from hummock_tools.cli.projects import FirstNameArgument

Slice = TypeVar("Slice", pb.DeleteMemoriesRequest, pb.ForgetRequest)
Reply = TypeVar("Reply", pb.DeleteMemoriesResponse, pb.ForgetResponse)

app = typer.Typer(no_args_is_help=True, help="Remove memories, all that was learnt of them, projects, and their bytes.")

_NOT_FORGOTTEN = "nothing was forgotten; --yes forgets without asking"
_FORGOTTEN = ("memory_count", "session_count", "message_count", "event_count", "held_count")
_BYTES_STAY = "their bytes stay in the data directory until `hummock remove bytes`, and in backups of before"


def rm(
    project: options.NamedProject,
    ids: Annotated[list[str] | None, Argument(metavar="[ID]...", help="Ids of memories.")] = None,
    kind: options.Kinds = None,
    origin: options.Origins = None,
    tag: options.Tags = None,
    meta: options.Meta = None,
    since: options.Since = None,
    until: options.Until = None,
    session: options.Sessions = None,
    dry_run: Annotated[bool, Option("--dry-run", help="Only say how many the conditions would remove.")] = False,
    yes: Annotated[bool, Option("--yes", "-y", help="Remove what meets the conditions without asking.")] = False,
    json: options.Json = False,
    target: options.Target = DEFAULT_TARGET,
) -> None:
    """Remove memories by their ids, or all that meet conditions; then it asks first."""
    where = options.filter_of(tag, kind, origin, session, since, until, meta)
    has_conditions = bool(where.ListFields())
    if bool(ids) == has_conditions or (ids and (dry_run or yes)):
        raise typer.BadParameter("give either ids or conditions; --dry-run and --yes go with conditions")
    with connect(target) as service:
        if has_conditions:
            response = _remove_where(service, project, where, only_count=dry_run, asks=not yes)
        else:
            request = pb.DeleteMemoriesRequest(project=project, request_id=new_request_id(), ids=ids)
            response = service.memories.DeleteMemories(request, timeout=CALL_TIMEOUT_S)
    if json:
        return print_json(response)
    print_line(f"{response.deleted_count} {'would be removed' if dry_run else 'removed'}")
    warn_of_missing(response.missing_ids)


def _remove_where(
    service: Service, project: str, where: MemoryFilter, *, only_count: bool, asks: bool
) -> pb.DeleteMemoriesResponse:
    """Counts, asks, and removes slice by slice; the last reply with the count of all. Raises: CommandFailed."""
    request = pb.DeleteMemoriesRequest(project=project, filter=where, dry_run=only_count or asks)
    if request.dry_run:
        counted = service.memories.DeleteMemories(request, timeout=CALL_TIMEOUT_S)
        if only_count:
            return counted
        question = f"Remove {counted.deleted_count} memories of {project}?"
        confirm(question, "nothing was removed; --yes removes without asking")
        request.dry_run = False
    return _slice_by_slice(service.memories.DeleteMemories, request, "deleted_count")


def _slice_by_slice(method: grpc.UnaryUnaryMultiCallable[Slice, Reply], request: Slice, *counts: str) -> Reply:
    """Write until nothing remains; the last reply, with the counts of all. A digest in it is that of the last write."""
    totals: Counter[str] = Counter()
    while True:
        request.request_id = new_request_id()
        reply = method(request, timeout=CALL_TIMEOUT_S)
        totals.update({name: getattr(reply, name) for name in counts})
        if not reply.remaining_count:
            for name in counts:
                setattr(reply, name, totals[name])
            return reply


def forget(
    context: typer.Context,
    project: options.NamedProject,
    ids: Annotated[list[str] | None, Argument(metavar="[ID]...", help="Ids of memories.")] = None,
    contains: Annotated[str, options.text_option("--contains", "What holds this text, also in the learning log.")] = "",
    kind: options.Kinds = None,
    origin: options.Origins = None,
    tag: options.Tags = None,
    path: Annotated[
        list[str] | None, Option("--path", help="What comes from this file, or path's end; repeatable.")
    ] = None,
    speaker: Annotated[list[str] | None, Option("--speaker", help="What this speaker said; repeatable.")] = None,
    writer: options.Writers = None,
    meta: options.Meta = None,
    since: options.Since = None,
    until: options.Until = None,
    session: options.Sessions = None,
    whole: Annotated[
        bool, Option("--all", help="The whole project that -p names, its sessions and its log too.")
    ] = False,
    dry_run: Annotated[bool, Option("--dry-run", help="Only say how much would be forgotten.")] = False,
    yes: Annotated[bool, Option("--yes", "-y", help="Forget without asking.")] = False,
    json: options.Json = False,
    target: options.Target = DEFAULT_TARGET,
) -> None:
    """Forget what meets all conditions, a session with its messages; `hummock remove bytes` then erases the bytes."""
    where = options.filter_of(tag, kind, origin, session, since, until, meta, writer)
    where.paths.extend(path or ())
    where.speakers.extend(speaker or ())
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
        return _forget_project(project, target, dry_run=dry_run, yes=yes, json=json)
    if not is_chosen:
        raise typer.BadParameter("give ids or conditions, or --all with -p for a whole project")
    with connect(target) as service:
        if dry_run or not yes:
            request.dry_run = True
            receipt = service.memories.Forget(request, timeout=CALL_TIMEOUT_S)
            if not dry_run:
                confirm(f"Forget {_counts(receipt)} of {project}?", _NOT_FORGOTTEN)
                request.dry_run = False
        if not dry_run:
            receipt = _slice_by_slice(service.memories.Forget, request, *_FORGOTTEN)
    if json:
        return print_json(receipt)
    print_line(f"{'would be forgotten' if dry_run else 'forgotten'}: {_counts(receipt)}")
    if not dry_run:
        note(_BYTES_STAY)


def _forget_project(project: str, target: str, *, dry_run: bool, yes: bool, json: bool) -> None:
    """Forgets all of a project in one write; its receipt has counts of all and the digest over all ids."""
    with connect(target) as service:
        if dry_run or not yes:
            count = _memory_count(service, project)
            if dry_run:
                return print_line(f"would be forgotten: {project}, {count} memories and all that is beside them")
            confirm(f"Forget {project} with its {count} memories, its sessions and its log?", _NOT_FORGOTTEN)
        receipt = _delete_project(service, project)
    if json:
        return print_json(receipt)
    print_line(
        f"forgotten: {receipt.memory_count} memories, {receipt.session_count} sessions with {receipt.message_count} "
        f"messages, {receipt.event_count} events, {receipt.held_count} held for review; digest {receipt.ids_digest}"
    )
    note(_BYTES_STAY)


def _counts(receipt: pb.ForgetResponse) -> str:
    return (
        f"{receipt.memory_count} memories, {receipt.session_count} sessions with {receipt.message_count} messages, "
        f"words in {receipt.event_count} events, {receipt.held_count} held for review"
    )


def _memory_count(service: Service, name: str) -> int:
    asked = project_pb.GetProjectRequest(project=name)
    return service.projects.GetProject(asked, timeout=CALL_TIMEOUT_S).project.memory_count


def _delete_project(service: Service, name: str) -> project_pb.DeleteProjectResponse:
    request = project_pb.DeleteProjectRequest(project=name, request_id=new_request_id())
    return service.projects.DeleteProject(request, timeout=CALL_TIMEOUT_S)


def delete(
    # Not from the environment: a project to delete must be named.
    name: FirstNameArgument,
    yes: Annotated[bool, Option("--yes", "-y", help="Delete without asking.")] = False,
    json: options.Json = False,
    target: options.Target = DEFAULT_TARGET,
) -> None:
    """Delete a project with all that it has; there is no way back but an export."""
    with connect(target) as service:
        if not yes:
            question = f"Delete {name} with its {_memory_count(service, name)} memories and its conversations?"
            confirm(question, "nothing was deleted; --yes deletes without asking")
        response = _delete_project(service, name)
    if json:
        return print_json(response)
    counts = f"{response.memory_count} memories, {response.session_count} sessions, {response.message_count} messages"
    print_line(f"{name} is deleted: {counts}")


app.command("memories")(rm)
app.command("traces")(forget)
app.command("project")(delete)
