"""Notifications about a stored turn, and everything else around one."""

from __future__ import annotations

from itertools import count

import pytest

from hummock.core.errors import SessionNotFound
from hummock.core.session import (
    AppendMessage,
    CreateSession,
    DeleteSession,
    LearnTurnCommand,
    ObservedTurn,
    PromptRole,
    TurnSide,
)
from hummock.memories.learn_turn import LearnTurn
from hummock.memories.preparation import Preparation
from hummock.memories.sessions import Sessions
from hummock.ports.writes import UnitOfWork
from hummock.text.tokens import EstimatedTokens
from tests.strategies import write_request
from tests.workplace import Workplace


def side(text: str) -> TurnSide:
    return TurnSide(text=text, message_id="", raw="", emotion_label="", speaker="")


def turn(*, request_id: str = "") -> LearnTurnCommand:
    return LearnTurnCommand(
        project="p",
        request_id=request_id,
        fingerprint=b"f",
        session_id="s",
        user=side("问"),
        assistant=side("answer"),
        used_memory_ids=("世界.图鉴",),
    )


class Talk:
    """Sessions and turns over the store of a workplace."""

    def __init__(self, workplace: Workplace) -> None:
        numbers = count()

        def make_id() -> str:
            return f"made-{next(numbers)}"

        self.store = workplace.store
        self.clock = workplace.clock
        self.embedder = workplace.embedder
        self.heard: list[ObservedTurn] = []
        self.sessions = Sessions(workplace.store, workplace.clock, make_id)
        preparation = Preparation(workplace.embedder, EstimatedTokens(), make_id)
        self.heard_after: list[int] = []
        followers = (self.heard.append, lambda turn: self.heard_after.append(turn.seq))
        self.learn_turn = LearnTurn(workplace.store, preparation, workplace.clock, make_id, followers)

    def open(self, session_id: str) -> None:
        self.sessions.create(
            CreateSession(project="p", request_id="", fingerprint=b"", session_id=session_id, title="")
        )

    def append(self, session_id: str, content: str) -> None:
        self.sessions.append(
            AppendMessage(
                project="p",
                request_id="",
                fingerprint=b"",
                session_id=session_id,
                message_id="",
                role=PromptRole.USER,
                content=content,
                raw="",
            )
        )


@pytest.fixture
def talk(work: Workplace) -> Talk:
    return Talk(work)


def test_followers_are_told_of_a_turn_that_is_durable(talk: Talk) -> None:
    """S3-05."""
    talk.open("s")
    learned = talk.learn_turn(turn())
    assert talk.heard == [
        ObservedTurn(
            project="p",
            session_id="s",
            user_text="问",
            assistant_text="answer",
            used_memory_ids=("世界.图鉴",),
            seq=learned.seq,
        )
    ]
    assert talk.heard_after == [learned.seq]


def test_a_repeat_is_told_of_with_the_seq_it_had(talk: Talk) -> None:
    talk.open("s")
    request_id = "5f0c0a5e-0000-4000-8000-000000000000"
    first = talk.learn_turn(turn(request_id=request_id))
    talk.append("s", "more")
    assert talk.learn_turn(turn(request_id=request_id)) == first
    assert [heard.seq for heard in talk.heard] == [first.seq, first.seq]


def test_a_repeat_is_not_embedded_again(talk: Talk) -> None:
    talk.open("s")
    request_id = "5f0c0a5e-0000-4000-8000-000000000000"
    talk.learn_turn(turn(request_id=request_id))
    assert len(talk.embedder.embedded) == 2
    talk.learn_turn(turn(request_id=request_id))
    assert len(talk.embedder.embedded) == 2


def test_a_turn_of_an_unknown_session_is_not_told_of_and_makes_no_project(talk: Talk) -> None:
    with pytest.raises(SessionNotFound):
        talk.learn_turn(turn())
    assert talk.store.project("p") is None
    assert talk.embedder.embedded == []
    talk.open("other")
    with pytest.raises(SessionNotFound):
        talk.learn_turn(turn())
    assert talk.embedder.embedded == []
    assert talk.heard == []


def test_a_repeat_is_answered_as_the_first_time_though_its_session_is_gone(talk: Talk) -> None:
    talk.open("s")
    request_id = "5f0c0a5e-0000-4000-8000-000000000000"
    first = talk.learn_turn(turn(request_id=request_id))
    talk.sessions.delete(DeleteSession(project="p", request_id="", fingerprint=b"", session_id="s"))
    assert talk.learn_turn(turn(request_id=request_id)) == first


def test_a_session_that_is_deleted_while_its_turn_is_embedded_takes_nothing(talk: Talk) -> None:
    talk.open("s")

    def delete() -> None:
        def apply(work: UnitOfWork) -> None:
            work.sessions.delete("s")

        talk.store.write("p", write_request(apply)).result(timeout=30)

    talk.embedder.before = delete
    with pytest.raises(SessionNotFound):
        talk.learn_turn(turn())
    project = talk.store.project("p")
    assert project is not None
    assert project.kinds == {}
    assert talk.heard == []


def test_time_never_goes_back_in_a_session(talk: Talk) -> None:
    """S4-08."""
    talk.open("s")
    before = talk.clock.now()
    talk.clock.move(-60)
    talk.append("s", "earlier?")
    (message,) = talk.sessions.messages("p", "s", None, 9, characters=None, most_bytes=1 << 20).messages
    assert message.send_time == before
