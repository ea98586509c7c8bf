"""Learning, verdicts and sessions through both clients, the blocking one and the other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration

from hummock.core.learning import Judgement, Verdict
from hummock_client import Client, HummockCallError
from hummock_client.v1 import context_service_pb2 as pb
from hummock_client.v1 import learning_pb2, memory_pb2
from hummock_client.v1 import learning_service_pb2 as service_pb
from hummock_client.v1.context_service_pb2 import JUDGEMENT_HELPFUL, JUDGEMENT_WRONG
from tests.client.conftest import Answers, MakeClient
from tests.rpc import samples
from tests.rpc.edge import Noted, use_cases
from tests.service.models import install_model
from tests.service.running import in_thread, settings

LAMP = "世界.图鉴.物品.长明灯"
ENTRY = memory_pb2.Memory(id=LAMP, kind=memory_pb2.MEMORY_KIND_ENTRY, title="长明灯", content="燃鲸油，风吹不灭。")
TURN: dict[str, Any] = {"scope": "s", "turn": 1}


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    models: Path = tmp_path_factory.mktemp("models")
    chosen = settings(tmp_path_factory.mktemp("data"), models, install_model(models))
    with in_thread(chosen) as stubs:
        yield stubs.target


@pytest.fixture
def client(make_client: MakeClient, target: str) -> Iterator[Client]:
    with make_client(target) as made:
        yield made


@pytest.fixture
def project(request: pytest.FixtureRequest) -> str:
    """One a test, and one a client."""
    return str(request.node.name)


@pytest.mark.long
def test_learning_is_switched_tuned_shown_and_replayed(client: Client, project: str) -> None:
    """S3-36 to S3-40."""
    client.learn(project, [ENTRY])
    learning = client.learning
    assert not learning.state(project).enabled
    numbers = learning_pb2.LearningSettings(high_above=5, mid_above=2)
    changed = learning.update(project, enabled=True, settings=numbers, keywords={LAMP: ["whale light"]})
    assert (changed.state.enabled, changed.state.settings.high_above) == (True, 5)
    rendered = client.render_turn(project, "where is the whale light?", form=pb.RENDER_FORM_MEMORIES, **TURN)
    assert [row.memory_id for row in rendered.decision.injections] == [LAMP]
    (entry,) = learning.entries(project, "s", page_size=1)
    assert (list(entry.profile.keywords), entry.injection.usage.frequency) == (["whale light"], 1)
    assert [event.WhichOneof("event") for event in learning.events(project, page_size=2)] == [
        "settings_changed",
        "keywords_set",
        "switched",
        "injected",
    ]
    assert [event.number for event in learning.events(project, newest_first=True)] == [4, 3, 2, 1]
    assert learning.replay(project).matches
    replayed = learning.replay(project, fork=learning_pb2.LearningSettings(high_above=3))
    assert (replayed.matches, replayed.events, replayed.fork.differing_count) == (True, 4, 0)


def test_a_turn_gets_an_id_of_its_own(client: Client, project: str) -> None:
    """1.1-9."""
    client.learn(project, [ENTRY])
    client.learning.update(project, enabled=True)
    client.render_turn(project, "长明灯", **TURN)
    client.render_turn(project, "长明灯", **TURN)
    ids = {event.injected.request_id for event in client.learning.events(project) if event.HasField("injected")}
    assert len(ids) == 2
    assert "" not in ids


def test_a_watch_shows_what_changes(client: Client, project: str) -> None:
    """S3-40."""
    client.learn(project, [ENTRY])
    with closing(client.learning.watch(project, "s")) as news:
        first = next(news)
        assert [entry.memory_id for entry in first.entries] == [LAMP]
        client.learning.update(project, enabled=True)
        while not first.state.enabled:
            first = next(news)
        client.render_turn(project, "长明灯", **TURN)
        second = next(news)
        assert (second.turn, second.entries[0].injection.usage.last_sent_turn) == (2, 1)
        client.delete(project, [LAMP])
        while not list(second.removed_ids):
            second = next(news)
        assert list(second.removed_ids) == [LAMP]


def test_turns_are_observed_and_entries_read(client: Client, project: str) -> None:
    """S3-05, S3-36."""
    client.learn(project, [ENTRY])
    client.learning.update(project, enabled=True, settings=_without_pause())
    observe = client.learning.observe_turn
    assert observe(project, "长明灯在哪", "在码头。", turn=3, scope="s", used_ids=[LAMP]).seq > 0
    (observed,) = [one.turn_observed for one in client.learning.events(project) if one.HasField("turn_observed")]
    assert (observed.turn, observed.user_text, list(observed.used_ids)) == (3, "长明灯在哪", [LAMP])
    told = list(client.learning.learn_keywords(project, [LAMP]))
    assert [one.entry.memory_id for one in told if one.HasField("entry")] == [LAMP]
    assert told[-1].end == service_pb.SCAN_END_DONE
    *_, last = client.learning.learn_keywords(project, scope=service_pb.SCAN_SCOPE_ALL)
    assert last.end == service_pb.SCAN_END_DONE


def _without_pause() -> learning_pb2.LearningSettings:
    return learning_pb2.LearningSettings(cold_start_pause=Duration())


def entries_named(*names: str) -> list[memory_pb2.Memory]:
    return [
        memory_pb2.Memory(id=name, kind=memory_pb2.MEMORY_KIND_ENTRY, content=f"{name} is an entry.") for name in names
    ]


def test_pages_of_entries_follow_each_other(client: Client, project: str) -> None:
    """S3-40."""
    client.learn(project, entries_named("oak", "elm", "ash"))
    assert [one.memory_id for one in client.learning.entries(project, page_size=1)] == ["oak", "elm", "ash"]


VERDICTS = {"a": JUDGEMENT_HELPFUL, "b": JUDGEMENT_WRONG}


def test_verdicts_are_sent_by_id(answers: Answers) -> None:
    """S1-17."""
    feedback = Noted(samples.feedback_noted)

    def ask(client: Client) -> None:
        assert client.feedback("p", VERDICTS, query_text="q", session_id="s").recorded_count == 1
        assert client.feedback("p", VERDICTS, note="n").unknown_ids == ["b"]

    answers(use_cases(feedback=feedback), ask)
    assert [(one.query_text, one.note, one.session_id) for one in feedback.asked] == [("q", "", "s"), ("", "n", "")]
    assert feedback.asked[0].verdicts == (
        Verdict(memory_id="a", judgement=Judgement.HELPFUL),
        Verdict(memory_id="b", judgement=Judgement.WRONG),
    )
    assert feedback.asked[0].request_id != feedback.asked[1].request_id


def test_a_conversation_is_kept(client: Client, project: str) -> None:
    """S4-07, S4-11 to S4-14, S4-38."""
    sessions = client.sessions
    active = sessions.active(project)
    assert sessions.active(project) == active
    named = sessions.create(project, "s", title="晚上")
    assert [one.id for one in sessions.list(project, page_size=1)] == ["s", active.id]
    sent = sessions.append(project, "s", "你好", message_id="u-1")
    assert sent.position == 1
    turn = sessions.learn_turn(project, "s", pb.TurnSide(text="你好", message_id="u-1"), "hello", used_memory_ids=["m"])
    assert (turn.user.position, turn.assistant.position) == (1, 2)
    pages = [[one.content for one in page.messages] for page in sessions.messages(project, "s", page_size=1)]
    assert (pages, sessions.get(project, "s").message_count) == ([["hello"], ["你好"]], named.message_count + 2)
    assert sessions.update(project, "s", archived=True).archived
    assert [one.id for one in sessions.list(project, archived=True)] == ["s"]
    assert (sessions.update(project, "s", title="早上").title, sessions.delete(project, "s").message_count) == (
        "早上",
        2,
    )
    with pytest.raises(HummockCallError) as caught:
        sessions.get(project, "s")
    assert (caught.value.code, caught.value.reason) == (grpc.StatusCode.NOT_FOUND, "SESSION_NOT_FOUND")


def test_a_watch_yields_what_comes_and_hangs_up_when_it_is_closed(client: Client, project: str) -> None:
    """S4-12."""
    client.sessions.create(project, "s")
    client.sessions.append(project, "s", "一")
    with closing(client.sessions.watch(project, "s", newest=1)) as news:
        assert [one.content for one in next(news).messages] == ["一"]
        client.sessions.append(project, "s", "two", role=pb.PROMPT_ROLE_ASSISTANT, raw="[joy]two")
        (message,) = next(news).messages
    assert (message.position, message.content, message.raw) == (2, "two", "[joy]two")
    with closing(client.sessions.watch(project, "s", after_position=1)) as news:
        assert [one.content for one in next(news).messages] == ["two"]
