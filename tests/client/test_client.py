"""The Python clients against a real server on a real socket."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import pytest
from msgspec.structs import replace

from hummock.core.errors import MemoryNotFound, Overloaded, Unavailable
from hummock.core.memory import EventPage, Filter, LearnCommand, Learned, MemoryEvent, MemoryEventType
from hummock.core.recall import IntentMode, KeywordMode, Preset, Recalled, RecallQuery
from hummock.core.render import Searched, SearchQuery
from hummock.ports.store import Page
from hummock_client import Client, Deadlines, HummockCallError, note, vector
from hummock_client.requests import RecallOptions
from hummock_client.v1 import admin_service_pb2 as admin_pb
from hummock_client.v1 import context_service_pb2 as pb
from hummock_client.v1 import memory_pb2, recall_pb2
from tests.client.conftest import Answers, MakeClient
from tests.rpc import samples
from tests.rpc.edge import LOOPBACK, FixedGarden, FixedProjects, Noted, edge_on_a_thread, use_cases


def one_page_each(count: int) -> Callable[[int, int], Page]:
    """A garden of `count` memories whose pages hold one."""

    def page(after: int, limit: int) -> Page:
        memory = replace(samples.MEMORY, id=f"m{after}")
        return Page(memories=(memory,), next_after=after + 1 if after + 1 < count else None)

    return page


def failure(answers: Answers, chosen: Any, ask: Callable[[Client], Any]) -> HummockCallError:
    with pytest.raises(HummockCallError) as caught:
        answers(chosen, ask)
    return caught.value


def test_a_recall_carries_its_options_and_returns_the_reply(answers: Answers) -> None:
    recall = Noted(samples.recalled)
    reply = answers(
        use_cases(recall=recall),
        lambda client: client.recall(
            "loan", "增加先本后息的还款方式", preset=recall_pb2.PRESET_CHAT, top_k=3, query_vector=vector([3, 4], "e")
        ),
    )
    (query,) = recall.asked
    assert (query.project, query.text, query.preset, query.top_k) == ("loan", "增加先本后息的还款方式", Preset.CHAT, 3)
    assert query.vector is not None
    assert (query.vector.values.tolist(), reply.hits[0].memory.id) == (pytest.approx([0.6, 0.8]), samples.MEMORY.id)


def test_every_field_of_a_recall_is_an_option() -> None:
    fields = set(recall_pb2.RecallRequest.DESCRIPTOR.fields_by_name) - {"project", "query_text", "tuning"}
    assert set(RecallOptions.__annotations__) == fields | set(recall_pb2.RecallTuning.DESCRIPTOR.fields_by_name)


def test_neighbours_time_words_and_substrings_are_asked_for(answers: Answers) -> None:
    recall = Noted(samples.recalled)
    options: RecallOptions = {
        "time_words": False,
        "context_window": 2,
        "keyword_mode": recall_pb2.KEYWORD_MODE_SUBSTRING,
        "intent_mode": recall_pb2.INTENT_MODE_LEXICAL,
    }
    answers(use_cases(recall=recall), lambda client: client.recall("loan", "上个月", **options))
    (query,) = recall.asked
    assert (query.time_words, query.context_window, query.keyword_mode) == (False, 2, KeywordMode.SUBSTRING)
    assert query.intent_mode is IntentMode.LEXICAL


@pytest.mark.parametrize(
    ("source", "ids"), [("还款", ()), (["a", "b"], ("a", "b")), (recall_pb2.RecallRequest(query_text="还款"), ())]
)
def test_render_takes_a_text_a_recall_or_ids(answers: Answers, source: Any, ids: tuple[str, ...]) -> None:
    render = Noted(samples.rendered)
    answers(use_cases(render=render), lambda client: client.render("loan", source, budget_tokens=99))
    assert (render.asked[0].memory_ids, render.asked[0].budget_tokens) == (ids, 99)
    if not ids:
        assert render.asked[0].recall is not None
        assert (render.asked[0].recall.project, render.asked[0].recall.text) == ("loan", "还款")


def test_learn_makes_a_request_id_and_note_makes_the_memory(answers: Answers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HUMMOCK_TIME_ZONE", "Asia/Shanghai")
    learn = Noted(samples.learned)

    def ask(client: Client) -> None:
        assert client.note("loan", "先还本金", tags=["#还款"]).seq == 8
        client.learn("loan", [note("a"), note("b")])
        client.learn("loan", [note("a")], request_id="00000000-0000-4000-8000-00000000000A")
        client.note("loan", "a", request_id="00000000-0000-4000-8000-00000000000B")

    answers(use_cases(learn=learn), ask)
    assert [len(command.lessons) for command in learn.asked] == [1, 2, 1, 1]
    assert learn.asked[0].lessons[0].draft.index.tags == ("还款",)
    assert learn.asked[0].lessons[0].draft.time_zone == "Asia/Shanghai"
    assert learn.asked[0].request_id != learn.asked[1].request_id
    assert learn.asked[2].request_id == "00000000-0000-4000-8000-00000000000a"
    assert learn.asked[3].request_id == "00000000-0000-4000-8000-00000000000b"


def test_search_explain_get_and_status_return_their_replies(answers: Answers) -> None:
    def ask(client: Client) -> None:
        assert (
            client.search("loan", "PaymentService", scope=pb.SEARCH_SCOPE_CODE).results[0].scope == pb.SEARCH_SCOPE_CODE
        )
        explained = client.explain("loan", "还款", samples.MEMORY.id, top_k=10)
        assert (explained.changes[0].field, explained.changed_recall.tuning.top_k) == ("tuning.top_k", 17)
        assert client.get("loan", samples.MEMORY.id).content == "fun repay() = 1"
        reply = client.batch_get("loan", [samples.MEMORY.id, "gone"])
        assert [memory.id for memory in reply.memories] == [samples.MEMORY.id]
        assert list(reply.missing_ids) == ["gone"]
        assert client.status().model.scripts == [admin_pb.SCRIPT_HAN, admin_pb.SCRIPT_LATIN]
        assert (client.delete("loan", ["a"]).deleted_count, client.project("loan").memory_count) == (1, 3)

    def search(query: SearchQuery) -> Searched:
        assert query.scope == 1
        return samples.searched(query)

    answers(use_cases(search=search), ask)


def test_lists_fetch_their_pages_as_they_are_needed(answers: Answers) -> None:
    garden = FixedGarden(pages=one_page_each(5))

    def ask(client: Client) -> None:
        assert [memory.id for memory in client.list_memories("loan")] == ["m0", "m1", "m2", "m3", "m4"]
        before = len(garden.asked)
        assert (next(client.list_memories("loan")).id, len(garden.asked)) == ("m0", before + 1)

    answers(use_cases(garden=garden), ask)


def test_projects_page_by_name_whatever_the_name(answers: Answers) -> None:
    names = tuple(sorted(("a", "还款", "𝔘" * 256, "loan.v2"), key=str.encode))
    found = answers(
        use_cases(projects=FixedProjects(names=names)),
        lambda client: [project.name for project in client.projects(page_size=1)],
    )
    assert found == list(names)


def test_an_update_names_its_fields(answers: Answers) -> None:
    garden, projects = FixedGarden(), FixedProjects()

    def ask(client: Client) -> None:
        memory = memory_pb2.Memory(id="m", title="还款", tags=["#a"])
        client.update("loan", memory, ["title"])
        client.update_project("loan", tech_stack=["MySQL"])

    answers(use_cases(garden=garden, projects=projects), ask)
    changes = garden.asked[0][3]
    assert (changes.title, changes.tags) == ("还款", None)
    assert projects.asked[0][2:4] == (("MySQL",), None)


def test_every_wrong_field_reaches_the_caller_also_of_a_watch(answers: Answers) -> None:
    error = failure(answers, None, lambda client: client.recall("", "", top_k=5000))
    assert (error.code, error.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_REQUEST")
    assert {violation.field for violation in error.field_violations} == {"project", "query_text", "tuning.top_k"}
    error = failure(answers, use_cases(), lambda client: list(client.watch_memories("")))
    assert (error.code, error.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_REQUEST")


def test_a_typed_error_carries_reason_facts_and_time_to_retry(answers: Answers) -> None:
    def recall(query: RecallQuery) -> Recalled:
        raise Overloaded(9, 8, 0.25)

    error = failure(answers, use_cases(recall=recall), lambda client: client.recall("p", "q"))
    assert (error.reason, error.retry_after_s, error.metadata["limit"]) == ("OVERLOADED", 0.25, "8")
    assert "9 calls are waiting" in str(error)


@pytest.mark.long
def test_reads_and_writes_are_repeated_while_the_service_is_unavailable(answers: Answers) -> None:
    reads, asked = [0], list[str]()

    def recall(query: RecallQuery) -> Recalled:
        reads[0] += 1
        if reads[0] < 3:
            raise Unavailable("starting")
        return samples.recalled(query)

    def learn(command: LearnCommand) -> Learned:
        asked.append(command.request_id)
        if len(asked) < 3:
            raise Unavailable("stopping")
        return samples.learned(command)

    def ask(client: Client) -> None:
        client.recall("p", "q")
        # The text is larger than what gRPC keeps for a repeat by itself.
        client.send(pb.LearnRequest(project="p", memories=[note("水" * 80_000), note("火" * 80_000)]))

    answers(use_cases(recall=recall, learn=learn), ask)
    assert (reads, len(asked), len(set(asked))) == ([3], 3, 1)
    assert asked[0]


def test_what_the_core_of_a_busy_service_ends_unread_is_repeated(make_client: MakeClient) -> None:
    calls = [0]

    def recall(request: bytes, context: grpc.ServicerContext) -> bytes:
        calls[0] += 1
        if calls[0] < 3:
            context.abort(grpc.StatusCode.CANCELLED, "")
        return recall_pb2.RecallResponse(seq=7).SerializeToString()

    handlers: dict[str, Any] = {"Recall": grpc.unary_unary_rpc_method_handler(recall)}
    with ThreadPoolExecutor(1) as pool:
        server = grpc.server(pool, [grpc.method_handlers_generic_handler("hummock.v1.ContextService", handlers)])
        port = server.add_insecure_port(LOOPBACK)
        server.start()
        with make_client(f"127.0.0.1:{port}") as client:
            assert client.recall("p", "q").seq == 7
        server.stop(None).wait()
    assert calls == [3]


def test_a_request_that_is_sent_twice_is_two_writes(answers: Answers) -> None:
    asked: list[str] = []

    def learn(command: LearnCommand) -> Learned:
        asked.append(command.request_id)
        return samples.learned(command)

    def ask(client: Client) -> None:
        request = pb.LearnRequest(project="p", memories=[note("a")])
        client.send(request)
        client.send(request)
        assert not request.request_id

    answers(use_cases(learn=learn), ask)
    assert len(set(asked)) == 2


def test_other_errors_are_not_repeated(answers: Answers) -> None:
    calls = [0]

    def recall(query: RecallQuery) -> Recalled:
        calls[0] += 1
        raise MemoryNotFound("m")

    error = failure(answers, use_cases(recall=recall), lambda client: client.recall("p", "q"))
    assert error.reason == "MEMORY_NOT_FOUND"
    assert calls == [1]


def test_a_deadline_is_kept(make_client: MakeClient) -> None:
    release = threading.Event()

    def recall(query: RecallQuery) -> Recalled:
        release.wait(10)
        return samples.recalled(query)

    with edge_on_a_thread(use_cases(recall=recall)) as address:
        for deadlines, chosen in ((Deadlines(read_s=0.05), None), (None, 0.05)):
            with make_client(address, deadlines=deadlines) as client, pytest.raises(HummockCallError) as caught:
                client.recall("p", "q", timeout_s=chosen)
            assert caught.value.code is grpc.StatusCode.DEADLINE_EXCEEDED
            assert caught.value.reason == "DEADLINE_EXCEEDED"
        release.set()


def test_a_stream_of_batches_is_answered_in_order(answers: Answers) -> None:
    batches = [pb.LearnRequest(project=project, memories=[note("记住")]) for project in ("p", "", "p")]
    replies = answers(None, lambda client: list(client.learn_stream(batches)))
    assert [reply.WhichOneof("outcome") for reply in replies] == ["learnt", "failed", "learnt"]
    assert replies[-1].stored_count == 2


def test_what_the_batches_raise_is_raised_by_the_stream(answers: Answers) -> None:
    def batches() -> Iterator[pb.LearnRequest]:
        yield pb.LearnRequest(project="p", memories=[note("a")])
        raise LookupError("no more files")

    def ask(client: Client) -> None:
        with pytest.raises(LookupError, match="no more files"):
            list(client.learn_stream(batches()))

    answers(None, ask)


def test_what_a_reply_has_no_room_for_is_named_and_comes_when_asked_for_again(answers: Answers) -> None:
    assert samples.MEMORY.payload is not None
    payload = replace(samples.MEMORY.payload, content="x" * (1 << 20))
    large = [replace(samples.MEMORY, id=f"m{number}", payload=payload) for number in range(3)]
    garden = FixedGarden(memories={one.id: one for one in large})
    reply = answers(use_cases(garden=garden), lambda client: client.batch_get("p", ["m0", "m1", "m2", "gone"]))
    assert reply.ByteSize() <= 4 << 20
    assert [memory.id for memory in reply.memories] == ["m0"]
    assert (list(reply.omitted_ids), list(reply.missing_ids)) == (["m1", "m2"], ["gone"])
    assert [one.id for one in answers(use_cases(garden=garden), lambda c: c.batch_get("p", ["m1"])).memories] == ["m1"]


@pytest.mark.long
def test_whoever_asks_for_a_larger_reply_gets_it(answers: Answers) -> None:
    assert samples.MEMORY.payload is not None
    payload = replace(samples.MEMORY.payload, content="x" * (3 << 20))
    large = [replace(samples.MEMORY, id=f"m{number}", payload=payload) for number in range(3)]
    reply = answers(
        use_cases(garden=FixedGarden(memories={one.id: one for one in large})),
        lambda client: client.batch_get("p", ["m0", "m1", "m2"], max_reply_bytes=16 << 20),
    )
    assert 8 << 20 < reply.ByteSize() <= 16 << 20
    assert (len(reply.memories) + len(reply.omitted_ids), len(reply.missing_ids)) == (3, 0)


def test_a_service_that_is_ready_is_not_waited_for(answers: Answers) -> None:
    assert answers(None, lambda client: client.wait_until_ready(10)).version == "0.1.0"


def test_a_service_that_is_not_there_is_named_with_the_fix(make_client: MakeClient) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
    with make_client(address) as client, pytest.raises(HummockCallError, match="hummock serve") as caught:
        client.wait_until_ready(0.05)
    assert caught.value.metadata == {"target": address}


@pytest.mark.long
def test_waiting_outlasts_a_service_that_starts(answers: Answers) -> None:
    asked = [0]

    def status() -> Any:
        asked[0] += 1
        if asked[0] < 6:
            raise Unavailable("starting")
        return samples.status()

    assert answers(use_cases(status=status), lambda client: client.wait_until_ready(20)).version == "0.1.0"


def test_a_unix_socket_is_a_target(make_client: MakeClient, tmp_path: Any) -> None:
    with edge_on_a_thread(address=f"unix:{tmp_path}/h.sock"), make_client(f"unix://{tmp_path}/h.sock") as client:
        assert client.recall("p", "q").seq == 7


@pytest.mark.long
def test_the_client_needs_nothing_of_the_server() -> None:
    heavy = ("numpy", "numba", "lmdb", "onnxruntime", "protovalidate", "hummock.core", "hummock.rpc", "hummock_kernels")
    script = f"""
import sys
for name in {heavy!r}:
    sys.modules[name] = None
import hummock_client
hummock_client.Client("127.0.0.1:1").close()
print(hummock_client.vector([1.0, 2.0], "e").values.hex())
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout) == (0, "0000803f00000040\n"), run.stderr


def one_event(after: int) -> EventPage:
    """An event after the write 3, and nothing else."""
    event = MemoryEvent(type=MemoryEventType.CREATED, memory_id="a", memory=samples.MEMORY, seq=4)
    return EventPage(events=(event,), seq=4) if after == 3 else EventPage(events=(), seq=after)


def test_a_watch_yields_its_start_and_its_events_and_hangs_up_when_it_is_closed(make_client: MakeClient) -> None:
    """S4-40."""
    garden = FixedGarden(event_pages=one_event)
    with edge_on_a_thread(use_cases(garden=garden)) as address, make_client(address) as client:
        news = client.watch_memories("loan", after_seq=3, view=memory_pb2.MEMORY_VIEW_FULL)
        assert next(news).WhichOneof("news") == "start"
        (event,) = next(news).events.events
        assert (event.id, event.memory.id) == ("a", samples.MEMORY.id)
        news.close()
    assert garden.asked[0] == ("loan", 3, Filter(), True)
