"""A memory's writer is recorded by its token; no unconfirmed writer fills the first ten hits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from hummock.cli.main import app
from hummock_client.v1 import explain_pb2, memory_pb2, recall_pb2
from tests.service.calls import ask, change_settings, edit, explain, export, learn, memory_ids, take_in
from tests.service.conversing import create, learn_turn
from tests.service.inputs import note
from tests.service.running import Stubs, calling_by_token, connected, in_process

pytestmark = [pytest.mark.long, pytest.mark.timed]

SCOPES = {"mallory": "*:learn", "carol": "*:learn", "root": "*:admin"}
QUESTION = "what is the timeout of the payment gateway?"
CAP = 4
VARIANTS = ("ninety", "forty", "eleven", "twelve", "sixty")


@dataclass(frozen=True, slots=True, kw_only=True)
class Callers:
    """A service as each of its callers calls it."""

    mallory: Stubs
    carol: Stubs
    root: Stubs

    def recall(self, project: str, **tuning: Any) -> list[recall_pb2.Hit]:
        return list(ask(self.root, project, QUESTION, **tuning).hits)

    def writer(self, project: str, memory_id: str) -> str:
        return self.carol.memory.GetMemory(project=project, id=memory_id).memory.writer

    def listed(self, project: str, *writers: str) -> set[str]:
        return set(memory_ids(self.root, project, filter=memory_pb2.MemoryFilter(writers=writers), page_size=1000))


@pytest.fixture(scope="module")
def callers(tmp_path_factory: pytest.TempPathFactory, models_dir: Path, model: str) -> Iterator[Callers]:
    with calling_by_token(tmp_path_factory.mktemp("writers") / "data", models_dir, model, SCOPES) as of:
        yield Callers(**of)


def summary(text: str, **more: Any) -> memory_pb2.Memory:
    return note(text, origin=memory_pb2.ORIGIN_SUMMARY, **more)


def attack(count: int = 50) -> list[memory_pb2.Memory]:
    """Close paraphrases of an answer, each with an answer of its own."""
    return [
        summary(f"{QUESTION} the timeout of the payment gateway is {VARIANTS[at % 5]} {at}", id=f"bad-{at}")
        for at in range(count)
    ]


HONEST = (
    "the payment gateway has a timeout of thirty seconds, as measured in staging",
    "we set the timeout of the gateway for payment to thirty seconds in the spring",
    "thirty seconds is the timeout before the payment gateway gives up",
)


def honest(**more: Any) -> list[memory_pb2.Memory]:
    return [summary(text, id=f"good-{at}", **more) for at, text in enumerate(HONEST)]


def ids(hits: Sequence[recall_pb2.Hit]) -> list[str]:
    return [hit.memory.id for hit in hits]


def test_fifty_paraphrases_of_one_writer_leave_room_for_what_others_wrote(callers: Callers) -> None:
    project = "flooded"
    learn(callers.mallory, project, *attack())
    learn(callers.carol, project, *honest())
    found = callers.recall(project)
    assert len(found) == 10
    assert {"good-0", "good-1", "good-2"} <= set(ids(found))
    last = max(place for place, one in enumerate(ids(found)) if one.startswith("good"))
    assert sum(one.startswith("bad") for one in ids(found)[:last]) == CAP
    # What fell behind says so, and the receipt how much of it there is.
    behind = [hit for hit in found[last:] if hit.over_writer_cap]
    assert behind
    assert all(hit.memory.writer == "mallory" for hit in behind)
    receipt = ask(callers.root, project, QUESTION).receipt
    assert [group.over_writer_cap for group in receipt.groups] == [len(behind)]
    # Switched off, by the request and by the project, the paraphrases fill the list.
    assert not any(one.startswith("good") for one in ids(callers.recall(project, writer_cap=10)))
    off = ask(callers.root, project, QUESTION, writer_cap=10).receipt.groups[0]
    assert (off.vector, off.keyword) == (50, 50)  # AGENT's candidates, and none of others besides
    change_settings(callers.root, project, "agent.writer_cap", agent={"writer_cap": 10})
    assert not any(one.startswith("good") for one in ids(callers.recall(project)))
    assert {"good-0", "good-1", "good-2"} <= set(ids(callers.recall(project, writer_cap=CAP)))


def test_a_lone_writer_an_agents_notes_and_a_person_keep_the_order_without_the_cap(callers: Callers) -> None:
    learn(callers.carol, "alone", *attack(20), *honest())
    with_cap, without = callers.recall("alone", top_k=23), callers.recall("alone", top_k=23, writer_cap=10)
    assert ids(with_cap) == ids(without)
    assert not any(hit.over_writer_cap for hit in with_cap)
    learn(callers.carol, "agent", *attack(12))
    learn(callers.mallory, "agent", *(note(f"the garden has {at} roses", id=f"rose-{at}") for at in range(12)))
    assert ids(callers.recall("agent")) == ids(callers.recall("agent", writer_cap=10))
    by_hand = [note(one.content, id=one.id) for one in attack(12)]
    learn(callers.carol, "by-hand", *by_hand)
    learn(callers.mallory, "by-hand", *honest())
    assert ids(callers.recall("by-hand")) == ids(callers.recall("by-hand", writer_cap=10))


def test_explain_says_that_the_writer_has_enough_and_what_helps(callers: Callers) -> None:
    project = "explained"
    learn(callers.mallory, project, *attack(12))
    learn(callers.carol, project, *honest())
    best = ids(callers.recall(project, top_k=6, writer_cap=10))
    kept = ids(callers.recall(project, top_k=6))
    lost = next(one for one in best if one not in kept)
    explained = explain(callers.root, project, QUESTION, lost, top_k=6)
    assert (explained.stage, explained.threshold) == (explain_pb2.LOSS_STAGE_WRITER_CAP, CAP)
    assert "Its writer has 4 of the first 10 hits already" in explained.sentence
    assert [(one.field, one.value) for one in explained.changes] == [("tuning.writer_cap", "10")]
    again = callers.root.context.Recall(explained.changed_recall)
    assert lost in ids(again.hits)


def test_the_writer_is_whose_token_it_was_and_nobody_says_it_himself(callers: Callers) -> None:
    project = "noted"
    learn(callers.mallory, project, summary("the lamp is lit", id="lamp", writer="carol"))
    assert callers.writer(project, "lamp") == "mallory"
    # The same text again is the same memory; other words are another's.
    learn(callers.carol, project, summary("the lamp is lit", id="lamp"))
    assert callers.writer(project, "lamp") == "mallory"
    edit(callers.carol, project, memory_pb2.Memory(id="lamp", trust=0.4), "trust")
    assert callers.writer(project, "lamp") == "mallory"
    edit(callers.carol, project, memory_pb2.Memory(id="lamp", content="the lamp is out"), "content")
    assert callers.writer(project, "lamp") == "carol"


def test_both_sides_of_a_turn_and_an_import_keep_their_writer(callers: Callers) -> None:
    create(callers.carol, "turns", "s")
    learn_turn(callers.carol, "turns", "s", "where is the lamp?", "It stands on the pier.")
    assert len(callers.listed("turns", "carol")) == 2
    assert not callers.listed("turns", "mallory")
    learn(callers.mallory, "from", summary("the lamp is lit", id="lamp"))
    (reply,) = take_in(callers.root, "to", export(callers.root, "from"))
    assert (reply.created_count, len(reply.failures)) == (1, 0)
    assert callers.writer("to", "lamp") == "mallory"


def test_what_a_writer_wrote_is_listed_and_forgotten_by_his_name(callers: Callers) -> None:
    project = "forgotten"
    learn(callers.mallory, project, *attack(5))
    learn(callers.carol, project, *honest())
    assert callers.listed(project, "mallory") == {f"bad-{at}" for at in range(5)}
    assert len(callers.listed(project, "mallory", "carol")) == 8
    environ = {"HUMMOCK_TARGET": callers.root.target, "HUMMOCK_TOKEN": callers.root.token}
    run = CliRunner().invoke(app, ["memories", "ls", "-p", project, "--writer", "carol", "--json"], env=environ)
    assert run.exit_code == 0, run.output
    assert run.output.count('"writer": "carol"') == 3
    run = CliRunner().invoke(app, ["forget", "-p", project, "--writer", "mallory", "--yes"], env=environ)
    assert run.exit_code == 0, run.output
    assert "forgotten: 5 memories" in run.output
    assert callers.listed(project) == {"good-0", "good-1", "good-2"}


@pytest.mark.lmdb("readers follow LMDB beside its writer")
def test_a_reader_counts_writers_as_the_service_does_and_a_start_finds_them_again(
    tmp_path: Path, models_dir: Path, model: str
) -> None:
    with calling_by_token(tmp_path / "data", models_dir, model, SCOPES) as of:
        first = Callers(**of)
        learn(first.mallory, "flooded", *attack(12))
        learn(first.carol, "flooded", *honest())
        expected, token = ids(first.recall("flooded")), first.root.token
    assert {"good-0", "good-1", "good-2"} <= set(expected)
    with in_process(tmp_path / "data", models_dir, model, {"HUMMOCK_READERS": "1"}) as process:
        # A connection each, so that both processes are met.
        for _ in range(8):
            with connected(process.target) as stubs:
                root = Stubs.over(process.target, stubs.channel, token)
                assert ids(ask(root, "flooded", QUESTION).hits) == expected
