"""Pages with the list of projects and the state of the service."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from starlette.responses import HTMLResponse, Response

from hummock_client.v1 import admin_service_pb2 as pb
from hummock_client.v1 import project_service_pb2 as projects_pb
from hummock_tools.console.view import View, milliseconds, next_page

_PAGE_SIZE = 100


async def projects(view: View) -> Response:
    """A page of the projects."""
    page = await view.client.send(
        projects_pb.ListProjectsRequest(page_size=_PAGE_SIZE, page_token=view.query.text("page"))
    )
    following = next_page("/", page.next_page_token)
    return view.page("projects.html", {"projects": page.projects, "next_page": following})


async def operations(view: View) -> Response:
    """The page with the state of the service."""
    return view.page("operations.html", await _state(view))


async def operations_now(view: View) -> Response:
    """Render the part of the page that changes, for an open page."""
    return HTMLResponse(view.html("operations_now.html", await _state(view)))


async def _state(view: View) -> Mapping[str, object]:
    """Values for the page. An older service reports no activity."""
    status = await view.client.status()
    return {"status": status, "board": board(status.activity) if status.HasField("activity") else None}


WIDTH: Final = 200.0
"""Largest width of a bar, in units of its drawing."""

SPARK_HEIGHT: Final = 30.0
SPARK_STEP: Final = 10.0
"""Distance between two points of a sparkline, in units of its drawing."""


class Column(NamedTuple):
    """A step of a line of rates, as it is drawn."""

    x: float
    y: float
    height: float


@dataclass(frozen=True, slots=True)
class Times:
    """Quantiles in milliseconds, and how long their bars are drawn."""

    count: int
    p50: float
    p95: float
    p99: float
    p50_width: float
    p95_width: float
    p99_width: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """All of it: the rate of Recall in the last minute, the steps of its rates, the oldest first, and their highest.

    `hit_share` is the percentage of recalls that were answered from the cache. Stages come by number, methods by short
    name.
    """

    rate: float
    most: float
    columns: list[Column]
    hit_share: float
    stages: list[tuple[int, Times]]
    methods: list[tuple[str, pb.MethodActivity, Times]]


def board(activity: pb.Activity) -> Board:
    """The board for an activity."""
    most = max(activity.recall_rates, default=0.0)
    methods = [(each.method.rpartition("/")[2], each) for each in activity.methods]
    stages = _times([each.latency for each in activity.stages])
    calls = _times([each.latency for each in activity.methods])
    return Board(
        rate=next((each.rate for name, each in methods if name == "Recall"), 0.0),
        most=most,
        columns=[_column(number, rate, most) for number, rate in enumerate(activity.recall_rates)],
        hit_share=100.0 * activity.cache_hit_count / activity.recall_count if activity.recall_count else 0.0,
        stages=[(each.stage, times) for each, times in zip(activity.stages, stages, strict=True)],
        methods=[(name, each, times) for (name, each), times in zip(methods, calls, strict=True)],
    )


def _column(number: int, rate: float, most: float) -> Column:
    height = round(SPARK_HEIGHT * rate / most, 2) if most > 0 else 0.0
    return Column(number * SPARK_STEP, round(SPARK_HEIGHT - height, 2), height)


def _times(latencies: Sequence[pb.Latency]) -> list[Times]:
    """Each latency; the longest p99 of them has a bar of the whole width."""
    longest = max((milliseconds(each.p99) for each in latencies), default=0.0)

    def width(took_ms: float) -> float:
        return round(WIDTH * took_ms / longest, 2) if longest > 0 else 0.0

    spans = [[milliseconds(span) for span in (each.p50, each.p95, each.p99)] for each in latencies]
    return [Times(each.count, *own, *map(width, own)) for each, own in zip(latencies, spans, strict=True)]
