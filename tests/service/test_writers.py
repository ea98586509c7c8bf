"""A memory's writer is recorded by its token; no unconfirmed writer fills the first ten hits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.field_mask_pb2 import FieldMask
from typer.testing import CliRunner

from hummock.access.tokens import TokenFile
from hummock.cli.main import app
from hummock.core.access import Scope
from hummock_client.v1 import context_service_pb2 as context
from hummock_client.v1 import explain_pb2, memory_pb2, recall_pb2, settings_pb2, transfer_pb2
from hummock_client.v1 import memory_service_pb2 as pb
from hummock_client.v1 import project_service_pb2 as projects
from hummock_client.v1 import session_service_pb2 as sessions
from tests.service.inputs import note
from tests.service.running import Stubs, connected, in_process

TOKENS = {
    "mallory": ("*:learn",),
    "carol": ("*:learn",),
    "root": ("*:admin",),
}
QUESTION = "what is the timeout of the payment gateway?"
CAP = 4
Metadata = tuple[tuple[str, str], ...]
VARIANTS = ("ninety", "forty", "eleven", "twelve", "sixty")


@dataclass(frozen=True, slots=True)
class Callers:
    """A service, and the metadata of a call with each token."""

    stubs: Stubs
    of: dict[str, Metadata]

    def learn(self, name: str, project: str, *memories: memory_pb2.Memory) -> context.LearnResponse:
        request = context.LearnRequest(project=project, memories=memories)
        return self.stubs.context.Learn(request, metadata=self.of[name])

    def recall(self, project: str, **tuning: Any) -> list[recall_pb2.Hit]:
        return list(self.stubs.context.Recall(asked(project, **tuning), metadata=self.of["root"]).hits)

    def writer(self, project: str, memory_id: str) -> str:
        request = pb.GetMemoryRequest(project=project, id=memory_id)
        return self.stubs.memory.GetMemory(request, metadata=self.of["carol"]).memory.writer

    def forget(self, project: str, writer: str) -> int:
        request = pb.ForgetRequest(project=project, filter=memory_pb2.MemoryFilter(writers=[writer]))
        return self.stubs.memory.Forget(request, metadata=self.of["root"]).memory_count

    def listed(self, project: str, *writers: str) -> set[str]:
        where = memory_pb2.MemoryFilter(writers=writers)
        request = pb.ListMemoriesRequest(project=project, filter=where, page_size=1000)
        return {one.id for one in self.stubs.memory.ListMemories(request, metadata=self.of["root"]).memories}


def asked(project: str, **tuning: Any) -> recall_pb2.RecallRequest:
    return recall_pb2.RecallRequest(project=project, query_text=QUESTION, tuning=recall_pb2.RecallTuning(**tuning))


@contextmanager
def calling(directory: Path, models_dir: Path, model: str, environ: dict[str, str] | None = None) -> Iterator[Callers]:
    file = TokenFile(directory)
    texts = {name: file.create(name, list(map(Scope.parse, scopes)), now_s=1.0)[1] for name, scopes in TOKENS.items()}
    of: dict[str, Metadata] = {name: (("authorization", f"Bearer {text}"),) for name, text in texts.items()}
    with in_process(directory, models_dir, model, environ or {}) as process, connected(process.target) as stubs:
        yield Callers(stubs, of)


@pytest.fixture(scope="module")
def callers(tmp_path_factory: pytest.TempPathFactory, models_dir: Path, model: str) -> Iterator[Callers]:
    with calling(tmp_path_factory.mktemp("writers") / "data", models_dir, model) as made:
        yield made


def summary(text: str, **more: Any) -> memory_pb2.Memory:
    return note(text, origin=memory_pb2.ORIGIN_SUMMARY, **more)


def attack(count: int = 50) -> list[memory_pb2.Memory]:
    """Close paraphrases of an answer, each with an answer of its own."""
    return [
        summary(
            f"{QUESTION} the timeout of the payment gateway is {VARIANTS[at % 5]} {at}",
            id=f"bad-{at}",
        )
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
    callers.learn("mallory", project, *attack())
    callers.learn("carol", project, *honest())
    found = callers.recall(project)
    assert len(found) == 10
    assert {"good-0", "good-1", "good-2"} <= set(ids(found))
    last = max(place for place, one in enumerate(ids(found)) if one.startswith("good"))
    assert sum(one.startswith("bad") for one in ids(found)[:last]) == CAP
    # What fell behind says so, and the receipt how much of it there is.
    behind = [hit for hit in found[last:] if hit.over_writer_cap]
    assert behind
    assert all(hit.memory.writer == "mallory" for hit in behind)
    receipt = callers.stubs.context.Recall(asked(project), metadata=callers.of["root"]).receipt
    assert [group.over_writer_cap for group in receipt.groups] == [len(behind)]
    # Switched off, by the request and by the project, the paraphrases fill the list.
    assert not any(one.startswith("good") for one in ids(callers.recall(project, writer_cap=10)))
    off = callers.stubs.context.Recall(asked(project, writer_cap=10), metadata=callers.of["root"]).receipt.groups[0]
    assert (off.vector, off.keyword) == (50, 50)  # AGENT's candidates, and none of others besides
    settings = settings_pb2.ProjectSettings(agent=recall_pb2.RecallTuning(writer_cap=10))
    request = projects.UpdateProjectSettingsRequest(
        project=project, settings=settings, update_mask=FieldMask(paths=["agent.writer_cap"])
    )
    callers.stubs.project.UpdateProjectSettings(request, metadata=callers.of["root"])
    assert not any(one.startswith("good") for one in ids(callers.recall(project)))
    assert {"good-0", "good-1", "good-2"} <= set(ids(callers.recall(project, writer_cap=CAP)))


def test_a_writer_who_is_alone_has_the_order_that_he_would_have_without(callers: Callers) -> None:
    callers.learn("carol", "alone", *attack(20), *honest())
    with_cap, without = callers.recall("alone", top_k=23), callers.recall("alone", top_k=23, writer_cap=10)
    assert ids(with_cap) == ids(without)
    assert not any(hit.over_writer_cap for hit in with_cap)


def test_what_has_little_to_do_with_the_question_does_not_come_before_an_agents_notes(callers: Callers) -> None:
    callers.learn("carol", "agent", *attack(12))
    callers.learn("mallory", "agent", *(note(f"the garden has {at} roses", id=f"rose-{at}") for at in range(12)))
    assert ids(callers.recall("agent")) == ids(callers.recall("agent", writer_cap=10))


def test_what_a_person_wrote_is_not_counted(callers: Callers) -> None:
    by_hand = [note(one.content, id=one.id) for one in attack(12)]
    callers.learn("carol", "by-hand", *by_hand)
    callers.learn("mallory", "by-hand", *honest())
    assert ids(callers.recall("by-hand")) == ids(callers.recall("by-hand", writer_cap=10))


def test_explain_says_that_the_writer_has_enough_and_what_helps(callers: Callers) -> None:
    project = "explained"
    callers.learn("mallory", project, *attack(12))
    callers.learn("carol", project, *honest())
    best = ids(callers.recall(project, top_k=6, writer_cap=10))
    kept = ids(callers.recall(project, top_k=6))
    lost = next(one for one in best if one not in kept)
    request = explain_pb2.ExplainRequest(recall=asked(project, top_k=6), memory_id=lost)
    explained = callers.stubs.context.Explain(request, metadata=callers.of["root"])
    assert explained.stage == explain_pb2.LOSS_STAGE_WRITER_CAP
    assert explained.threshold == CAP
    assert "Its writer has 4 of the first 10 hits already" in explained.sentence
    assert [(one.field, one.value) for one in explained.changes] == [("tuning.writer_cap", "10")]
    again = callers.stubs.context.Recall(explained.changed_recall, metadata=callers.of["root"])
    assert lost in ids(again.hits)


def test_the_writer_is_whose_token_it_was_and_nobody_says_it_himself(callers: Callers) -> None:
    project = "noted"
    callers.learn("mallory", project, summary("the lamp is lit", id="lamp", writer="carol"))
    assert callers.writer(project, "lamp") == "mallory"
    # The same text again is the same memory; other words are another's.
    callers.learn("carol", project, summary("the lamp is lit", id="lamp"))
    assert callers.writer(project, "lamp") == "mallory"

    def update(name: str, path: str, **fields: Any) -> None:
        request = pb.UpdateMemoryRequest(
            project=project, memory=memory_pb2.Memory(id="lamp", **fields), update_mask=FieldMask(paths=[path])
        )
        callers.stubs.memory.UpdateMemory(request, metadata=callers.of[name])

    update("carol", "trust", trust=0.4)
    assert callers.writer(project, "lamp") == "mallory"
    update("carol", "content", content="the lamp is out")
    assert callers.writer(project, "lamp") == "carol"


def test_both_sides_of_a_turn_have_its_writer(callers: Callers) -> None:
    made = callers.stubs.session.CreateSession(
        sessions.CreateSessionRequest(project="turns"), metadata=callers.of["carol"]
    )
    turn = context.LearnTurnRequest(
        project="turns",
        session_id=made.session.id,
        user=context.TurnSide(text="where is the lamp?"),
        assistant=context.TurnSide(text="It stands on the pier."),
    )
    callers.stubs.context.LearnTurn(turn, metadata=callers.of["carol"])
    assert len(callers.listed("turns", "carol")) == 2
    assert not callers.listed("turns", "mallory")


def test_what_a_writer_wrote_is_listed_and_forgotten_by_his_name(callers: Callers) -> None:
    project = "forgotten"
    callers.learn("mallory", project, *attack(5))
    callers.learn("carol", project, *honest())
    assert callers.listed(project, "mallory") == {f"bad-{at}" for at in range(5)}
    assert len(callers.listed(project, "mallory", "carol")) == 8
    environ = {"HUMMOCK_TARGET": callers.stubs.target, "HUMMOCK_TOKEN": callers.of["root"][0][1].split()[1]}
    run = CliRunner().invoke(app, ["memories", "ls", "-p", project, "--writer", "carol", "--json"], env=environ)
    assert run.exit_code == 0, run.output
    assert run.output.count('"writer": "carol"') == 3
    run = CliRunner().invoke(app, ["forget", "-p", project, "--writer", "mallory", "--yes"], env=environ)
    assert run.exit_code == 0, run.output
    assert "forgotten: 5 memories" in run.output
    assert callers.listed(project) == {"good-0", "good-1", "good-2"}


def test_an_export_and_its_import_keep_the_writers(callers: Callers) -> None:
    callers.learn("mallory", "from", summary("the lamp is lit", id="lamp"))
    pages = callers.stubs.project.ExportProject(
        projects.ExportProjectRequest(project="from"), metadata=callers.of["root"]
    )
    records: list[transfer_pb2.TransferRecord] = [record for page in pages for record in page.records]
    lines = [projects.ImportLine(number=number, record=record) for number, record in enumerate(records, 1)]
    request = projects.ImportProjectRequest(project="to", lines=lines)
    (reply,) = callers.stubs.project.ImportProject(iter([request]), metadata=callers.of["root"])
    assert (reply.created_count, len(reply.failures)) == (1, 0)
    assert callers.writer("to", "lamp") == "mallory"


@pytest.mark.lmdb("readers follow LMDB beside its writer")
def test_a_reader_counts_writers_as_the_service_does_and_a_start_finds_them_again(
    tmp_path: Path, models_dir: Path, model: str
) -> None:
    with calling(tmp_path / "data", models_dir, model) as first:
        first.learn("mallory", "flooded", *attack(12))
        first.learn("carol", "flooded", *honest())
        expected, of = ids(first.recall("flooded")), first.of
    assert {"good-0", "good-1", "good-2"} <= set(expected)
    with in_process(tmp_path / "data", models_dir, model, {"HUMMOCK_READERS": "1"}) as process:
        # A connection each, so that both processes are met.
        for _ in range(8):
            with connected(process.target) as stubs:
                assert ids(Callers(stubs, of).recall("flooded")) == expected
