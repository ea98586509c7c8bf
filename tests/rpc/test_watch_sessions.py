"""A watch of a session, step by step."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from hummock.core.errors import SessionNotFound
from hummock.core.session import AppendMessage, CreateSession, DeleteSession, PromptRole
from hummock.memories.messages import Messages
from hummock.memories.preparation import Preparation
from hummock.memories.sessions import Sessions
from hummock.rpc.call import CallContext
from hummock.rpc.session_service import SessionServicer
from hummock.rpc.streams import UNTIL_WRITTEN
from hummock.text.tokens import EstimatedTokens
from hummock_client.v1 import session_service_pb2 as pb
from tests.workplace import Workplace, workplace


@pytest.fixture
def work(tmp_path: Path) -> Iterator[Workplace]:
    with workplace(tmp_path) as work:
        yield work


@pytest.fixture
def sessions(work: Workplace) -> Sessions:
    numbers = count()
    return Sessions(work.store, work.clock, make_id=lambda: f"m{next(numbers)}")


@pytest.fixture
def messages(work: Workplace) -> Messages:
    return Messages(work.store, Preparation(work.embedder, EstimatedTokens(), make_id=str), work.clock)


def begin(sessions: Sessions, *texts: str) -> None:
    sessions.create(CreateSession(project="p", request_id="", fingerprint=b"", session_id="s", title=""))
    for text in texts:
        sessions.append(
            AppendMessage(
                project="p",
                request_id="",
                fingerprint=b"",
                session_id="s",
                message_id="",
                role=PromptRole.USER,
                content=text,
                raw="",
            )
        )


@pytest.mark.parametrize("texts", [(), ("another",), ("one", "two", "three")])
def test_a_watch_ends_when_its_session_was_deleted_and_made_anew_between_two_looks(
    sessions: Sessions, messages: Messages, texts: tuple[str, ...]
) -> None:
    """S4-12."""
    begin(sessions, "old", "older")
    steps = SessionServicer(sessions, messages, lambda project: None).WatchMessages(
        pb.WatchMessagesRequest(project="p", session_id="s"), CallContext()
    )
    first = next(steps)
    assert isinstance(first, pb.WatchMessagesResponse)
    assert [message.content for message in first.messages] == ["old", "older"]
    assert next(steps) is UNTIL_WRITTEN
    sessions.delete(DeleteSession(project="p", request_id="", fingerprint=b"", session_id="s"))
    begin(sessions, *texts)
    with pytest.raises(SessionNotFound):
        next(steps)
