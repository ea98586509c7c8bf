"""Pages of memories, held memories and sessions."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final, NamedTuple

from starlette.responses import Response

from hummock_client import new_request_id
from hummock_client.v1 import context_service_pb2 as context_pb
from hummock_client.v1 import memory_pb2, session_pb2
from hummock_client.v1 import memory_service_pb2 as pb
from hummock_client.v1 import session_service_pb2 as sessions_pb
from hummock_tools.console.guard import BadInput, Fields
from hummock_tools.console.view import View, go_to, link, next_page

KINDS: Final = tuple(memory_pb2.MemoryKind.values())[1:]
ORIGINS: Final = tuple(memory_pb2.Origin.values())[1:]

_PAGE_SIZE = 50
_MOST_PAGES = 16
"""Pages of the service in one of ours."""
_FILTERS = ("kind", "origin", "tag", "session", "path")
_CHANGES = {
    pb.MEMORY_EVENT_TYPE_CREATED: "created",
    pb.MEMORY_EVENT_TYPE_UPDATED: "updated",
    pb.MEMORY_EVENT_TYPE_DELETED: "deleted",
}


async def garden(view: View) -> Response:
    """A page of the list."""
    fields = view.query
    # Read before the list, so that a change in between is reported twice rather than never.
    details = await view.client.project(view.project)
    is_oldest_first = fields.text("order") == "oldest"
    order = pb.LIST_ORDER_OLDEST_FIRST if is_oldest_first else pb.LIST_ORDER_NEWEST_FIRST
    page = await view.client.send(
        pb.ListMemoriesRequest(
            project=view.project,
            filter=_filter_of(fields),
            page_size=_PAGE_SIZE,
            page_token=fields.text("page"),
            view=memory_pb2.MEMORY_VIEW_INDEX,
            order=order,
            contains=fields.text("contains"),
        )
    )
    filters = {name: fields.text(name) for name in _FILTERS}
    own = {**filters, "contains": fields.text("contains"), "order": fields.text("order")}
    is_top = not (fields.text("page") or fields.text("contains") or is_oldest_first)
    values = {
        "details": details,
        "memories": page.memories,
        "filters": own,
        "next_page": next_page("/garden", page.next_page_token, project=view.project, **own),
        "first_page": link("/garden", project=view.project, **own) if fields.text("page") else "",
        "live": link(
            "/live/memories", project=view.project, after=details.seq, **{name: own[name] for name in _FILTERS}
        ),
        "is_top": is_top,
        "kinds": KINDS,
        "origins": ORIGINS,
    }
    return view.page("garden.html", values)


async def live_memories(view: View) -> Response:
    """Streams changes of the listed memories; see `watched`."""
    return watched(view, _filter_of(view.query), _event)


def watched(
    view: View,
    where: memory_pb2.MemoryFilter,
    event_of: Callable[[View, pb.WatchMemoriesResponse], Awaitable[tuple[str, object]]],
) -> Response:
    """Streams changes of memories that pass as server-sent events, until the browser hangs up.

    `event_of` returns the name and the data of an event. Its id is the last reported seq, which browsers send as
    Last-Event-ID when they reconnect.
    """
    after = Fields([("after", view.request.headers.get("last-event-id", ""))]).whole("after")
    after = view.query.whole("after") if after is None else after
    request = pb.WatchMemoriesRequest(project=view.project, after_seq=after, filter=where)

    async def told(news: AsyncIterator[pb.WatchMemoriesResponse]) -> AsyncIterator[str]:
        async for message in news:
            name, data = await event_of(view, message)
            yield f"id: {message.seq}\nevent: {name}\ndata: {json.dumps(data)}\n\n"

    return view.streamed(request, told)


async def _event(view: View, message: pb.WatchMemoriesResponse) -> tuple[str, object]:
    changes = [
        {
            "id": event.id,
            "change": _CHANGES.get(event.change, ""),
            "row": view.html("garden_row.html", {"memory": event.memory, "is_new": True})
            if event.HasField("memory")
            else "",
        }
        for event in message.events.events
    ]
    return str(message.WhichOneof("news")), changes


def _filter_of(fields: Fields) -> memory_pb2.MemoryFilter:
    kind, origin = fields.choice("kind", KINDS), fields.choice("origin", ORIGINS)
    return memory_pb2.MemoryFilter(
        kinds=[memory_pb2.MemoryKind.ValueType(kind)] if kind else (),
        origins=[memory_pb2.Origin.ValueType(origin)] if origin else (),
        tags=fields.listed("tag"),
        session_ids=fields.many("session"),
        paths=fields.many("path"),
    )


async def review(view: View) -> Response:
    """A page of what is held, or of what newer notes probably replace."""
    if view.query.text("kind") == "replaced":
        return await _replacements(view)
    page = await view.client.send(
        pb.ListReviewRequest(project=view.project, page_size=_PAGE_SIZE, page_token=view.query.text("page"))
    )
    following = next_page("/review", page.next_page_token, project=view.project)
    return view.page("review.html", {"held": page.held, "next_page": following})


async def _replacements(view: View) -> Response:
    found: list[pb.Replacement] = []
    request = pb.ListReviewRequest(
        project=view.project, kind=pb.REVIEW_KIND_REPLACEMENT, page_token=view.query.text("page")
    )
    # Few of the notes that a page of the service looks at replace anything.
    for _ in range(_MOST_PAGES):
        page = await view.client.send(request)
        found += page.replacements
        request.page_token = page.next_page_token
        if len(found) >= _PAGE_SIZE or not page.next_page_token:
            break
    following = next_page("/review", request.page_token, project=view.project, kind="replaced")
    return view.page("replacements.html", {"replacements": found, "next_page": following})


async def decide(view: View, form: Fields) -> Response:
    """Approves or rejects one of them."""
    project, ids, verdict = form.text("project"), form.many("id"), form.text("verdict")
    newer, older = form.text("newer"), form.text("older")
    pairs = [pb.ReplacementPair(newer_id=newer, older_id=older)] if newer and older else []
    request_id = new_request_id()
    if verdict == "approve":
        await view.client.send(
            pb.ApproveReviewRequest(project=project, ids=ids, replacements=pairs, request_id=request_id)
        )
    elif verdict == "reject":
        await view.client.send(
            pb.RejectReviewRequest(project=project, ids=ids, replacements=pairs, request_id=request_id)
        )
    else:
        raise BadInput("the verdict is neither approve nor reject")
    if pairs:
        return go_to("/review", project=project, kind="replaced", did="replaced" if verdict == "approve" else "kept")
    return go_to("/review", project=project, did="approved" if verdict == "approve" else "rejected")


_MOST_MEMORIES = 1000

_ORIGINS = {
    context_pb.PROMPT_ROLE_USER: memory_pb2.ORIGIN_USER_INPUT,
    context_pb.PROMPT_ROLE_ASSISTANT: memory_pb2.ORIGIN_AI_OUTPUT,
}


class LearntMessage(NamedTuple):
    """A message and the memory learnt from it; None if there is none or it was removed."""

    message: session_pb2.ChatMessage
    memory: memory_pb2.Memory | None


async def sessions(view: View) -> Response:
    """Show a page of sessions, the most recently moved first; archived ones have a separate list."""
    archived = view.query.text("archived") == "1"
    page = await view.client.send(
        sessions_pb.ListSessionsRequest(
            project=view.project, archived=archived, page_size=_PAGE_SIZE, page_token=view.query.text("page")
        )
    )
    chosen = "1" if archived else None
    following = next_page("/sessions", page.next_page_token, project=view.project, archived=chosen)
    values = {"sessions": page.sessions, "archived": archived, "next_page": following}
    return view.page("sessions.html", values)


async def session(view: View) -> Response:
    """A page of a session's messages, the newest page first, each page in the order of time."""
    project, session_id = view.project, view.query.text("id")
    if not session_id:
        raise BadInput(view.words("error.no_session"))
    found = await view.client.sessions.get(project, session_id)
    page = await view.client.send(
        sessions_pb.ListMessagesRequest(
            project=project, session_id=session_id, page_size=_PAGE_SIZE, page_token=view.query.text("page")
        )
    )
    learnt = await _learnt(view, project, session_id)
    values = {
        "session": found,
        "said": [LearntMessage(message, _memory_of(message, learnt)) for message in page.messages],
        "earlier": next_page("/session", page.next_page_token, project=project, id=session_id),
    }
    return view.page("session.html", values)


async def _learnt(view: View, project: str, session_id: str) -> dict[tuple[int, int], list[memory_pb2.Memory]]:
    """The session's newest memories, by origin and the time of what they hold, which is that of the message."""
    page = await view.client.send(
        pb.ListMemoriesRequest(
            project=project,
            filter=memory_pb2.MemoryFilter(session_ids=[session_id]),
            page_size=_MOST_MEMORIES,
            order=pb.LIST_ORDER_NEWEST_FIRST,
            view=memory_pb2.MEMORY_VIEW_FULL,
        )
    )
    found: dict[tuple[int, int], list[memory_pb2.Memory]] = {}
    for memory in page.memories:
        found.setdefault((memory.origin, memory.event_time.ToNanoseconds()), []).append(memory)
    return found


def _memory_of(
    message: session_pb2.ChatMessage, learnt: dict[tuple[int, int], list[memory_pb2.Memory]]
) -> memory_pb2.Memory | None:
    candidates = learnt.get((_ORIGINS.get(message.role, 0), message.send_time.ToNanoseconds()), [])
    return next((memory for memory in candidates if memory.content == message.content), next(iter(candidates), None))
