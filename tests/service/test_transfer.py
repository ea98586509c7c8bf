"""A project that moves to another name, through the socket: the same is recalled from it."""

from __future__ import annotations

from collections.abc import Iterable

import grpc
import pytest

from hummock_client.streaming import import_messages
from hummock_client.v1 import memory_pb2 as pb
from hummock_client.v1 import project_service_pb2 as projects
from hummock_client.v1.transfer_pb2 import TransferRecord
from tests.failures import field_of
from tests.service.calls import ask, await_vectors, learn
from tests.service.inputs import domain, fragment, note, record
from tests.service.running import Stubs


def export(service: Stubs, project: str, *, with_vectors: bool = False) -> list[TransferRecord]:
    request = projects.ExportProjectRequest(project=project, with_vectors=with_vectors)
    return [record for message in service.project.ExportProject(request, timeout=60) for record in message.records]


def take_in(service: Stubs, project: str, records: Iterable[TransferRecord]) -> list[projects.ImportProjectResponse]:
    return list(service.project.ImportProject(import_messages(project, enumerate(records, start=1)), timeout=60))


def teach(service: Stubs, project: str) -> None:
    fragment_id = fragment("src/Repay.kt", "Repay.repay", "fun repay() = schedule.next()")
    fragment_id.id = "code"
    learn(
        service,
        project,
        record("还款方式有哪些？", "等额本息、等额本金、先息后本。", "RepaymentType.java", id="record"),
        domain("还款", "还款模块处理所有还款相关业务。", aliases=("repayment",)),
        fragment_id,
        note("the lighthouse needs paint", id="n", origin=pb.ORIGIN_USER_INPUT, session_id="s", emotion_label="joy"),
        note("潮汐木的心材，退潮时发光", id="世界.图鉴.物品.潮汐木芯", trust=0.3, supersedes=["old"]),
    )


@pytest.mark.parametrize("with_vectors", [True, False])
def test_what_moved_is_recalled_as_before(service: Stubs, project: str, with_vectors: bool) -> None:
    """S1-06, S1-07."""
    teach(service, project)
    records = export(service, project, with_vectors=with_vectors)
    moved = f"{project}-moved"
    (reply,) = take_in(service, moved, records)
    assert (reply.created_count, reply.embedded_count) == (5, 0 if with_vectors else 5)
    await_vectors(service, moved)
    assert export(service, moved, with_vectors=with_vectors) == records
    for query in ("还款方式", "paint for the lighthouse", "repay", "退潮时发光的是什么"):
        before, after = ask(service, project, query), ask(service, moved, query)
        assert [(hit.memory.id, hit.score) for hit in after.hits] == [(hit.memory.id, hit.score) for hit in before.hits]


def test_progress_is_answered_message_by_message(service: Stubs, project: str) -> None:
    header, *some, end = export_of_notes(service, project, 200)
    replies = take_in(service, f"{project}-moved", [header, *some, end])
    assert len(replies) == 4
    assert sum(reply.created_count for reply in replies) == 200
    # Vectors come with writes of their own.
    seqs = [reply.seq for reply in replies]
    assert seqs == sorted(set(seqs))
    again = take_in(service, f"{project}-moved", [header, *some, end])
    assert sum(reply.unchanged_count for reply in again) == 200


def export_of_notes(service: Stubs, project: str, count: int) -> list[TransferRecord]:
    learn(service, project, *(note(f"note number {number}", id=str(number)) for number in range(count)))
    return export(service, project)


def test_an_import_that_is_cut_off_keeps_what_was_answered_and_may_be_done_again(service: Stubs, project: str) -> None:
    records = export_of_notes(service, project, 130)
    moved = f"{project}-moved"
    call = service.project.ImportProject(import_messages(moved, enumerate(records, start=1)), timeout=60)
    stored = next(call).created_count
    call.cancel()
    assert stored == 63
    replies = take_in(service, moved, records)
    assert sum(reply.created_count + reply.unchanged_count for reply in replies) == 130
    assert export(service, moved) == records


def test_wrong_lines_are_named_and_the_rest_is_stored(service: Stubs, project: str) -> None:
    good = TransferRecord()
    good.memory.memory.CopyFrom(note("good", id="good"))
    bad = TransferRecord()
    bad.memory.memory.CopyFrom(pb.Memory(id="bad", kind=pb.MEMORY_KIND_NOTE))
    (reply,) = take_in(service, project, [bad, good, TransferRecord()])
    assert [(failure.number, field_of(failure)) for failure in reply.failures] == [
        (1, "memory.memory.content"),
        (3, ""),
    ]
    assert reply.created_count == 1


def test_a_message_without_a_project_ends_the_import(service: Stubs) -> None:
    with pytest.raises(grpc.RpcError) as error:
        take_in(service, "", [])
    assert error.value.code() is grpc.StatusCode.INVALID_ARGUMENT


def test_an_unknown_project_cannot_be_exported(service: Stubs) -> None:
    with pytest.raises(grpc.RpcError) as error:
        export(service, "nobody's")
    assert error.value.code() is grpc.StatusCode.NOT_FOUND


def test_the_last_answer_says_whether_a_whole_export_has_come(service: Stubs, project: str) -> None:
    records = export_of_notes(service, project, 130)
    moved = f"{project}-moved"
    assert [reply.whole for reply in take_in(service, moved, records)] == [False, False, True]
    for sent in (
        records[:-1],
        records[1:],
        [*records, *records],
        records[:1],
        records[-1:],
        [*records, records[0]],
        [],
    ):
        assert not take_in(service, moved, sent)[-1].whole
    records[-1].end.ClearField("record_count")
    assert not take_in(service, moved, [*records[:5], *records[6:]])[-1].whole
