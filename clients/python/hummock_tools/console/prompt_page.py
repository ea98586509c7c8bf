"""Prompt: the section that a question brings, in each form, and what became of each memory within the budget.

With a question of the turn before it says what has changed since, and what a cache of prompts keeps.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final

from starlette.responses import Response

from hummock_client import HummockCallError
from hummock_client.time_zone import own_zone
from hummock_client.v1 import context_service_pb2 as pb
from hummock_client.v1 import memory_pb2, recall_pb2
from hummock_tools.console.asking import PRESETS
from hummock_tools.console.view import View, status_of

FORMS: Final = tuple(pb.RenderForm.values())[1:]
PLACEMENTS: Final = tuple(pb.Placement.values())[1:]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Lines that are in both texts, in the turn before alone ("del") or in this one alone ("ins")."""

    tag: str
    text: str


async def prompt(view: View) -> Response:
    """The page, with what was asked; a preview that counts nothing."""
    earlier = view.query.text("before").strip()
    request = _request_of(view, view.query.text("q"))
    reply, before, titles = None, None, {}
    problem, status = "", 200
    if request.recall.query_text:
        try:
            if earlier:
                before = await view.client.send(_request_of(view, earlier))
                request.prefix_token = before.prefix.token
            reply = await view.client.send(request)
            titles = await _titles(view, reply)
        except HummockCallError as error:
            problem, status = view.said(error), status_of(error)
    values = {
        "request": request,
        "reply": reply,
        "earlier": earlier,
        "changes": list(_changes(before.text, reply.text)) if before and reply else [],
        "keeps_prefix": _keeps_prefix(before, reply),
        "titles": titles,
        "problem": problem,
        "presets": PRESETS,
        "forms": FORMS,
        "placements": PLACEMENTS,
    }
    return view.page("prompt.html", values, status)


def _keeps_prefix(before: pb.RenderResponse | None, reply: pb.RenderResponse | None) -> bool:
    """True if this turn begins with the same prefix as the turn before, so that a prompt cache can be reused."""
    if before is None or reply is None or not before.prefix.text:
        return False
    return reply.prefix.text == before.prefix.text


def _changes(before: str, now: str) -> Iterator[Stretch]:
    old, new = before.splitlines(), now.splitlines()
    for tag, old_from, old_to, new_from, new_to in SequenceMatcher(None, old, new).get_opcodes():
        if tag == "equal":
            yield Stretch(tag="", text="\n".join(old[old_from:old_to]))
            continue
        if old_from < old_to:
            yield Stretch(tag="del", text="\n".join(old[old_from:old_to]))
        if new_from < new_to:
            yield Stretch(tag="ins", text="\n".join(new[new_from:new_to]))


def _request_of(view: View, question: str) -> pb.RenderRequest:
    fields = view.query
    form = pb.RenderForm.ValueType(fields.choice("form", FORMS))
    return pb.RenderRequest(
        project=view.project,
        recall=recall_pb2.RecallRequest(
            query_text=question,
            preset=recall_pb2.Preset.ValueType(fields.choice("preset", PRESETS)),
            time_zone=own_zone(),
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
