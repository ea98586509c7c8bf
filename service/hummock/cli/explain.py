"""`hummock explain`: why a memory was recalled, or was not."""

from __future__ import annotations

from typing import Annotated

import typer

from hummock.cli.connection import CALL_TIMEOUT_S, DEFAULT_TARGET, connect
from hummock.cli.hits import print_degraded
from hummock.cli.options import (
    JsonFlag,
    PresetOption,
    ProjectOption,
    QueryArgument,
    TagOption,
    TargetOption,
    TopKOption,
    utf8,
)
from hummock.cli.output import note, print_json, print_line, printable
from hummock.cli.requests import recall_request
from hummock.v1 import explain_pb2 as pb

__all__ = ["explain"]


def explain(
    text: QueryArgument,
    project: ProjectOption,
    memory_id: Annotated[str, typer.Option("--id", help="The memory that is asked about.", callback=utf8)],
    preset: PresetOption = None,
    top_k: TopKOption = None,
    tag: TagOption = None,
    json: JsonFlag = False,
    target: TargetOption = DEFAULT_TARGET,
) -> None:
    """Say why a recall brings back a memory or loses it, and what would bring it back."""
    request = pb.ExplainRequest(recall=recall_request(project, text, preset, top_k, tag), memory_id=memory_id)
    with connect(target) as service:
        response = service.context.Explain(request, timeout=CALL_TIMEOUT_S)
    if json:
        print_json(response)
        return
    print_line(printable(response.sentence))
    for change in response.changes:
        print_line(printable(f"{change.field} = {change.value}" if change.value else f"{change.field} cleared"))
    if response.HasField("numbers"):
        note(_numbers(response.numbers))
    print_degraded(response.degraded)


def _numbers(numbers: pb.ExplainNumbers) -> str:
    """What the stages say of it, on one line; ranks that are not known as a dash."""
    ranks = f"by meaning {numbers.vector_rank or '-'}, by words {numbers.keyword_rank or '-'} of {numbers.searched}"
    scores = (
        f"cosine {numbers.cosine:.3f} · similarity {numbers.similarity:.3f} · words {numbers.keyword_score:.2f} · "
        f"late interaction {numbers.late_interaction_score:.3f} · decay {numbers.decay:.3f} · "
        f"relevance {numbers.relevance:.3f} · score {numbers.score:.3f}"
    )
    return f"{ranks} · {scores}"
