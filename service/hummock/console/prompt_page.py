"""Prompt: the section that a question brings, in each form, and what became of each memory within the budget."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from hummock.console.asking import PRESETS
from hummock.console.view import View
from hummock.v1 import context_service_pb2 as pb
from hummock.v1 import memory_pb2, recall_pb2
from hummock_client import HummockCallError

FORMS: Final = tuple(pb.RenderForm.values())[1:]
PLACEMENTS: Final = tuple(pb.Placement.values())[1:]


async def prompt(view: View) -> Response:
    """The page, with what was asked; a preview that counts nothing."""
    request = _request_of(view)
    reply, problem, titles = None, "", {}
    if request.recall.query_text:
        try:
            reply = await view.client.send(request)
            titles = await _titles(view, reply)
        except HummockCallError as error:
            problem = view.said(error)
    values = {
        "request": request,
        "reply": reply,
        "titles": titles,
        "problem": problem,
        "presets": PRESETS,
        "forms": FORMS,
        "placements": PLACEMENTS,
    }
    return view.page("prompt.html", values, 400 if problem else 200)


def _request_of(view: View) -> pb.RenderRequest:
    fields, question = view.query, view.query.text("q")
    form = pb.RenderForm.ValueType(fields.choice("form", FORMS))
    return pb.RenderRequest(
        project=view.project,
        recall=recall_pb2.RecallRequest(
            query_text=question, preset=recall_pb2.Preset.ValueType(fields.choice("preset", PRESETS))
        ),
        form=form,
        budget_tokens=fields.whole("budget_tokens"),
        placement=pb.Placement.ValueType(fields.choice("placement", PLACEMENTS)),
        current=pb.PromptMessage(role=pb.PROMPT_ROLE_USER, content=question)
        if form == pb.RENDER_FORM_MESSAGES
        else None,
    )


async def _titles(view: View, reply: pb.RenderResponse) -> dict[str, str]:
    """Titles by id, of what is still there."""
    ids = [each.memory_id for each in reply.memories]
    if not ids:
        return {}
    found = await view.client.batch_get(view.project, ids[:512], view=memory_pb2.MEMORY_VIEW_INDEX)
    return {memory.id: memory.title for memory in found.memories}
