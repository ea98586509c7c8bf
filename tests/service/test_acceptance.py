"""The acceptance tests of the chat document by the turn of docs/turn.md, and watches of sessions (S4-12)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

import grpc
import pytest

from hummock_client import Client, note, vector
from hummock_client.v1 import context_service_pb2 as context
from hummock_client.v1 import memory_pb2 as pb
from hummock_client.v1 import recall_pb2 as recall
from tests.service.calls import failure, stamp
from tests.service.conversing import append, create, learn_turn, texts
from tests.service.running import Stubs, connected, in_process
from tests.service.turns import Model, documented_answer

pytestmark = [pytest.mark.long, pytest.mark.timed]

PROJECT = "朋友"
AS_OF = datetime(2024, 6, 15, 12, tzinfo=UTC)
answer = documented_answer()


@dataclass
class App:
    """An app over a service of its own, which `restart` kills and starts anew."""

    start: Callable[[ExitStack], Client]
    running: ExitStack = field(default_factory=ExitStack)

    def __post_init__(self) -> None:
        self.client = self.start(self.running)

    def restart(self) -> None:
        self.running.close()
        self.client = self.start(self.running)

    def say(self, text: str, model: Model) -> str:
        return answer(self.client, PROJECT, text, model)

    def recalled(self, text: str, *origins: pb.Origin.ValueType) -> list[str]:
        where = pb.MemoryFilter(origins=origins)
        reply = self.client.recall(PROJECT, text, preset=recall.PRESET_CHAT, min_similarity=-1, filter=where)
        return [hit.memory.content for hit in reply.hits]

    def shown(self) -> list[str]:
        """The messages of the active session, as a window would show them."""
        session = self.client.sessions.active(PROJECT)
        return [one.content for one in next(self.client.sessions.messages(PROJECT, session.id)).messages]


@pytest.fixture
def app(tmp_path: Path, models_dir: Path, model: str) -> Iterator[App]:
    def start(stack: ExitStack) -> Client:
        process = stack.enter_context(in_process(tmp_path, models_dir, model))
        stack.callback(process.kill)
        client = stack.enter_context(Client(process.target))
        client.wait_until_ready()
        return client

    made = App(start)
    with made.running:
        yield made


def test_t1_a_message_is_sent_shown_and_answered(app: App) -> None:
    """S4-47 (T1), S4-32, S4-33, S4-37, S4-39."""
    session = app.client.sessions.active(PROJECT)
    with watching(app.client, session.id) as seen:
        assert seen() == []

        def model(messages: object) -> str:
            # The user sees the message while the model still thinks.
            assert seen() == [("你好", "")]
            return "[joy]Hello, 你好!"

        assert answer(app.client, PROJECT, "你好", model) == "Hello, 你好!"
        assert seen() == [("Hello, 你好!", "[joy]Hello, 你好!")]
    assert app.shown() == ["你好", "Hello, 你好!"]
    app.restart()
    assert app.shown() == ["你好", "Hello, 你好!"]


def test_t2_what_was_just_said_is_never_recalled_however_often(app: App) -> None:
    """S4-48 (T2), S4-03, S4-27, 1.1-2."""
    text = "Do you remember my cat 团子?"
    app.client.learn(PROJECT, [note("我的猫叫团子 (my cat)")])
    for number in range(3):
        model = Model(f"[joy]Yes, answer {number}")
        app.say(text, model)
        assert "我的猫叫团子" in model.memories
        assert text not in model.memories
        assert model.said.count(text) == number + 1
    app.restart()
    assert text not in app.recalled(text)
    # In a new conversation as well, where no window leaves it out.
    app.client.sessions.create(PROJECT)
    model = Model("[joy]Yes")
    app.say(text, model)
    assert text not in model.memories
    assert model.said == [text]


def test_t3_a_restart_restores_the_conversation(app: App) -> None:
    """S4-49 (T3), S4-02, S4-11, S4-13."""
    app.client.sessions.create(PROJECT, "older")
    session = app.client.sessions.create(PROJECT, "会话")
    app.say("我叫小林", Model("[calm]记住了"))
    app.say("and I like tea", Model("[calm]noted"))
    app.restart()
    assert app.client.sessions.active(PROJECT).id == session.id
    assert app.client.sessions.active(PROJECT).title == "我叫小林"
    assert app.shown() == ["我叫小林", "记住了", "and I like tea", "noted"]
    model = Model("[calm]小林")
    app.say("what is my name?", model)
    assert model.said == ["我叫小林", "记住了", "and I like tea", "noted", "what is my name?"]


def test_t4_a_manual_memory_is_recalled_in_the_next_dialogue(app: App) -> None:
    """S4-50 (T4), S4-40, 1.1-1."""
    app.say("what do I drink in the evening?", Model("[calm]I do not know"))
    app.client.learn(PROJECT, [note("In the evening I drink 龙井 tea")])
    model = Model("[calm]龙井")
    app.say("what do I drink in the evening?", model)
    assert "In the evening I drink 龙井 tea" in model.memories
    app.restart()
    app.client.sessions.create(PROJECT)
    model = Model("[calm]龙井")
    app.say("what do I drink in the evening, please?", model)
    assert "In the evening I drink 龙井 tea" in model.memories
    assert model.said == ["what do I drink in the evening, please?"]


def test_t5_what_the_model_said_is_recalled_only_when_it_is_switched_on(app: App) -> None:
    """S4-51 (T5), S4-23, S4-53."""
    app.say("tell me of the harbour", Model("[calm]The harbour lamp is lit at seven"))
    app.restart()
    assert app.recalled("when is the harbour lamp lit?") == ["tell me of the harbour"]
    switched_on = app.recalled("when is the harbour lamp lit?", pb.ORIGIN_USER_INPUT, pb.ORIGIN_AI_OUTPUT)
    assert set(switched_on) == {"tell me of the harbour", "The harbour lamp is lit at seven"}


def test_t6_cosine_filter_dedupe_and_ranking_are_those_of_the_document(app: App) -> None:
    """S4-52 (T6), S4-17, S4-24 to S4-30; with T2 all of S4-03."""
    status = app.client.status()
    space, dim = status.model.emb_space, status.model.dim

    def remembered(name: str, text: str, cosine: float, days_ago: float, origin: pb.Origin.ValueType) -> None:
        # At this angle to the query, which is the first axis.
        components = [cosine, math.sqrt(1 - cosine**2), *([0.0] * (dim - 2))]
        fields: dict[str, Any] = {"id": name, "origin": origin, "content": text, "vector": vector(components, space)}
        session_id = "s" if origin == pb.ORIGIN_USER_INPUT else ""
        told = pb.Memory(kind=pb.MEMORY_KIND_NOTE, session_id=session_id, **fields)
        told.create_time.CopyFrom(stamp(AS_OF - timedelta(days=days_ago)))
        app.client.learn(PROJECT, [told])

    remembered("near but old", "alpha", 0.95, 14, pb.ORIGIN_MANUAL)
    remembered("fresh", "beta", 0.80, 0, pb.ORIGIN_MANUAL)
    remembered("older copy", "gamma", 0.90, 3, pb.ORIGIN_USER_INPUT)
    remembered("newer copy", "gamma", 0.90, 1, pb.ORIGIN_USER_INPUT)
    remembered("unlike", "delta", -0.5, 0, pb.ORIGIN_MANUAL)
    remembered("of the model", "epsilon", 0.99, 0, pb.ORIGIN_AI_OUTPUT)
    app.restart()
    reply = app.client.recall(
        PROJECT,
        "a question",
        preset=recall.PRESET_CHAT,
        paths=[recall.RECALL_PATH_VECTOR],
        query_vector=vector([1.0] + [0.0] * (dim - 1), space),
        as_of=stamp(AS_OF),
    )
    cosine = {hit.memory.id: hit.cosine for hit in reply.hits}
    assert cosine == pytest.approx({"newer copy": 0.9, "fresh": 0.8, "near but old": 0.95}, abs=1e-3)
    assert [hit.memory.id for hit in reply.hits] == ["newer copy", "fresh", "near but old"]
    for hit, days in zip(reply.hits, (1, 0, 14), strict=True):
        assert hit.score == pytest.approx(hit.similarity * math.exp(-days / 14), rel=1e-3)
    (counts,) = reply.receipt.groups
    assert (counts.duplicate, counts.below_min_similarity) == (1, 1)


@contextmanager
def watching(client: Client, session_id: str) -> Iterator[Callable[[], list[tuple[str, str]]]]:
    """A function that gives the next news of a session: contents, and raw texts."""
    news = client.sessions.watch(PROJECT, session_id)
    try:
        yield lambda: [(one.content, one.raw) for one in next(news).messages]
    finally:
        news.close()


def test_the_order_of_a_turn_is_append_recall_history_model_learn(app: App) -> None:
    """S4-32, S4-34, S4-35, S4-38: when the model is asked, the message is in the session and is no memory yet."""
    seen: list[tuple[list[str], int]] = []

    def model(messages: Sequence[context.PromptMessage]) -> str:
        seen.append((app.shown(), len(list(app.client.list_memories(PROJECT)))))
        assert [one.role for one in messages][-1] == context.PROMPT_ROLE_USER
        return "[calm]answer"

    answer(app.client, PROJECT, "first question", model)
    answer(app.client, PROJECT, "second question", model)
    assert seen == [(["first question"], 0), (["first question", "answer", "second question"], 2)]
    origins = [one.origin for one in app.client.list_memories(PROJECT)]
    assert origins == [pb.ORIGIN_USER_INPUT, pb.ORIGIN_AI_OUTPUT] * 2


@contextmanager
def following(service: Stubs, project: str, session_id: str, **fields: Any) -> Iterator[Iterator[list[str]]]:
    """The texts of each reply; hung up at exit."""
    stream = service.session.WatchMessages(project=project, session_id=session_id, **fields, timeout=30)
    try:
        yield (texts(reply.messages) for reply in stream)
    finally:
        stream.cancel()


def test_the_newest_messages_come_first_and_then_each_that_is_appended(service: Stubs, talking: str) -> None:
    """S4-12, S4-33."""
    for text in ("一", "two", "three"):
        append(service, talking, "s", text)
    with following(service, talking, "s", newest=2) as replies:
        assert next(replies) == ["two", "three"]
        append(service, talking, "s", "四")
        assert next(replies) == ["四"]
        learn_turn(service, talking, "s", "还款", "answer")
        assert next(replies) == ["还款", "answer"]


def test_a_watch_begins_with_no_messages_and_ends_with_its_session(service: Stubs, talking: str) -> None:
    with following(service, talking, "s") as replies:
        assert next(replies) == []
        append(service, talking, "s", "first")
        assert next(replies) == ["first"]
        service.session.DeleteSession(project=talking, id="s")
        assert failure(next, replies).code is grpc.StatusCode.NOT_FOUND


def test_a_watch_goes_on_behind_a_position(service: Stubs, talking: str) -> None:
    for number in range(30):
        append(service, talking, "s", str(number))
    with following(service, talking, "s", after_position=27) as replies:
        assert next(replies) == ["27", "28", "29"]
    with following(service, talking, "s", after_position=0) as replies:
        assert next(replies) == [str(number) for number in range(30)]
    with following(service, talking, "s", after_position=30) as replies:
        assert next(replies) == []
        append(service, talking, "s", "30")
        assert next(replies) == ["30"]


def test_a_watch_sees_no_other_session_and_no_other_project(service: Stubs, project: str) -> None:
    other = f"{project}-other"
    for where, name in ((project, "s"), (project, "t"), (other, "s")):
        create(service, where, name)
    with following(service, project, "s") as replies:
        assert next(replies) == []
        append(service, project, "t", "of another session")
        append(service, other, "s", "of another project")
        append(service, project, "s", "mine")
        assert next(replies) == ["mine"]


def test_messages_of_several_writers_come_each_once_and_in_order(service: Stubs, talking: str) -> None:
    """S4-39."""
    with following(service, talking, "s") as replies, ThreadPoolExecutor(4) as writers:
        list(writers.map(lambda number: append(service, talking, "s", str(number)), range(24)))
        seen = list(islice((text for reply in replies for text in reply), 24))
    listed = service.session.ListMessages(project=talking, session_id="s", page_size=100)
    assert seen == texts(listed.messages)
    assert sorted(seen, key=int) == [str(number) for number in range(24)]


def test_a_watch_goes_on_after_the_service_was_killed(tmp_path: Path, models_dir: Path, model: str) -> None:
    with in_process(tmp_path, models_dir, model) as first:
        with connected(first.target) as service, watching_new(service) as replies:
            assert next(replies) == []
            append(service, "p", "s", "before")
            assert next(replies) == ["before"]
            append(service, "p", "s", "missed")
        first.kill()
    with (
        in_process(tmp_path, models_dir, model) as second,
        connected(second.target) as service,
        following(service, "p", "s", after_position=1) as replies,
    ):
        assert next(replies) == ["missed"]
        append(service, "p", "s", "after")
        assert next(replies) == ["after"]


@contextmanager
def watching_new(service: Stubs) -> Iterator[Iterator[list[str]]]:
    create(service, "p", "s")
    with following(service, "p", "s") as replies:
        yield replies
