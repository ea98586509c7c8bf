"""Requests about learning from plain arguments; both clients send what these make."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hummock.v1 import learning_pb2
from hummock.v1 import learning_service_pb2 as pb
from hummock_client.requests import new_request_id


def update(
    project: str,
    enabled: bool | None,
    settings: learning_pb2.LearningSettings | None,
    keywords: Mapping[str, Iterable[str]],
    request_id: str | None,
) -> pb.LearningServiceUpdateSettingsRequest:
    """A change of how a project learns; a request_id is made when none is given."""
    return pb.LearningServiceUpdateSettingsRequest(
        project=project,
        request_id=new_request_id() if request_id is None else request_id,
        enabled=enabled,
        settings=settings,
        keywords=(pb.EntryKeywords(memory_id=memory_id, keywords=several) for memory_id, several in keywords.items()),
    )


def observe(
    project: str,
    scope: str,
    turn: int,
    user_text: str,
    assistant_text: str,
    used_ids: Iterable[str],
    request_id: str | None,
) -> pb.LearningServiceObserveTurnRequest:
    """A turn that is over; a request_id is made when none is given."""
    return pb.LearningServiceObserveTurnRequest(
        project=project,
        scope=scope,
        turn=turn,
        user_text=user_text,
        assistant_text=assistant_text,
        used_memory_ids=used_ids,
        request_id=new_request_id() if request_id is None else request_id,
    )
