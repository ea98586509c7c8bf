"""Equal recalls: the same bytes whatever else the service does or did, and answers from the cache."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest

from hummock_client.v1 import memory_pb2 as pb
from hummock_client.v1 import recall_pb2 as recall
from tests.service.calls import ask, contents, failure, learn, recall_request, render, stages
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
    made = [note(f"the ledger of book {n % 5} is closed by {n % 3} people", id=f"en{n}") for n in range(12)]
    made += [note(f"第{number}号合同先本后息，火车票{number % 4}张", id=f"zh{number}") for number in range(12)]
    made += [note("twin " * number, id=f"twin{number}") for number in range(1, 9)]
    codes = [f"def parse_date_{number}(text):\n    return text[{number}:]" for number in range(8)]
    made += [fragment(f"src/f{number}.py", f"parse_date_{number}", code) for number, code in enumerate(codes)]
    made += [record(f"how is plan {n} repaid?", f"plan {n}: 先本后息, principal first") for n in range(4)]
    made += [domain("repayment 还款", "how loans are repaid", aliases=("先本后息",), key_files=("src/f2.py",))]
    for number, memory in enumerate(made):
        memory.id = memory.id or f"m{number}"
        made_at(memory, number)
    return made


def turns() -> list[pb.Memory]:
    said = (pb.ORIGIN_USER_INPUT, pb.ORIGIN_AI_OUTPUT)
    texts = [f"turn {number}: the ledger, 账本 {number}?" for number in range(8)]
    made = [note(text, id=f"t{n}", origin=said[n % 2], session_id="s") for n, text in enumerate(texts)]
    return [made_at(one, number) for number, one in enumerate(made)]


def requests() -> list[recall.RecallRequest]:
    asked = [
        recall_request(PROJECT, text, preset=preset, context_window=number % 3, top_k=7)
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


@pytest.mark.long
def test_recalls_are_the_same_after_a_restart_with_any_number_of_workers(restarted: tuple[Stubs, list[bytes]]) -> None:
    """S4-24. Asked at once by several callers, in another order, and then again, out of the cache."""
    service, found = restarted
    assert answered(service, requests()[::-1], at_once=4)[::-1] == found
    again = [ask(service, PROJECT, QUERIES[0], preset=preset) for preset in PRESETS for _ in range(2)]
    assert again[1].receipt.cached
    assert answered(service, requests()) == found


@pytest.mark.long
def test_recalls_do_not_depend_on_which_project_was_loaded_first_nor_on_writes_to_others(
    restarted: tuple[Stubs, list[bytes]],
) -> None:
    """S4-24, X2."""
    service, found = restarted
    ask(service, OTHER, QUERIES[0])
    for number, request in enumerate(requests()):
        learn(service, f"neighbour {number % 3}", *(note(f"先本后息 ledger {number} {place}") for place in range(3)))
        assert answered(service, [request]) == found[number : number + 1]


@pytest.mark.long
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


TEXT = "when does the 火车 leave"


def test_an_equal_recall_is_answered_from_the_cache_until_a_hit_is_deleted(service: Stubs, project: str) -> None:
    """S0-31, S0-32, S2-03, X2."""
    learn(service, project, note("the 火车 leaves at nine", id="a"))
    fresh, cached = (ask(service, project, TEXT) for _ in range(2))
    assert (fresh.receipt.cached, cached.receipt.cached) == (False, True)
    assert stages(cached.receipt) == ["cache"]
    assert [(hit.memory, hit.score) for hit in cached.hits] == [(hit.memory, hit.score) for hit in fresh.hits]
    assert (cached.seq, cached.content_seq) == (fresh.seq, fresh.content_seq)
    assert contents(ask(service, project, TEXT))
    assert contents(ask(service, project, TEXT))
    service.memory.DeleteMemories(project=project, ids=["a"])
    assert contents(ask(service, project, TEXT)) == []


def test_a_memory_learnt_within_five_minutes_of_an_equal_recall_is_found(service: Stubs, project: str) -> None:
    """1.1-1, S4-50."""
    learn(service, project, note("the 火车 leaves at nine"))
    for number in range(5):
        ask(service, project, TEXT)
        learn(service, project, note(f"now the 火车 {number} leaves at {number}"))
        answer = ask(service, project, TEXT)
        assert not answer.receipt.cached
        assert f"now the 火车 {number} leaves at {number}" in contents(answer)


def test_a_seq_that_is_not_reached_is_an_error_beside_a_kept_answer(service: Stubs, project: str) -> None:
    seq = learn(service, project, note("the 火车 leaves at nine")).seq
    ask(service, project, TEXT)
    assert ask(service, project, TEXT, min_seq=seq).receipt.cached
    refused = failure(ask, service, project, TEXT, min_seq=seq + 1)
    assert (refused.code, refused.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "SEQ_NOT_REACHED")


def test_render_and_search_share_the_cache(service: Stubs, project: str) -> None:
    """S1-20: fewer repeated searches."""
    learn(service, project, note("the 火车 leaves at nine"))
    asked = ask(service, project, TEXT)
    rendered = render(service, project, TEXT)
    assert (asked.receipt.cached, rendered.receipt.cached) == (False, True)
    assert "nine" in rendered.text
    searches = [service.context.Search(project=project, query_text=TEXT) for _ in range(2)]
    assert [search.receipt.cached for search in searches] == [False, True]
    assert searches[0].text == searches[1].text


def test_two_projects_never_share_an_answer(service: Stubs, project: str) -> None:
    """X2, S0-06."""
    other = f"{project}-other"
    learn(service, project, note("the 火车 leaves at nine", id="a"))
    learn(service, other, note("the 火车 leaves at ten", id="a"))
    for _ in range(2):
        assert contents(ask(service, project, TEXT)) == ["the 火车 leaves at nine"]
        assert contents(ask(service, other, TEXT)) == ["the 火车 leaves at ten"]
