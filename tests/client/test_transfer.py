"""Projects through both clients: they go out and come in again, and their settings are read and changed."""

from __future__ import annotations

from collections.abc import Iterator

import grpc
import pytest

from hummock.core.memory import Origin
from hummock.core.settings import PresetSettings, ProjectSettings
from hummock.core.transfer import Given, GivenMemory, GivenProject, Imported
from hummock_client import HummockCallError
from hummock_client.streaming import import_messages
from hummock_client.v1.recall_pb2 import RecallTuning as SentPreset
from hummock_client.v1.settings_pb2 import ProjectSettings as Sent
from hummock_client.v1.transfer_pb2 import TransferChunk, TransferRecord
from tests.client.conftest import MakeClient
from tests.rpc import samples
from tests.rpc.edge import FixedSettings, edge_on_a_thread, use_cases


def test_a_project_goes_out_as_records_and_comes_in_again(make_client: MakeClient) -> None:
    """S1-07."""
    taken: list[Given] = []

    def take(project: str, parts: list[Given]) -> Imported:
        assert project == "moved"
        taken.extend(parts)
        return samples.imported(project, parts)

    with edge_on_a_thread(use_cases(import_parts=take)) as address, make_client(address) as client:
        records = list(client.export_project("loan", with_vectors=True))
        assert [record.WhichOneof("record") for record in records] == [
            "header",
            "event",
            "memory",
            "removed_id",
            "session",
            "message",
            "end",
        ]
        assert len(records[2].memory.chunks[0].values) == 4 * samples.SPACE.dim
        (reply,) = client.import_project("moved", records)
    assert reply.created_count == 1
    assert reply.whole
    project, event, memory, _, session, message = taken
    assert [event] == list(samples.Exported().events("loan"))
    assert [session, message] == list(samples.Exported().conversations("loan"))
    assert isinstance(project, GivenProject)
    assert project.info == samples.PROJECT.info
    assert isinstance(memory, GivenMemory)
    assert (memory.draft.id, memory.draft.origin, memory.session_position) == (samples.MEMORY.id, Origin.INDEXER, 3)
    assert (memory.update_time, memory.emb_space) == (samples.MEMORY.update_time, samples.SPACE.id)
    assert (memory.chunks[0].values.tolist(), memory.chunks[0].tokens) == (pytest.approx([0.6, 0.8, 0, 0]), b"\x01\x81")


def test_what_the_records_raise_ends_the_import(make_client: MakeClient) -> None:
    def records() -> Iterator[TransferRecord]:
        yield TransferRecord(removed_id="a")
        raise OSError("the file is gone")

    with (
        edge_on_a_thread(use_cases()) as address,
        make_client(address) as client,
        pytest.raises(OSError, match="the file is gone"),
    ):
        list(client.import_project("loan", records()))


def test_an_export_that_is_refused_raises_the_error_of_calls(make_client: MakeClient) -> None:
    with edge_on_a_thread(use_cases()) as address, make_client(address) as client:
        with pytest.raises(HummockCallError) as caught:
            list(client.export_project(""))
        assert caught.value.code is grpc.StatusCode.INVALID_ARGUMENT


def test_messages_are_bounded_and_keep_the_order_and_the_numbers() -> None:
    records = [(number, TransferRecord(removed_id="x" * 200)) for number in range(1, 150)]
    messages = list(import_messages("p", records))
    assert [len(message.lines) for message in messages] == [64, 64, 21]
    assert [line.number for message in messages for line in message.lines] == list(range(1, 150))
    large = TransferRecord()
    large.memory.memory.content = "x" * 900_000
    assert [len(message.lines) for message in import_messages("p", enumerate([large] * 3))] == [1, 1, 1]
    assert len(list(import_messages("p", []))) == 1


def test_a_record_that_is_too_large_with_its_vectors_goes_without_them() -> None:
    record = TransferRecord()
    record.memory.memory.id = "a"
    record.memory.chunks.extend([TransferChunk(values=bytes(4096))] * 1000)
    ((line,),) = [message.lines for message in import_messages("p", [(7, record)])]
    assert (line.number, line.record.memory.memory.id, len(line.record.memory.chunks)) == (7, "a", 0)
    assert len(record.memory.chunks) == 1000


SENT = Sent(chat=SentPreset(top_k=8))


def test_settings_are_read_and_changed(make_client: MakeClient) -> None:
    """S4-46."""
    settings = FixedSettings()
    with edge_on_a_thread(use_cases(settings=settings)) as address, make_client(address) as client:
        shown = client.settings("loan")
        assert (shown.settings.chat.top_k, shown.content_seq) == (8, 4)
        changed = client.update_settings("loan", SENT, ["chat.top_k"])
        assert (changed.settings.chat.top_k, changed.seq) == (8, 9)
        client.update_settings("loan", SENT, ["chat"])
    asked, (project, request_id, values, paths, _), (*_, of_group, _) = settings.asked
    assert {"chat.top_k", "chat.origins"} <= of_group
    assert asked == ("loan",)
    assert (project, values, paths) == ("loan", ProjectSettings(chat=PresetSettings(top_k=8)), {"chat.top_k"})
    assert len(request_id) == 36
