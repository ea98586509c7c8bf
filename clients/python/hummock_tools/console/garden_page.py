"""Pages of memories, held memories and sessions; and of one memory: whole, to be changed, removed, brought back."""

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
from hummock_tools.console.view import BadInput, Fields, View, go_to, keep, link, next_page

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
    if verdict not in ("approve", "reject"):
        raise BadInput("the verdict is neither approve nor reject")
    decide = pb.ApproveReviewRequest if verdict == "approve" else pb.RejectReviewRequest
    await view.client.send(decide(project=project, ids=ids, replacements=pairs, request_id=new_request_id()))
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
    learnt = await _memories_of_session(view, project, session_id)
    values = {
        "session": found,
        "said": [LearntMessage(message, _memory_of(message, learnt)) for message in page.messages],
        "earlier": next_page("/session", page.next_page_token, project=project, id=session_id),
    }
    return view.page("session.html", values)


async def _memories_of_session(
    view: View, project: str, session_id: str
) -> dict[tuple[int, int], list[memory_pb2.Memory]]:
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


NEW_KINDS: Final = (
    memory_pb2.MEMORY_KIND_NOTE,
    memory_pb2.MEMORY_KIND_ENTRY,
    memory_pb2.MEMORY_KIND_LEARNING_RECORD,
    memory_pb2.MEMORY_KIND_DOMAIN_KNOWLEDGE,
)
"""Kinds that people write; code fragments are the indexer's."""

_DONE: Final = {
    context_pb.LEARN_STATUS_CREATED: "created",
    context_pb.LEARN_STATUS_UPDATED: "updated",
    context_pb.LEARN_STATUS_UNCHANGED: "unchanged",
    context_pb.LEARN_STATUS_DUPLICATE: "duplicate",
    context_pb.LEARN_STATUS_HELD: "held",
}


class Field(NamedTuple):
    """A field of a form: its name, its value as text, how large it is, and whether it must be filled."""

    name: str
    value: str
    rows: int = 1
    required: bool = False


async def memory(view: View) -> Response:
    """The page of the memory that the address names."""
    found = await _whole(view, view.project, view.query.text("id"))
    return view.page("memory.html", {"memory": found, "fields": _fields_of(found), "version": _version(found)})


async def new_memory(view: View) -> Response:
    """The form for a new memory."""
    kind = view.query.choice("kind", NEW_KINDS) or memory_pb2.MEMORY_KIND_NOTE
    empty = memory_pb2.Memory(kind=memory_pb2.MemoryKind.ValueType(kind))
    return view.page("new_memory.html", {"kind": kind, "kinds": NEW_KINDS, "fields": _fields_of(empty)})


async def add_memory(view: View, form: Fields) -> Response:
    """Learns what the form says; the form names its project."""
    project = form.text("project")
    kind = form.choice("kind", NEW_KINDS)
    memory = memory_pb2.Memory(kind=memory_pb2.MemoryKind.ValueType(kind), origin=memory_pb2.ORIGIN_MANUAL)
    for path in _paths(memory):
        _write(memory, path, form)
    return await _learnt(view, project, memory)


async def edit_memory(view: View, form: Fields) -> Response:
    """Changes the fields that the form has changed; what was there can be brought back."""
    project, memory_id = form.text("project"), form.text("id")
    before = await _whole(view, project, memory_id)
    if form.text("version") != _version(before):
        raise BadInput(view.words("error.changed_meanwhile"), 409)
    after = memory_pb2.Memory()
    after.CopyFrom(before)
    changed = []
    for path in _paths(before):
        was = after.SerializeToString(deterministic=True)
        _write(after, path, form)
        if after.SerializeToString(deterministic=True) != was:
            changed.append(path)
    if not changed:
        return go_to("/memory", project=project, id=memory_id, did="unchanged")
    now = (await view.client.update(project, after, changed)).memory
    key = keep(view.console.undo, project, before, left_as=_version(now))
    return go_to("/memory", project=project, id=memory_id, did="updated", undo=key)


async def delete_memory(view: View, form: Fields) -> Response:
    """Removes a memory; it can be brought back."""
    project, memory_id = form.text("project"), form.text("id")
    before = await _whole(view, project, memory_id)
    await view.client.delete(project, [memory_id])
    return go_to("/garden", project=project, did="deleted", undo=keep(view.console.undo, project, before, left_as=""))


async def undo(view: View, form: Fields) -> Response:
    """Learns a memory again as it was before it was changed or removed here."""
    key = form.text("undo")
    kept = view.console.undo.get(key)
    if kept is None:
        raise BadInput(view.words("error.nothing_to_undo"), 404)
    now = await view.client.batch_get(kept.project, [kept.memory.id], view=memory_pb2.MEMORY_VIEW_INDEX)
    if kept.left_as != "".join(map(_version, now.memories)):
        raise BadInput(view.words("error.overtaken"), 409)
    response = await _learnt(view, kept.project, kept.memory)
    view.console.undo.pop(key, None)
    return response


async def _learnt(view: View, project: str, memory: memory_pb2.Memory) -> Response:
    (result,) = (await view.client.learn(project, [memory])).results
    did = _DONE.get(result.status, "updated")
    if did == "held":
        return go_to("/review", project=project, did=did)
    redacted = "redacted" if any(found.redacted for found in result.secrets) else None
    return go_to("/memory", project=project, id=result.id, did=did, note=redacted)


async def _whole(view: View, project: str, memory_id: str) -> memory_pb2.Memory:
    if not (project and memory_id):
        raise BadInput(view.words("error.no_memory"))
    return await view.client.get(project, memory_id, view=memory_pb2.MEMORY_VIEW_RAW)


def _version(memory: memory_pb2.Memory) -> str:
    """Version of a memory, which changes with each update."""
    return f"{memory.update_time.ToNanoseconds()}-{memory.content_hash}"


def _fields_of(memory: memory_pb2.Memory) -> list[Field]:
    record, domain = memory.learning_record, memory.domain_knowledge
    own = {
        memory_pb2.MEMORY_KIND_LEARNING_RECORD: [
            Field("question", record.question, rows=2, required=True),
            Field("answer", record.answer, rows=8, required=True),
            Field("source_files", "\n".join(record.source_files), rows=2),
        ],
        memory_pb2.MEMORY_KIND_DOMAIN_KNOWLEDGE: [
            Field("domain", domain.domain, required=True),
            Field("domain_summary", domain.summary, rows=8, required=True),
            Field("aliases", "\n".join(domain.aliases), rows=2),
            Field("key_files", "\n".join(domain.key_files), rows=2),
        ],
    }.get(memory.kind, [Field("content", memory.content, rows=8, required=True)])
    return [
        Field("title", memory.title),
        *own,
        Field("tags", ", ".join(memory.tags)),
        Field("emotion_label", memory.emotion_label),
    ]


def _paths(memory: memory_pb2.Memory) -> tuple[str, ...]:
    """The fields that the form for a memory of this kind has."""
    has_detail = memory.kind in (memory_pb2.MEMORY_KIND_LEARNING_RECORD, memory_pb2.MEMORY_KIND_DOMAIN_KNOWLEDGE)
    return "title", "tags", "emotion_label", "detail" if has_detail else "content"


def _write(memory: memory_pb2.Memory, path: str, form: Fields) -> None:
    if path == "tags":
        memory.tags[:] = form.listed("tags")
    elif path != "detail":
        setattr(memory, path, form.text(path))
    elif memory.kind == memory_pb2.MEMORY_KIND_LEARNING_RECORD:
        record = memory.learning_record
        record.question, record.answer = form.text("question"), form.text("answer")
        record.source_files[:] = form.listed("source_files", "\n")
    else:
        domain = memory.domain_knowledge
        domain.domain, domain.summary = form.text("domain"), form.text("domain_summary")
        domain.aliases[:] = form.listed("aliases", "\n")
        domain.key_files[:] = form.listed("key_files", "\n")
