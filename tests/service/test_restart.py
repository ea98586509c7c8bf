"""A service that starts again over its directory: it goes on as it was, also when another model is set."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from bench import toy_models
from hummock_client.v1 import admin_service_pb2 as admin
from hummock_client.v1 import memory_pb2 as pb
from hummock_client.v1 import memory_service_pb2 as memory
from tests.service.calls import ask, change_settings, chat, learn, memory_ids, told, watching
from tests.service.inputs import fragment, note
from tests.service.running import Stubs, in_thread, settings
from tests.service.test_settings import TIDES, say, values
from tests.service.test_stable_prefix import Conversation, fill, question
from tests.service.test_verdicts import FERRY, HELPFUL, WRONG, counts, give, given, hits, judge

pytestmark = pytest.mark.timed


Restarted = tuple[Stubs, dict[str, Any]]


def settle(service: Stubs) -> None:
    learn(service, "settings", *map(note, TIDES))
    change_settings(service, "settings", "chat.top_k", chat={"top_k": 8})
    say(service, "settings", pb.ORIGIN_MANUAL, ["Java"])


def note_feedback(service: Stubs) -> None:
    learn(service, "feedback", note("x", id="a"))
    give(service, "feedback", {"a": HELPFUL}, note="gut")


def scores(service: Stubs) -> dict[str, tuple[float, float]]:
    return {name: (hit.score, hit.verdict) for name, hit in hits(service, "verdicts").items()}


def vote(service: Stubs) -> dict[str, tuple[float, float]]:
    learn(service, "verdicts", *(note(text, id=name) for name, text in FERRY.items()))
    scores(service)
    for session in "ab":
        judge(service, "verdicts", WRONG, "early", session_id=session)
    judge(service, "verdicts", HELPFUL, "late", session_id="a")
    return scores(service)


def converse(service: Stubs) -> tuple[Any, Any]:
    """The last turn but one, and the last."""
    fill(service, "prefix")
    conversation = Conversation(service, "prefix")
    conversation.turn(question(0))
    return conversation.turn(question(5)), conversation.turn(question(6))


def keep_too_much(service: Stubs) -> None:
    code = fragment("lamp.py", "lamp", "def lamp(): ...")
    code.origin = pb.ORIGIN_INDEXER
    lamps = note("the lamp on pier one", id="one"), note("the lamp on pier two", id="two")
    learn(service, "kept", lamps[0], code, lamps[1])
    assert learn(service, "others", *lamps).seq == 1
    keeps = {"max_memories": 1, "max_age_days": 90, "max_bytes": 1000}
    change_settings(service, "kept", "retention", retention=keeps)


BEFORE: tuple[Callable[[Stubs], Any], ...] = (settle, note_feedback, vote, converse, keep_too_much)


@pytest.fixture(scope="module")
def restarted(tmp_path_factory: pytest.TempPathFactory, models_dir: Path, model: str) -> Iterator[Restarted]:
    """A service that has started again, and what each step gave before."""
    chosen = settings(tmp_path_factory.mktemp("data"), models_dir, model)
    with in_thread(chosen) as stubs:
        before = {step.__name__: step(stubs) for step in BEFORE}
    with in_thread(chosen) as stubs:
        yield stubs, before


def test_settings_and_who_said_something_of_a_project_survive(restarted: Restarted) -> None:
    """S4-46, S4-02, S0-19."""
    service, _ = restarted
    assert values(service, "settings")["chat.top_k"] == (8, True)
    assert len(chat(service, "settings", "tide harbour")) == 8
    assert list(say(restarted[0], "settings", pb.ORIGIN_INDEXER, ["Go"]).tech_stack) == ["Java"]


def test_feedback_survives_and_scores_are_the_same(restarted: Restarted) -> None:
    """S1-17, S4-02."""
    assert counts(restarted[0], "feedback") == (1, 0, 0)
    assert [one.note for one in given(restarted[0], "feedback")] == ["gut"]
    service, before = restarted
    assert scores(service) == before["vote"]
    assert before["vote"]["early"][1] < 1 < before["vote"]["late"][1]


def test_the_same_state_gives_the_same_prefix(restarted: Restarted) -> None:
    """1.1-11."""
    service, before = restarted
    middle, last = before["converse"]
    again = Conversation(service, "prefix", last=middle).turn(question(6))
    assert (again.text, again.prefix.sha256, again.prefix.token) == (last.text, last.prefix.sha256, last.prefix.token)


def test_what_is_too_much_is_forgotten_and_told(restarted: Restarted) -> None:
    """A start looks at every project at once; what is written later waits for the next look."""
    service, _ = restarted
    with watching(service, "kept", after_seq=2) as news:
        assert told(next(news)) == [(memory.MEMORY_EVENT_TYPE_DELETED, "one")]
    found = [hit.memory.id for hit in ask(service, "kept", "the lamp on pier one", min_similarity=0).hits]
    assert "two" in found
    assert "one" not in found
    listed = service.memory.ListMemories(project="kept").memories
    assert [one.kind for one in listed] == [pb.MEMORY_KIND_CODE_FRAGMENT, pb.MEMORY_KIND_NOTE]
    assert memory_ids(service, "others") == ["one", "two"]


_LOOKS = 1000


def model_of(service: Stubs) -> admin.ModelStatus:
    return service.admin.GetStatus().model


def await_all(service: Stubs) -> None:
    """Until the advice says that all memories have vectors of the next model."""
    for _ in range(_LOOKS):
        if "restart the service to use it" in model_of(service).advice:
            return
        Event().wait(0.02)
    raise AssertionError(model_of(service).advice)


@pytest.mark.storeless  # databases keep their model
def test_memories_are_embedded_anew_while_the_service_answers_and_the_next_start_switches(tmp_path: Path) -> None:
    """And back, when the setting names the former model again; one that is learnt last waits for its vectors."""
    models = tmp_path / "models"
    first, second = (toy_models.build_tiny(models, is_int8=is_int8).name for is_int8 in (True, False))
    texts = ["the harbour lamp burns oil", "red kites over the bay", "先本后息的还款方式"]

    def answers(service: Stubs) -> list[str]:
        return [ask(service, "p", text).hits[0].memory.id for text in texts]

    with in_thread(settings(tmp_path / "data", models, first)) as service:
        learn(service, "p", *(note(text, id=f"m{number}") for number, text in enumerate(texts)))
        space = model_of(service).emb_space

    with in_thread(settings(tmp_path / "data", models, second)) as service:
        assert (model_of(service).name, model_of(service).emb_space) == (first, space)
        assert answers(service) == ["m0", "m1", "m2"]
        await_all(service)
        assert answers(service) == ["m0", "m1", "m2"]

    with in_thread(settings(tmp_path / "data", models, second)) as service:
        assert model_of(service).name == second
        assert model_of(service).advice == ""
        assert answers(service) == ["m0", "m1", "m2"]
        learn(service, "p", note("blue tide at noon", id="m3"))

    with in_thread(settings(tmp_path / "data", models, first)) as service:
        assert (model_of(service).name, model_of(service).emb_space) == (first, space)
        assert answers(service) == ["m0", "m1", "m2"]
        assert ask(service, "p", "blue tide at noon").hits[0].memory.id == "m3"
