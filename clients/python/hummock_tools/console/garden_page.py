"""Garden: the memories of a project as a list that filters, searches, pages and changes while one looks."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import Final

from starlette.responses import Response, StreamingResponse

from hummock_client import HummockCallError
from hummock_client.v1 import memory_pb2
from hummock_client.v1 import memory_service_pb2 as pb
from hummock_tools.console.fields import Fields
from hummock_tools.console.view import View, link

KINDS: Final = tuple(memory_pb2.MemoryKind.values())[1:]
ORIGINS: Final = tuple(memory_pb2.Origin.values())[1:]

_PAGE_SIZE = 50
_FILTERS = ("kind", "origin", "tag", "session", "path")
_CHANGES = {
    pb.MEMORY_EVENT_TYPE_CREATED: "created",
    pb.MEMORY_EVENT_TYPE_UPDATED: "updated",
    pb.MEMORY_EVENT_TYPE_DELETED: "deleted",
}


async def garden(view: View) -> Response:
    """A page of the list."""
    fields = view.query
    # Read before the list: what happens between the two is told twice, and not never.
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
    own = {name: fields.text(name) for name in (*_FILTERS, "contains", "order")}
    is_top = not (fields.text("page") or fields.text("contains") or is_oldest_first)
    values = {
        "details": details,
        "memories": page.memories,
        "filters": own,
        "next_page": link("/garden", project=view.project, **own, page=page.next_page_token)
        if page.next_page_token
        else "",
        "first_page": link("/garden", project=view.project, **own) if fields.text("page") else "",
        "live": link("/live/memories", project=view.project, after=details.seq, **_only_filters(own)),
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

    `event_of` gives the name and the data of an event. Its id is the seq that it has told up to, which browsers send as
    Last-Event-ID when they come again.
    """
    after = Fields([("after", view.request.headers.get("last-event-id", ""))]).whole("after")
    after = view.query.whole("after") if after is None else after
    request = pb.WatchMemoriesRequest(project=view.project, after_seq=after, filter=where)

    async def told() -> AsyncIterator[str]:
        try:
            async with aclosing(view.client.stream(request)) as news:
                async for message in news:
                    name, data = await event_of(view, message)
                    yield f"id: {message.seq}\nevent: {name}\ndata: {json.dumps(data)}\n\n"
        except HummockCallError as error:
            yield f"event: failed\ndata: {json.dumps(view.said(error))}\n\n"

    return StreamingResponse(told(), media_type="text/event-stream")


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


def _only_filters(own: dict[str, str]) -> dict[str, str]:
    return {name: own[name] for name in _FILTERS}
