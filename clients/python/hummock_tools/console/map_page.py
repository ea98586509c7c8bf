"""Star map: the memories of a project as points of a plane; a recall lights some up, and new ones come while one looks.

The points go to the browser as they come from the service, message by message, in columns of bytes.
"""

from __future__ import annotations

import json
import struct
from array import array
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Final

from starlette.responses import JSONResponse, Response, StreamingResponse

from hummock_client import HummockCallError
from hummock_client.v1 import memory_pb2
from hummock_client.v1 import memory_service_pb2 as pb
from hummock_tools.console.fields import Fields
from hummock_tools.console.garden_page import KINDS, ORIGINS
from hummock_tools.console.view import View, link, moment

COLOURINGS: Final = ("kind", "origin", "session", "age")
MOST_FOUND: Final = 30
"""Memories that a question lights up."""

_HEAD, _STARS, _FAILED = 1, 2, 3
_FRAME: Final = struct.Struct("<II")
_COUNTS: Final = struct.Struct("<III")
_LATEST: Final = (1 << 32) - 1
_AGES: Final = ("day", "week", "month", "year", "older")

Messages = AsyncGenerator[pb.MapMemoriesResponse, None]


async def star_map(view: View) -> Response:
    """The page, which a script fills; a table says as much as can be said without one."""
    details = await view.client.project(view.project)
    words = view.words
    names = {
        "kind": {number: words.name("kind", number) for number in KINDS},
        "origin": {number: words.name("origin", number) for number in ORIGINS},
        "age": dict(enumerate(words(f"map.age.{name}") for name in _AGES)),
    }
    said = ("none", "others", "waiting", "loading", "shown", "told", "found", "found.none", "failed", "at.none")
    values = {
        "details": details,
        "colourings": COLOURINGS,
        "names": json.dumps(names, ensure_ascii=False),
        "said": json.dumps({name: words(f"map.{name}") for name in said}, ensure_ascii=False),
    }
    return view.page("map.html", values)


async def stars(view: View) -> Response:
    """All points, as frames: a kind and a length of 4 bytes each, then so many bytes. Raises: HummockCallError.

    The numbers are little-endian. A frame of kind 1 is JSON of how many there are, at which seq; one of kind 3 says in
    JSON what went wrong after it; those of kind 2 are made by `_columns`.
    """
    messages = view.client.map_memories(view.project)
    # What is refused is refused before anything is sent.
    first = await anext(messages)
    return StreamingResponse(_frames(view, first, messages), media_type="application/octet-stream")


async def _frames(view: View, first: pb.MapMemoriesResponse, messages: Messages) -> AsyncIterator[bytes]:
    yield _framed(_HEAD, _json({"seq": first.seq, "count": first.memory_count}))
    try:
        async with aclosing(messages):
            async for message in messages:
                yield _framed(_STARS, _columns(message))
    except HummockCallError as error:
        yield _framed(_FAILED, _json(view.said(error)))


def _framed(kind: int, body: bytes) -> bytes:
    return _FRAME.pack(kind, len(body)) + body


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def _columns(message: pb.MapMemoriesResponse) -> bytes:
    """A part of the map for a script, which has it in typed arrays.

    The number of points, the bytes of their ids and of JSON with layout and named sessions, 4 bytes each; then columns:
    x, y (float32), time and session (uint32), length of the id in UTF-16 units (uint16), kind, origin and whether it is
    placed (uint8); then ids and JSON.
    """
    ids = "".join(message.ids).encode()
    more = _json({"layout": message.layout_id, "sessions": list(message.session_ids)})
    parts = (
        _COUNTS.pack(len(message.ids), len(ids), len(more)),
        array("f", message.x).tobytes(),
        array("f", message.y).tobytes(),
        array("I", [min(max(at, 0), _LATEST) for at in message.update_unix_s]).tobytes(),
        array("I", message.sessions).tobytes(),
        array("H", map(_units, message.ids)).tobytes(),
        bytes(message.kinds),
        bytes(message.origins),
        bytes(message.is_placed),
        ids,
        more,
    )
    return b"".join(parts)


def _units(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-16-le")) // 2


async def found_stars(view: View) -> Response:
    """The ids and titles of what a question recalls, best first; a pure read."""
    answer = await view.client.recall(
        view.project, view.query.text("q"), top_k=MOST_FOUND, view=memory_pb2.MEMORY_VIEW_INDEX
    )
    hits = [hit.memory for hit in (*answer.hits, *answer.code_fragments, *answer.domains)]
    return JSONResponse([_named(view, memory) for memory in hits])


async def one_star(view: View) -> Response:
    """Name and facts of a point, as JSON. Raises: HummockCallError."""
    memory = await view.client.get(view.project, view.query.text("id"), view=memory_pb2.MEMORY_VIEW_INDEX)
    words = view.words
    facts = [words.name("kind", memory.kind), words.name("origin", memory.origin), moment(memory.update_time)]
    return JSONResponse({**_named(view, memory), "facts": " · ".join(facts)})


def _named(view: View, memory: memory_pb2.Memory) -> dict[str, str]:
    address = link("/memory", project=view.project, id=memory.id)
    return {"id": memory.id, "title": memory.title or memory.id, "href": address}


async def live_stars(view: View) -> Response:
    """Streams changes of the points as server-sent events, until the browser hangs up.

    Each event's id is the seq that it has told up to, which browsers send as Last-Event-ID when they come again.
    """
    after = Fields([("after", view.request.headers.get("last-event-id", ""))]).whole("after")
    after = view.query.whole("after") if after is None else after
    request = pb.WatchMemoriesRequest(project=view.project, after_seq=after)
    return StreamingResponse(_told(view, request), media_type="text/event-stream")


async def _told(view: View, request: pb.WatchMemoriesRequest) -> AsyncIterator[str]:
    try:
        async with aclosing(view.client.stream(request)) as news:
            async for message in news:
                yield await _event(view, message)
    except HummockCallError as error:
        yield f"event: failed\ndata: {json.dumps(view.said(error))}\n\n"


async def _event(view: View, message: pb.WatchMemoriesResponse) -> str:
    changes: list[dict[str, object]] = []
    event = message.WhichOneof("news")
    gone = {one.id for one in message.events.events if one.change == pb.MEMORY_EVENT_TYPE_DELETED}
    come = [one.id for one in message.events.events if one.id not in gone]
    async for part in view.client.map_memories(view.project, come) if come else _no_messages():
        if part.ids and part.layout_id != view.query.text("layout"):
            # All of them stand elsewhere now.
            return f"id: {message.seq}\nevent: reset\ndata: []\n\n"
        changes += _changes(part)
    changes += [{"id": one, "gone": True} for one in gone]
    return f"id: {message.seq}\nevent: {event}\ndata: {json.dumps(changes)}\n\n"


async def _no_messages() -> Messages:
    return
    yield


def _changes(part: pb.MapMemoriesResponse) -> list[dict[str, object]]:
    sessions = ["", *part.session_ids]
    return [
        {
            "id": one,
            "x": part.x[place],
            "y": part.y[place],
            "placed": part.is_placed[place],
            "kind": part.kinds[place],
            "origin": part.origins[place],
            "time": part.update_unix_s[place],
            "session": sessions[part.sessions[place]],
        }
        for place, one in enumerate(part.ids)
    ]
