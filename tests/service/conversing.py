"""Short forms of calls about sessions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp

from hummock_client.v1 import context_service_pb2 as context
from hummock_client.v1 import recall_pb2, session_pb2, settings_pb2
from hummock_client.v1 import session_service_pb2 as pb
from tests.service.running import Stubs


def create(service: Stubs, project: str, name: str, **fields: Any) -> pb.CreateSessionResponse:
    return service.session.CreateSession(project=project, id=name, **fields)


def update(service: Stubs, project: str, name: str, paths: Sequence[str], **fields: Any) -> pb.UpdateSessionResponse:
    request = pb.UpdateSessionRequest(project=project, session=pb.SessionUpdate(id=name, **fields))
    request.update_mask.paths.extend(paths)
    return service.session.UpdateSession(request)


def append(
    service: Stubs,
    project: str,
    session_id: str,
    content: str,
    *,
    role: context.PromptRole.ValueType = context.PROMPT_ROLE_USER,
    **fields: Any,
) -> pb.AppendMessageResponse:
    return service.session.AppendMessage(project=project, session_id=session_id, role=role, content=content, **fields)


def recent(service: Stubs, project: str, session_id: str, **fields: Any) -> pb.ListMessagesResponse:
    return service.session.ListMessages(project=project, session_id=session_id, **fields)


def listed(service: Stubs, project: str, **fields: Any) -> list[str]:
    """Ids of the sessions, the one that moved last first."""
    return [one.id for one in service.session.ListSessions(project=project, **fields).sessions]


def texts(messages: Iterable[session_pb2.ChatMessage | context.PromptMessage]) -> list[str]:
    return [message.content for message in messages]


def learn_turn(
    service: Stubs,
    project: str,
    session_id: str,
    user: str,
    assistant: str,
    *,
    ids: tuple[str, str] = ("", ""),
    at: Timestamp | None = None,
    **more: Any,
) -> context.LearnTurnResponse:
    """A turn of two texts, whose messages may have ids, and which may have been said before."""
    sides = (context.TurnSide(text=user, message_id=ids[0]), context.TurnSide(text=assistant, message_id=ids[1]))
    if at is not None:
        for side in sides:
            side.create_time.CopyFrom(at)
    return learn_sides(service, project, session_id, *sides, **more)


def learn_sides(
    service: Stubs, project: str, session_id: str, user: context.TurnSide, assistant: context.TurnSide, **more: Any
) -> context.LearnTurnResponse:
    return service.context.LearnTurn(project=project, session_id=session_id, user=user, assistant=assistant, **more)


def render_turn(
    service: Stubs, project: str, text: str, *, message_id: str = "", recall: Any = None, **session: Any
) -> context.RenderResponse:
    """The messages of a turn in a session, with the chat preset unless a recall is given."""
    asked = recall_pb2.RecallRequest(query_text=text, preset=recall_pb2.PRESET_CHAT) if recall is None else recall
    return service.context.Render(
        project=project,
        recall=asked,
        form=context.RENDER_FORM_MESSAGES,
        prompt="You are kind.",
        current=context.PromptMessage(id=message_id, role=context.PROMPT_ROLE_USER, content=text),
        session=context.SessionHistory(
            session_id=session.pop("session_id", ""), limits=settings_pb2.HistoryLimits(**session)
        ),
    )


def every_call(service: Stubs, project: str, session_id: str) -> list[Callable[[], object]]:
    """Every call that names a session which must exist."""
    return [
        lambda: service.session.GetSession(project=project, id=session_id),
        lambda: update(service, project, session_id, ["title"], title="x"),
        lambda: service.session.DeleteSession(project=project, id=session_id),
        lambda: append(service, project, session_id, "x"),
        lambda: recent(service, project, session_id),
        lambda: next(service.session.WatchMessages(project=project, session_id=session_id)),
        lambda: learn_turn(service, project, session_id, "x", "y"),
        lambda: render_turn(service, project, "x", session_id=session_id),
    ]
