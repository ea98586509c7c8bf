"""Replies that hold sessions and messages, and what became of a turn."""

from __future__ import annotations

from collections.abc import Iterable

from hummock.core.session import LearnedSide, LearnedTurn, Session, SessionMessage
from hummock.rpc.present import values
from hummock.v1 import context_service_pb2, session_pb2


def session(stored: Session) -> session_pb2.Session:
    """A session."""
    return session_pb2.Session(
        id=stored.id,
        title=stored.title,
        create_time=values.timestamp(stored.create_time),
        update_time=values.timestamp(stored.update_time),
        archived=stored.is_archived,
        message_count=stored.message_count,
    )


def messages(stored: Iterable[SessionMessage]) -> list[session_pb2.SessionMessage]:
    """Messages, in order."""
    return [
        session_pb2.SessionMessage(
            id=one.id,
            position=one.position,
            role=context_service_pb2.PromptRole.ValueType(one.role),
            content=one.content,
            raw=one.raw,
            send_time=values.timestamp(one.send_time),
        )
        for one in stored
    ]


def turn_response(learned: LearnedTurn) -> context_service_pb2.LearnResponse:
    """What became of a turn."""
    turn = context_service_pb2.TurnResult(user=_side(learned.user), assistant=_side(learned.assistant))
    return context_service_pb2.LearnResponse(seq=learned.seq, turn=turn)


def _side(learned: LearnedSide) -> context_service_pb2.TurnSideResult:
    return context_service_pb2.TurnSideResult(
        message_id=learned.message_id,
        position=learned.position,
        memory_id=learned.memory_id,
        status=context_service_pb2.LearnStatus.ValueType(learned.status),
    )
