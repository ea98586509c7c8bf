"""A recall gives the same bytes, whatever else the service does or did."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hummock_client.v1 import memory_pb2 as pb
from hummock_client.v1 import recall_pb2 as recall
from tests.service.calls import ask, learn
from tests.service.inputs import domain, fragment, note, record
from tests.service.running import Stubs, in_thread, settings

pytestmark = pytest.mark.timed

PROJECT, OTHER = "loan 还款", "another"
CREATED_S = 1_700_000_000
PRESETS = (recall.PRESET_AGENT, recall.PRESET_CODE, recall.PRESET_CHAT)
QUERIES = (
    "how is 先本后息 repaid after a year?",
    "增加先本后息的还款方式",
    "parse_date_2",
    "火车",
    "what did we say about the ledger last week",
    "twin",
    "?",
)


def made_at(memory: pb.Memory, number: int) -> pb.Memory:
    """Ages differ for some and are equal for others."""
    memory.create_time.FromSeconds(CREATED_S + 3600 * (number // 3))
    return memory


def memories() -> list[pb.Memory]:
    """Prose of both languages, code, domains and records; many that are alike, and ties."""
    made = [
        note(f"the ledger of book {number % 5} is closed by {number % 3} people", id=f"en{number}")
        for number in range(12)
    ]
    made += [note(f"第{number}号合同先本后息，火车票{number % 4}张", id=f"zh{number}") for number in range(12)]
    made += [note("twin " * number, id=f"twin{number}") for number in range(1, 9)]
    made += [
        fragment(
            f"src/f{number}.py", f"parse_date_{number}", f"def parse_date_{number}(text):\n    return text[{number}:]"
        )
        for number in range(8)
    ]
    made += [
        record(f"how is plan {number} repaid?", f"plan {number}: 先本后息, principal first") for number in range(4)
    ]
    made += [domain("repayment 还款", "how loans are repaid", aliases=("先本后息",), key_files=("src/f2.py",))]
    for number, memory in enumerate(made):
        memory.id = memory.id or f"m{number}"
        made_at(memory, number)
    return made


def turns() -> list[pb.Memory]:
    said = (pb.ORIGIN_USER_INPUT, pb.ORIGIN_AI_OUTPUT)
    return [
        made_at(
            note(
                f"turn {number}: the ledger, 账本 {number}?", id=f"t{number}", origin=said[number % 2], session_id="s"
            ),
            number,
        )
        for number in range(8)
    ]


def requests() -> list[recall.RecallRequest]:
    asked = [
        recall.RecallRequest(
            project=PROJECT,
            query_text=text,
            preset=preset,
            context_window=number % 3,
            tuning=recall.RecallTuning(top_k=7),
        )
        for number, text in enumerate(QUERIES)
        for preset in PRESETS
    ]
    for request in asked:
        request.as_of.FromSeconds(CREATED_S + 7 * 86_400)
    return asked


def answered(service: Stubs, asked: Sequence[recall.RecallRequest], at_once: int = 1) -> list[bytes]:
    """The replies as bytes, without what says how long it took and whether it was computed."""
    with ThreadPoolExecutor(at_once) as callers:
        return list(map(essence, callers.map(service.context.Recall, asked)))


def essence(reply: recall.RecallResponse) -> bytes:
    for field in ("stages", "elapsed", "cached"):
        reply.receipt.ClearField(field)
    return reply.SerializeToString(deterministic=True)


@pytest.fixture(scope="module")
def learnt(tmp_path_factory: pytest.TempPathFactory, models_dir: Path, model: str) -> tuple[Path, list[bytes]]:
    """A directory, and what the service that filled it answered, each recall for the first time."""
    directory = tmp_path_factory.mktemp("determinism")
    with in_thread(settings(directory, models_dir, model)) as service:
        for each in (*memories(), *turns()):
            learn(service, PROJECT, each)
        learn(service, OTHER, *memories())
        found = answered(service, requests())
        # The other presets leave out what is unlike the query.
        assert all(recall.RecallResponse.FromString(reply).hits for reply in found[: 3 * 5 : 3])
        assert not any(recall.RecallResponse.FromString(reply).degraded for reply in found)
        return directory, found


@pytest.fixture(params=[1, 2, 4])
def restarted(
    request: pytest.FixtureRequest, learnt: tuple[Path, list[bytes]], models_dir: Path, model: str
) -> Iterator[tuple[Stubs, list[bytes]]]:
    """A new service of that many workers over the same directory, and the answers of the first one."""
    directory, found = learnt
    with in_thread(settings(directory, models_dir, model, workers=request.param)) as service:
        yield service, found


def test_recalls_are_the_same_after_a_restart_with_any_number_of_workers(restarted: tuple[Stubs, list[bytes]]) -> None:
    """S4-24. Asked at once by several callers, in another order, and then again, out of the cache."""
    service, found = restarted
    assert answered(service, requests()[::-1], at_once=4)[::-1] == found
    again = [ask(service, PROJECT, QUERIES[0], preset=preset) for preset in PRESETS for _ in range(2)]
    assert again[1].receipt.cached
    assert answered(service, requests()) == found


def test_recalls_do_not_depend_on_which_project_was_loaded_first_nor_on_writes_to_others(
    restarted: tuple[Stubs, list[bytes]],
) -> None:
    """S4-24, X2."""
    service, found = restarted
    ask(service, OTHER, QUERIES[0])
    for number, request in enumerate(requests()):
        learn(service, f"neighbour {number % 3}", *(note(f"先本后息 ledger {number} {place}") for place in range(3)))
        assert answered(service, [request]) == found[number : number + 1]


def test_the_order_does_not_depend_on_the_order_of_learning(service: Stubs, project: str) -> None:
    """S4-24. Nor on how many memories came in one request. A pool that cannot hold all ties takes the older ones."""
    forwards, backwards = f"{project}-forwards", f"{project}-backwards"
    for each in memories():
        learn(service, forwards, each)
    learn(service, backwards, *memories()[::-1])
    for request in requests():
        request.tuning.candidates = 100
        replies = []
        for name in (forwards, backwards):
            request.project = name
            replies.append(service.context.Recall(request))
        one, other = ([(hit.memory.id, hit.score) for hit in reply.hits] for reply in replies)
        assert one == other, request.query_text
