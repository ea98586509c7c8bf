"""`hummock feedback`: what was of use."""

from __future__ import annotations

import uuid
from typing import Annotated

import typer

from hummock.cli.connection import CALL_TIMEOUT_S, DEFAULT_TARGET, connect
from hummock.cli.options import JsonFlag, ProjectOption, TargetOption, utf8
from hummock.cli.output import note, print_json, print_line, printable
from hummock.v1 import context_service_pb2 as pb

__all__ = ["feedback"]

_Ids = list[str] | None


def feedback(
    project: ProjectOption,
    query: Annotated[str, typer.Option("--query", help="What was asked.", callback=utf8)] = "",
    helpful: Annotated[_Ids, typer.Option("--helpful", metavar="ID", help="It was of use; repeatable.")] = None,
    not_helpful: Annotated[
        _Ids, typer.Option("--not-helpful", metavar="ID", help="It has nothing to do with it; repeatable.")
    ] = None,
    wrong: Annotated[_Ids, typer.Option("--wrong", metavar="ID", help="It is not so; repeatable.")] = None,
    words: Annotated[str, typer.Option("--note", help="In your own words.", callback=utf8)] = "",
    session: Annotated[str, typer.Option("--session", help="The session in which it was asked.", callback=utf8)] = "",
    json: JsonFlag = False,
    target: TargetOption = DEFAULT_TARGET,
) -> None:
    """Say which memories were of use for a query."""
    judged = (
        (pb.JUDGEMENT_HELPFUL, helpful),
        (pb.JUDGEMENT_NOT_HELPFUL, not_helpful),
        (pb.JUDGEMENT_WRONG, wrong),
    )
    verdicts = [
        pb.FeedbackVerdict(memory_id=utf8(memory_id), judgement=judgement)
        for judgement, ids in judged
        for memory_id in ids or ()
    ]
    if not verdicts and not words:
        raise typer.BadParameter("nothing to say: give --helpful, --not-helpful, --wrong or --note")
    request = pb.FeedbackRequest(
        project=project,
        request_id=str(uuid.uuid4()),
        query_text=query,
        verdicts=verdicts,
        note=words,
        session_id=session,
    )
    with connect(target) as service:
        response = service.context.Feedback(request, timeout=CALL_TIMEOUT_S)
    if json:
        print_json(response)
        return
    print_line(f"kept {response.recorded_count} verdicts{' and the note' if words else ''}")
    if response.unknown_ids:
        note(printable(f"the project has no memory {', '.join(response.unknown_ids)}"))
