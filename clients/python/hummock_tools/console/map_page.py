"""Star map: the memories of a project as points of a plane; a recall lights some up, and new ones come while one looks.

Points go to the browser as they come from the service, a line of JSON for each message.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from typing import Final

from starlette.responses import JSONResponse, Response, StreamingResponse

from hummock_client import HummockCallError
from hummock_client.v1 import memory_pb2
from hummock_client.v1 import memory_service_pb2 as pb
from hummock_tools.console.garden_page import KINDS, ORIGINS, watched
from hummock_tools.console.view import View, link, moment

_MOST_FOUND: Final = 30
_VIEW: Final = memory_pb2.MEMORY_VIEW_INDEX
_Point = tuple[str, float, float, int, int, int, int, str]


async def star_map(view: View) -> Response:
    """Show the page, which a script fills, with a table for browsers without scripts."""
    details = await view.client.project(view.project)
    words = view.words
    names = {
        "kind": {number: words.name("kind", number) for number in KINDS},
        "origin": {number: words.name("origin", number) for number in ORIGINS},
        "age": dict(enumerate(words(f"map.age.{name}") for name in ("day", "week", "month", "year", "older"))),
    }
    said = ("none", "others", "waiting", "loading", "shown", "told", "found", "found.none", "failed", "at.none")
    values = {
        "details": details,
        "colourings": ("kind", "origin", "session", "age"),
        "names": json.dumps(names, ensure_ascii=False),
        "said": json.dumps({name: words(f"map.{name}") for name in said}, ensure_ascii=False),
    }
    return view.page("map.html", values)


async def stars(view: View) -> Response:
    """All points as lines of JSON: seq and count, then layout and stars, or why it failed. Raises: HummockCallError."""
    messages = view.client.map_memories(view.project)
    # The first message is awaited, so that an error is sent before the response has begun.
    first = await anext(messages)
    return StreamingResponse(_lines(view, first, messages), media_type="application/x-ndjson")


async def _lines(
    view: View, first: pb.MapMemoriesResponse, messages: AsyncGenerator[pb.MapMemoriesResponse, None]
) -> AsyncIterator[str]:
    yield _line({"seq": first.seq, "count": first.memory_count})
    sessions = [""]
    try:
        async with aclosing(messages):
            async for message in messages:
                sessions += message.session_ids
                yield _line({"layout": message.layout_id, "stars": _points(message, sessions)})
    except HummockCallError as error:
        yield _line({"failed": view.said(error)})


def _line(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n"


def _points(message: pb.MapMemoriesResponse, sessions: Sequence[str]) -> list[_Point]:
    """Rows of id, x, y, whether it is placed (0 or 1), kind, origin, Unix seconds of the last change, session."""
    placed, named = map(int, message.is_placed), (sessions[number] for number in message.sessions)
    columns = (message.ids, message.x, message.y, placed, message.kinds, message.origins, message.update_unix_s, named)
    return list(zip(*columns, strict=True))


async def found_stars(view: View) -> Response:
    """Return ids and titles of the hits of a recall, best first; read-only."""
    answer = await view.client.recall(view.project, view.query.text("q"), top_k=_MOST_FOUND, view=_VIEW)
    hits = [hit.memory for hit in (*answer.hits, *answer.code_fragments, *answer.domains)]
    return JSONResponse([_named(view, memory) for memory in hits])


async def one_star(view: View) -> Response:
    """Name and facts of a point, as JSON. Raises: HummockCallError."""
    memory = await view.client.get(view.project, view.query.text("id"), view=_VIEW)
    facts = [view.words.name("kind", memory.kind), view.words.name("origin", memory.origin), moment(memory.update_time)]
    return JSONResponse({**_named(view, memory), "facts": " · ".join(facts)})


def _named(view: View, memory: memory_pb2.Memory) -> dict[str, str]:
    address = link("/memory", project=view.project, id=memory.id)
    return {"id": memory.id, "title": memory.title or memory.id, "href": address}


async def live_stars(view: View) -> Response:
    """Streams changes of the points; `reset` where all of them have moved."""
    return watched(view, memory_pb2.MemoryFilter(), _event)


async def _event(view: View, message: pb.WatchMemoriesResponse) -> tuple[str, object]:
    name = str(message.WhichOneof("news"))
    gone = [one.id for one in message.events.events if one.change == pb.MEMORY_EVENT_TYPE_DELETED]
    come = [one.id for one in message.events.events if one.id not in gone]
    points: list[_Point] = []
    # Without ids the service would send the whole map.
    if come:
        async for part in view.client.map_memories(view.project, come):
            points += _points(part, ["", *part.session_ids])
            if part.ids and part.layout_id != view.query.text("layout"):
                name = "reset"
    return name, {"stars": points, "gone": gone}
