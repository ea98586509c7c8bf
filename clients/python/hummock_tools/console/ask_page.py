"""Ask: what a question recalls and why, with other settings alongside, and why a memory is missing. Pure reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from starlette.responses import Response

from hummock_client import HummockCallError
from hummock_client.v1 import explain_pb2, recall_pb2
from hummock_tools.console.asking import DECAY_MODES, NUMBERS, PRESETS, as_text, recall_of
from hummock_tools.console.score_bar import Segment, Step, score_bars, waterfall
from hummock_tools.console.view import View, link, status_of

_SLIDERS: Final = {"relevance_weight": (0, 1, 0.05), "min_similarity": (-1, 1, 0.05), "half_life_days": (1, 365, 1)}
"""Least, largest and step of each of NUMBERS, as its slider has them; the field takes what the service takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A hit with its bar, its rank and where the other column has it; 0: nowhere, None: there is no other column."""

    hit: recall_pb2.Hit
    bar: list[Segment]
    rank: int
    other_rank: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The hits of one group."""

    group: int
    rows: list[Row]


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One recall and its answer."""

    request: recall_pb2.RecallRequest
    reply: recall_pb2.RecallResponse
    groups: list[Group]
    steps: list[Step]


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """Why a memory is no hit, and where the recall is asked with the changes that bring it back."""

    memory_id: str
    reply: explain_pb2.ExplainResponse
    again: str


async def ask(view: View) -> Response:
    """The page, with what was asked."""
    request = recall_of(view.project, view.query)
    other = recall_of(view.project, view.query, "b_") if view.query.text("compare") else None
    columns: list[Column] = []
    missing, problem, status = None, "", 200
    if request.query_text:
        try:
            columns = await _columns(view, [request] if other is None else [request, other])
            missing = await _missing(view, request)
        except HummockCallError as error:
            problem, status = view.said(error), status_of(error)
    values = {
        "request": request,
        "other": other or request,
        "is_compared": other is not None,
        "columns": columns,
        "missing": missing,
        "missing_id": view.query.text("why"),
        "problem": problem,
        "base": as_text(request) if view.query.text("recall") else "",
        "presets": PRESETS,
        "decay_modes": DECAY_MODES,
        "numbers": NUMBERS,
        "sliders": _SLIDERS,
    }
    return view.page("ask.html", values, status)


async def _columns(view: View, requests: Sequence[recall_pb2.RecallRequest]) -> list[Column]:
    replies = [await view.client.send(request) for request in requests]
    ranks = [_ranks(reply) for reply in replies]
    others = [None] if len(replies) == 1 else [ranks[1], ranks[0]]
    return [
        Column(request=request, reply=reply, groups=_groups(reply, other), steps=waterfall(reply.receipt.stages))
        for request, reply, other in zip(requests, replies, others, strict=True)
    ]


async def _missing(view: View, request: recall_pb2.RecallRequest) -> Missing | None:
    if not (memory_id := view.query.text("why").strip()):
        return None
    reply = await view.client.send(explain_pb2.ExplainRequest(recall=request, memory_id=memory_id))
    again = ""
    if reply.HasField("changed_recall"):
        again = link("/ask", project=view.project, recall=as_text(reply.changed_recall), why=memory_id)
    return Missing(memory_id=memory_id, reply=reply, again=again)


def _hits_by_group(reply: recall_pb2.RecallResponse) -> list[tuple[int, Sequence[recall_pb2.Hit]]]:
    groups = recall_pb2.HIT_GROUP_MAIN, recall_pb2.HIT_GROUP_CODE, recall_pb2.HIT_GROUP_DOMAINS
    return list(zip(groups, (reply.hits, reply.code_fragments, reply.domains), strict=True))


def _ranks(reply: recall_pb2.RecallResponse) -> dict[tuple[int, str], int]:
    return {
        (group, hit.memory.id): rank for group, hits in _hits_by_group(reply) for rank, hit in enumerate(hits, start=1)
    }


def _groups(reply: recall_pb2.RecallResponse, other: dict[tuple[int, str], int] | None) -> list[Group]:
    return [
        Group(
            group=group,
            rows=[
                Row(
                    hit=hit,
                    bar=bar,
                    rank=rank,
                    other_rank=None if other is None else other.get((group, hit.memory.id), 0),
                )
                for rank, (hit, bar) in enumerate(zip(hits, score_bars(hits, reply.receipt), strict=True), start=1)
            ],
        )
        for group, hits in _hits_by_group(reply)
        if hits or group == recall_pb2.HIT_GROUP_MAIN
    ]
