"""Review: what is held because it reads like an instruction to a model, to be approved or rejected."""

from __future__ import annotations

from starlette.responses import Response

from hummock_client import new_request_id
from hummock_client.v1 import memory_service_pb2 as pb
from hummock_tools.console.fields import BadInput, Fields
from hummock_tools.console.view import View, go_to, link

_PAGE_SIZE = 50


async def review(view: View) -> Response:
    """A page of what is held."""
    page = await view.client.send(
        pb.ListReviewRequest(project=view.project, page_size=_PAGE_SIZE, page_token=view.query.text("page"))
    )
    next_page = link("/review", project=view.project, page=page.next_page_token) if page.next_page_token else ""
    return view.page("review.html", {"held": page.held, "next_page": next_page})


async def decide(view: View, form: Fields) -> Response:
    """Approves or rejects one of them."""
    project, ids = form.text("project"), form.many("id")
    request_id = new_request_id()
    if form.text("verdict") == "approve":
        await view.client.send(pb.ApproveReviewRequest(project=project, ids=ids, request_id=request_id))
        return go_to("/review", project=project, did="approved")
    if form.text("verdict") == "reject":
        await view.client.send(pb.RejectReviewRequest(project=project, ids=ids, request_id=request_id))
        return go_to("/review", project=project, did="rejected")
    raise BadInput("the verdict is neither approve nor reject")
