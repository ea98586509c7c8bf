"""Sessions: who said what and when, and what each turn was learnt as."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.responses import Response

from hummock_client.v1 import context_service_pb2 as context_pb
from hummock_client.v1 import memory_pb2, session_pb2
from hummock_client.v1 import memory_service_pb2 as memories_pb
from hummock_client.v1 import session_service_pb2 as pb
from hummock_tools.console.fields import BadInput
from hummock_tools.console.view import View, link

_PAGE_SIZE = 50
_MOST_MEMORIES = 1000

_ORIGINS = {
    context_pb.PROMPT_ROLE_USER: memory_pb2.ORIGIN_USER_INPUT,
    context_pb.PROMPT_ROLE_ASSISTANT: memory_pb2.ORIGIN_AI_OUTPUT,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A message, and the memory that it was learnt as; None where it was not, or the memory is gone."""

    message: session_pb2.ChatMessage
    memory: memory_pb2.Memory | None


async def sessions(view: View) -> Response:
    """A page of the sessions, those that moved last first; archived ones on a list of their own."""
    archived = view.query.text("archived") == "1"
    page = await view.client.send(
        pb.ListSessionsRequest(
            project=view.project, archived=archived, page_size=_PAGE_SIZE, page_token=view.query.text("page")
        )
    )
    next_page = ""
    if page.next_page_token:
        next_page = link(
            "/sessions", project=view.project, archived="1" if archived else None, page=page.next_page_token
        )
    values = {"sessions": page.sessions, "archived": archived, "next_page": next_page}
    return view.page("sessions.html", values)


async def session(view: View) -> Response:
    """A page of a session's messages, the newest page first, each page in the order of time."""
    project, session_id = view.project, view.query.text("id")
    if not session_id:
        raise BadInput(view.words("error.no_session"))
    found = await view.client.sessions.get(project, session_id)
    page = await view.client.send(
        pb.ListMessagesRequest(
            project=project, session_id=session_id, page_size=_PAGE_SIZE, page_token=view.query.text("page")
        )
    )
    learnt = await _learnt(view, project, session_id)
    earlier = link("/session", project=project, id=session_id, page=page.next_page_token)
    values = {
        "session": found,
        "said": [Said(message=message, memory=_memory_of(message, learnt)) for message in page.messages],
        "earlier": earlier if page.next_page_token else "",
    }
    return view.page("session.html", values)


async def _learnt(view: View, project: str, session_id: str) -> dict[tuple[int, int], list[memory_pb2.Memory]]:
    """The session's newest memories, by origin and the time of what they hold, which is that of the message."""
    page = await view.client.send(
        memories_pb.ListMemoriesRequest(
            project=project,
            filter=memory_pb2.MemoryFilter(session_ids=[session_id]),
            page_size=_MOST_MEMORIES,
            order=memories_pb.LIST_ORDER_NEWEST_FIRST,
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
