"""Notifications about a stored turn, and everything else around one."""

from __future__ import annotations

from itertools import count

import pytest

from hummock.core.errors import SessionNotFound
from hummock.core.session import LearnedTurn, ObservedTurn
from hummock.memories.learn_turn import LearnTurn
from hummock.memories.preparation import Preparation
from hummock.memories.sessions import Sessions
from hummock.text.tokens import EstimatedTokens
from tests.memories.commands import creation, removal, saying, turn
from tests.strategies import write_request
from tests.workplace import Workplace

REQUEST_ID = "5f0c0a5e-0000-4000-8000-000000000000"


class Talk:
    """Sessions and turns over the store of a workplace."""

    def __init__(self, workplace: Workplace) -> None:
        numbers = count()
        make_id = lambda: f"made-{next(numbers)}"  # noqa: E731
        self.store = workplace.store
        self.clock = workplace.clock
        self.embedder = workplace.embedder
        self.heard: list[ObservedTurn] = []
        self.sessions = Sessions(workplace.store, workplace.clock, make_id)
        preparation = Preparation(workplace.embedder, EstimatedTokens(), make_id)
        self.heard_after: list[int] = []
        followers = (self.heard.append, lambda turn: self.heard_after.append(turn.seq))
        self.learn_turn = LearnTurn(
            workplace.store, preparation, workplace.clock, make_id, followers, lambda project: None
        )

    def open(self, session_id: str = "s") -> None:
        self.sessions.create(creation(session_id))

    def learn(self, request_id: str = "") -> LearnedTurn:
        return self.learn_turn(turn("问", "answer", "世界.图鉴", request_id=request_id))


@pytest.fixture
def talk(work: Workplace) -> Talk:
    return Talk(work)


def test_followers_are_told_of_a_turn_that_is_durable(talk: Talk) -> None:
    """S3-05."""
    talk.open()
    learned = talk.learn()
    assert talk.heard == [
        ObservedTurn(
            project="p", session_id="s", user_text="问", assistant_text="answer", used_memory_ids=("世界.图鉴",),
            seq=learned.seq,
        )
    ]  # fmt: skip
    assert talk.heard_after == [learned.seq]


def test_a_repeat_is_told_of_with_the_seq_it_had_and_is_not_embedded_again(talk: Talk) -> None:
    talk.open()
    first = talk.learn(REQUEST_ID)
    assert len(talk.embedder.embedded) == 2
    talk.sessions.append(saying("more"))
    assert talk.learn(REQUEST_ID) == first
    assert [heard.seq for heard in talk.heard] == [first.seq, first.seq]
    assert len(talk.embedder.embedded) == 2


def test_a_turn_of_an_unknown_session_is_not_told_of_and_makes_no_project(talk: Talk) -> None:
    with pytest.raises(SessionNotFound):
        talk.learn()
    assert talk.store.project("p") is None
    assert talk.embedder.embedded == []
    talk.open("other")
    with pytest.raises(SessionNotFound):
        talk.learn()
    assert (talk.embedder.embedded, talk.heard) == ([], [])


def test_a_repeat_is_answered_as_the_first_time_though_its_session_is_gone(talk: Talk) -> None:
    talk.open()
    first = talk.learn(REQUEST_ID)
    talk.sessions.delete(removal())
    assert talk.learn(REQUEST_ID) == first


def test_a_session_that_is_deleted_while_its_turn_is_embedded_takes_nothing(talk: Talk) -> None:
    talk.open()

    def delete() -> None:
        talk.store.write("p", write_request(lambda work: work.sessions.delete("s"))).result(timeout=30)

    talk.embedder.before = delete
    with pytest.raises(SessionNotFound):
        talk.learn()
    project = talk.store.project("p")
    assert project is not None
    assert project.kinds == {}
    assert talk.heard == []


def test_time_never_goes_back_in_a_session(talk: Talk) -> None:
    """S4-08."""
    talk.open()
    before = talk.clock.now()
    talk.clock.move(-60)
    talk.sessions.append(saying("earlier?"))
    (message,) = talk.sessions.messages("p", "s", None, 9, characters=None, most_bytes=1 << 20).messages
    assert message.send_time == before
