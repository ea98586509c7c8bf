"""What there is and how it is: the projects, and the state of the service."""

from __future__ import annotations

from starlette.responses import HTMLResponse, Response

from hummock.console.view import View, link
from hummock.v1 import project_service_pb2 as pb

_PAGE_SIZE = 100


async def projects(view: View) -> Response:
    """A page of the projects."""
    page = await view.client.send(pb.ListProjectsRequest(page_size=_PAGE_SIZE, page_token=view.query.text("page")))
    next_page = link("/", page=page.next_page_token) if page.next_page_token else ""
    return view.page("projects.html", {"projects": page.projects, "next_page": next_page})


async def operations(view: View) -> Response:
    """How the service is."""
    return view.page("operations.html", {"status": await view.client.status()})


async def operations_now(view: View) -> Response:
    """The part of that page that changes, for a page that is open."""
    return HTMLResponse(view.html("operations_now.html", {"status": await view.client.status()}))
