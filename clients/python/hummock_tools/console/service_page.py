"""Pages with the list of projects and the state of the service."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.responses import HTMLResponse, Response

from hummock_client.v1 import project_service_pb2 as pb
from hummock_tools.console.activity_board import board
from hummock_tools.console.view import View, link

_PAGE_SIZE = 100


async def projects(view: View) -> Response:
    """A page of the projects."""
    page = await view.client.send(pb.ListProjectsRequest(page_size=_PAGE_SIZE, page_token=view.query.text("page")))
    next_page = link("/", page=page.next_page_token) if page.next_page_token else ""
    return view.page("projects.html", {"projects": page.projects, "next_page": next_page})


async def operations(view: View) -> Response:
    """The page with the state of the service."""
    return view.page("operations.html", await _state(view))


async def operations_now(view: View) -> Response:
    """The part of that page that changes, for a page that is open."""
    return HTMLResponse(view.html("operations_now.html", await _state(view)))


async def _state(view: View) -> Mapping[str, object]:
    """Values for the page. An older service reports no activity."""
    status = await view.client.status()
    return {"status": status, "board": board(status.activity) if status.HasField("activity") else None}
