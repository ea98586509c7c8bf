"""Processes that answer recalls alongside the service: a client cannot tell which one it has reached."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from hummock.config import Settings
from hummock.rpc.readers import LISTENING_ON
from hummock_client.v1 import context_service_pb2 as context
from hummock_client.v1 import memory_pb2 as pb
from hummock_client.v1 import recall_pb2 as recall
from tests.service.calls import ask, await_vectors, contents, edit, failure, learn, recall_request
from tests.service.inputs import note
from tests.service.running import Process, Stubs, connected, in_process, in_thread, settings

pytestmark = [
    pytest.mark.long,
    pytest.mark.timed,
    pytest.mark.skipif(sys.platform != "linux", reason="readers share a port as Linux does it"),
    pytest.mark.lmdb("readers follow LMDB beside its writer"),
]

_PATIENCE_S = 60
_CHANNELS = 32
"""Connections that all reach the same of two processes once in 2^31 times."""

_ANSWERS = ("hits", "code_fragments", "domains", "intent", "seq", "degraded")


@contextmanager
def started(
    service: Stubs, chosen: Settings, address: str, stderr: int | None = None
) -> Iterator[subprocess.Popen[str]]:
    """The process of a reader that is told to listen there; its stdin stays open as long."""
    command = [sys.executable, "-m", "hummock", "reader"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, text=True) as popen:
        try:
            assert popen.stdin is not None
            where = {"address": address, "service": service.target}
            popen.stdin.write(f"{chosen.for_reader()}\n{json.dumps(where)}\n")
            popen.stdin.flush()
            yield popen
        finally:
            popen.kill()


@contextmanager
def reader_of(service: Stubs, chosen: Settings) -> Iterator[Stubs]:
    """A reader alongside a service, with a port of its own."""
    with started(service, chosen, "127.0.0.1:0") as popen:
        assert popen.stdin is not None
        assert popen.stdout is not None
        line = popen.stdout.readline()
        assert line.startswith(LISTENING_ON), "the reader did not start; it says why above"
        with connected(line.removeprefix(LISTENING_ON).strip()) as stubs:
            yield stubs
        popen.stdin.close()
        assert popen.wait(_PATIENCE_S) == 0


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory, models_dir: Path, model: str) -> Iterator[tuple[Stubs, Stubs]]:
    """A service, and a reader alongside it."""
    chosen = settings(tmp_path_factory.mktemp("data"), models_dir, model)
    with in_thread(chosen) as service, reader_of(service, chosen) as reader:
        yield service, reader


def test_what_is_acknowledged_by_one_is_recalled_by_the_other(both: tuple[Stubs, Stubs], project: str) -> None:
    """S2-03, S4-05: whichever process a write reached, the next call to any of them knows of it."""
    for turn in range(12):
        writer, other = both if turn % 2 else both[::-1]
        answer = learn(writer, project, note(f"还款计划第 {turn} 期，loan number {turn}", id=f"m{turn}"))
        found = ask(other, project, f"还款计划第 {turn} 期", top_k=1, min_seq=answer.seq)
        assert (found.hits[0].memory.id, found.seq) == (f"m{turn}", answer.seq)
    service, reader = both
    reader.memory.DeleteMemories(project=project, ids=["m3"])
    edit(service, project, pb.Memory(id="m4", content="提前还清"), "content")
    for each in both:
        found = ask(each, project, "还款计划 提前还清", top_k=20)
        assert {hit.memory.id for hit in found.hits} == {f"m{turn}" for turn in range(12)} - {"m3"}
        assert "提前还清" in contents(found)


def test_a_project_that_one_deletes_is_gone_from_the_other(both: tuple[Stubs, Stubs], project: str) -> None:
    """S0-06: also where the other had it in memory, and had answered the same question."""
    for turn in range(6):
        deleter, other = both if turn % 2 else both[::-1]
        learn(other, project, note(f"the lamp on pier {turn} was lit", id=f"m{turn}"))
        assert contents(ask(other, project, "the lamp on the pier")) == [f"the lamp on pier {turn} was lit"]
        deleter.project.DeleteProject(project=project)
        for each in both:
            question = recall_request(project, "the lamp on the pier", allow_missing=False)
            refused = failure(each.context.Recall, question)
            assert (refused.code, refused.reason) == (grpc.StatusCode.NOT_FOUND, "PROJECT_NOT_FOUND")


def test_what_is_said_of_a_memory_to_one_is_known_to_the_other(both: tuple[Stubs, Stubs], project: str) -> None:
    """S1-17."""
    learn(both[0], project, note("the tide turns at noon", id="a"), note("the tide turns at dusk", id="b"))
    for turn in range(4):
        writer, other = both if turn % 2 else both[::-1]
        ask(other, project, "when does the tide turn")
        said = context.FeedbackVerdict(memory_id="a", judgement=context.JUDGEMENT_WRONG)
        writer.context.Feedback(project=project, verdicts=[said], session_id=f"s{turn}")
        found = {hit.memory.id: hit for hit in ask(other, project, "when does the tide turn").hits}
        assert (found["a"].wrong_count, found["b"].wrong_count) == (turn + 1, 0)


def test_both_give_the_same_answer(both: tuple[Stubs, Stubs], project: str) -> None:
    texts = [f"{word} 的 parseDate 与 repayment {number}" for number in range(60) for word in ("还款", "潮汐", "日期")]
    memories = [note(text, id=f"m{at}", tags=[f"#t{at % 2}"]) for at, text in enumerate(texts)]
    learn(both[0], project, *memories)
    for preset in (recall.PRESET_CHAT, recall.PRESET_CODE, recall.PRESET_AGENT):
        for text in ("parseDate", "潮汐 repayment 7", "还款"):
            where = pb.MemoryFilter(tags=["#t1"])
            one, other = (
                ask(each, project, text, preset=preset, filter=where, as_of={"seconds": 2_000_000_000}) for each in both
            )
            assert len(one.hits) > 0
            for name in _ANSWERS:
                assert getattr(one, name) == getattr(other, name), name


def test_a_reader_that_lags_by_more_than_is_kept_reads_anew(both: tuple[Stubs, Stubs], project: str) -> None:
    service, reader = both
    learn(reader, project, note("the first", id="first"))
    assert len(ask(reader, project, "the first").hits) == 1
    memories = (note(f"number {at} of many", id=f"m{at}") for at in range(1200))
    batches = (context.LearnRequest(project=project, memories=[memory]) for memory in memories)
    replies = reader.context.LearnStream(context.LearnStreamRequest(learn=batch) for batch in batches)
    assert [reply.batch_index for reply in replies if reply.HasField("learnt")] == list(range(1200))
    assert ask(reader, project, "number 1199 of many", top_k=1).hits[0].memory.id == "m1199"
    await_vectors(service, project)
    assert ask(reader, project, "x").seq == ask(service, project, "x").seq


def test_refusals_come_through_as_they_are(both: tuple[Stubs, Stubs]) -> None:
    asked: list[tuple[str, Any]] = [
        ("Recall", recall.RecallRequest(project="", query_text="x")),
        ("Recall", recall.RecallRequest(project="p", query_text="x", min_seq=99)),
        ("Learn", context.LearnRequest(project="p")),
        ("Learn", context.LearnRequest(project="p", memories=[note("x" * 300_000)])),
    ]
    for name, request in asked:
        direct, through = (failure(getattr(each.context, name), request) for each in both)
        assert direct == through
    direct, through = (failure(each.memory.GetMemory, project="p", id="nobody") for each in both)
    assert direct == through
    unknown: grpc.UnaryUnaryMultiCallable[bytes, bytes] = both[1].channel.unary_unary(
        "/hummock.v1.ContextService/Divine"
    )
    assert failure(unknown, b"").code is grpc.StatusCode.UNIMPLEMENTED


def test_a_stream_that_is_refused_says_why(both: tuple[Stubs, Stubs]) -> None:
    """This holds also while its caller is still sending."""
    garbled = [b"\xff\xff\xff"] * 50
    for each in both * 10:
        learn_stream: grpc.StreamStreamMultiCallable[bytes, bytes]
        learn_stream = each.channel.stream_stream("/hummock.v1.ContextService/LearnStream")
        assert failure(list, learn_stream(iter(garbled))).code is grpc.StatusCode.INVALID_ARGUMENT
        watch = each.memory.WatchMemories(project="")
        assert failure(next, watch).code is grpc.StatusCode.INVALID_ARGUMENT


def test_who_watches_through_a_reader_is_told_at_once(both: tuple[Stubs, Stubs], project: str) -> None:
    service, reader = both
    watch = reader.memory.WatchMemories(project=project, allow_missing=True, timeout=_PATIENCE_S)
    assert next(watch).WhichOneof("news") == "start"
    seq = learn(service, project, note("the tide", id="a")).seq
    told = next(watch)
    assert (told.seq, [event.id for event in told.events.events]) == (seq, ["a"])
    watch.cancel()


def test_health_and_reflection_are_those_of_the_service(both: tuple[Stubs, Stubs]) -> None:
    for each in both:
        health = health_pb2_grpc.HealthStub(each.channel)
        assert health.Check(health_pb2.HealthCheckRequest(service="hummock.v1.ContextService")).status == 1
        asked = iter([reflection_pb2.ServerReflectionRequest(list_services="")])
        answer = next(reflection_pb2_grpc.ServerReflectionStub(each.channel).ServerReflectionInfo(asked))
        names = {named.name for named in answer.list_services_response.service}
        assert "hummock.v1.ContextService" in names


def readers_of(process: Process) -> list[int]:
    children = Path(f"/proc/{process.popen.pid}/task").glob("*/children")
    return [int(child) for path in children for child in path.read_text().split()]


def wait_for_end(descriptor: int) -> None:
    """Waits until the process of a descriptor has ended."""
    ended, _, _ = select.select([descriptor], [], [], _PATIENCE_S)
    assert ended


@contextmanager
def connections(target: str) -> Iterator[list[Stubs]]:
    """Many, each of its own, so that some reach every process that shares the port."""
    with ExitStack() as stack:
        channels = [
            stack.enter_context(grpc.insecure_channel(target, options=[("grpc.use_local_subchannel_pool", 1)]))
            for _ in range(_CHANNELS)
        ]
        yield [Stubs.over(target, channel) for channel in channels]


def processes_behind(clients: list[Stubs]) -> int:
    """Number of processes that answered a new question: each caches its own answer."""
    return sum(not ask(client, "p", "the same question").receipt.cached for client in clients)


def ends_in_order(process: Process, reader: int) -> None:
    """Asks the service to stop: it says that all went well, and its reader, given by a descriptor, ends as well."""
    process.popen.terminate()
    assert process.popen.wait(_PATIENCE_S) == 0
    wait_for_end(reader)
    os.close(reader)


def test_connections_reach_all_processes_and_each_of_them_knows_all(
    tmp_path: Path, models_dir: Path, model: str
) -> None:
    """S0-31: an answer is kept by the process that gave it, so that answers tell how many there are."""
    with in_process(tmp_path, models_dir, model, {"HUMMOCK_READERS": "1"}) as process:
        descriptor = os.pidfd_open(*readers_of(process))
        with connections(process.target) as clients:
            for at, client in enumerate(clients):
                learn(client, "p", note(f"note {at}", id=f"m{at}"))
                assert len(ask(clients[-1 - at], "p", f"note {at}", top_k=_CHANNELS).hits) == at + 1
            assert processes_behind(clients) == 2
        ends_in_order(process, descriptor)


def test_a_signal_to_all_processes_lets_them_end_in_order(tmp_path: Path, models_dir: Path, model: str) -> None:
    """A supervisor sends the signal to every process."""
    with in_process(tmp_path, models_dir, model, {"HUMMOCK_READERS": "1"}) as process:
        (reader,) = readers_of(process)
        descriptor = os.pidfd_open(reader)
        os.kill(reader, signal.SIGTERM)
        with connections(process.target) as clients:
            assert processes_behind(clients) == 2
        ends_in_order(process, descriptor)
        assert not (tmp_path / "service.sock").exists()


def test_a_reader_that_is_stopped_keeps_no_connections(tmp_path: Path, models_dir: Path, model: str) -> None:
    """V12: the system would go on giving it its share."""
    with in_process(tmp_path, models_dir, model, {"HUMMOCK_READERS": "1"}) as process:
        (reader,) = readers_of(process)
        descriptor = os.pidfd_open(reader)
        with connected(process.target) as client:
            learn(client, "p", note("the lamp was lit", id="m"))
        os.kill(reader, signal.SIGSTOP)
        wait_for_end(descriptor)
        os.close(descriptor)
        with connections(process.target) as clients:
            for client in clients:
                assert contents(ask(client, "p", "the lamp")) == ["the lamp was lit"]


def test_no_reader_outlives_a_service_that_is_killed(tmp_path: Path, models_dir: Path, model: str) -> None:
    with in_process(tmp_path, models_dir, model, {"HUMMOCK_READERS": "2"}) as process:
        descriptors = [os.pidfd_open(reader) for reader in readers_of(process)]
        assert len(descriptors) == 2
        process.popen.send_signal(signal.SIGKILL)
        for descriptor in descriptors:
            wait_for_end(descriptor)
            os.close(descriptor)
    # The directory is whole, and nobody holds it or the port.
    with in_process(tmp_path, models_dir, model) as process, connected(process.target) as service:
        assert learn(service, "p", note("after")).seq == 1


def test_a_reader_that_cannot_listen_says_so_and_ends(tmp_path: Path, models_dir: Path, model: str) -> None:
    chosen = settings(tmp_path, models_dir, model)
    with in_thread(chosen) as service, started(service, chosen, "192.0.2.1:7420", stderr=subprocess.PIPE) as popen:
        assert popen.stderr is not None
        assert popen.wait(_PATIENCE_S) == 1
        assert "error: cannot listen on 192.0.2.1:7420" in popen.stderr.read()
