"""Records out of the files of others."""

from __future__ import annotations

import base64
import codecs
import gzip
import io
import json
import struct
import tracemalloc
from typing import Any

import pytest
from google.protobuf.json_format import MessageToJson
from hypothesis import given
from hypothesis import strategies as st

from hummock_client.v1 import memory_pb2 as pb
from hummock_client.v1.transfer_pb2 import TransferEnd, TransferHeader, TransferMemory, TransferRecord
from hummock_tools.importing.formats import FileFormat, read_file
from hummock_tools.importing.json_items import BadLine, Line, NotWhole, OtherProject, Part, Place, Retired, lines_of

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=4,
)


def parts(format: FileFormat, *values: Any, **options: str) -> list[Part]:
    return list(read_file([json.dumps(value).encode() + b"\n" for value in values], format, **options))


def one(format: FileFormat, value: dict[str, Any], **options: str) -> TransferMemory:
    (part,) = parts(format, value, **options)
    assert isinstance(part, Line), part
    return part.record.memory


def reason(format: FileFormat, value: Any) -> str:
    (part,) = parts(format, value)
    assert isinstance(part, BadLine)
    return part.reason


def legacy(**fields: Any) -> TransferMemory:
    return one(FileFormat.LEGACY, {"text": "下雨了", "tag": "manual", "timestamp": 1_700_000_000_250} | fields)


def test_our_own_records_are_read_line_by_line_and_wrong_ones_are_named() -> None:
    record = TransferRecord(removed_id="世界")
    good = MessageToJson(record, indent=None).encode()
    lines = [good, b"\n", b'{"removedId": 1}', b"\xff", b'{"unknown": 1}', good]
    read = list(read_file(lines, FileFormat.JSONL))
    assert [part.place.line for part in read] == [1, 3, 4, 5, 6, 7]
    assert [type(part) for part in read] == [Line, BadLine, BadLine, BadLine, Line, NotWhole]
    assert isinstance(read[0], Line)
    assert read[0].record == record


def test_a_legacy_memory_keeps_its_text_time_session_and_feeling() -> None:
    """S4-09."""
    read = legacy(id="m1", sessionId="s", emotionLabel="joy")
    memory = read.memory
    assert (memory.id, memory.kind, memory.origin) == ("m1", pb.MEMORY_KIND_NOTE, pb.ORIGIN_MANUAL)
    assert (memory.content, memory.session_id, memory.emotion_label) == ("下雨了", "s", "joy")
    assert memory.create_time.ToMilliseconds() == 1_700_000_000_250
    assert read.update_time == memory.create_time


@pytest.mark.parametrize(
    ("fields", "origin", "feeling"),
    [
        ({"tag": "", "emotion": "user"}, pb.ORIGIN_USER_INPUT, ""),
        ({"tag": None, "emotion": "ai"}, pb.ORIGIN_AI_OUTPUT, ""),
        ({"tag": " ", "emotion": "AI", "emotionLabel": "joy"}, pb.ORIGIN_AI_OUTPUT, "joy"),
        ({"tag": "summary", "emotion": "user"}, pb.ORIGIN_SUMMARY, ""),
        ({"tag": "user_input", "emotionLabel": "user"}, pb.ORIGIN_USER_INPUT, ""),
        ({"tag": "AI_OUTPUT", "emotion": "calm"}, pb.ORIGIN_AI_OUTPUT, "calm"),
        ({"tag": "manual", "emotionLabel": "喜"}, pb.ORIGIN_MANUAL, "喜"),
    ],
)
def test_a_legacy_memory_without_a_tag_tells_who_spoke(fields: dict[str, Any], origin: int, feeling: str) -> None:
    """S4-10."""
    memory = legacy(**fields).memory
    assert (memory.origin, memory.emotion_label) == (origin, feeling)


def test_a_legacy_memory_of_nobody_is_named() -> None:
    """S4-10."""
    assert "no tag" in reason(FileFormat.LEGACY, {"text": "x", "tag": "", "emotion": "joy"})
    assert "'todo'" in reason(FileFormat.LEGACY, {"text": "x", "tag": "todo"})
    assert reason(FileFormat.LEGACY, {"text": "", "tag": "manual"}) == "text is missing"
    assert "neither text" in reason(FileFormat.LEGACY, {"tag": "manual"})
    assert reason(FileFormat.LEGACY, ["text"]) == "is no JSON object"


def test_a_legacy_memory_without_an_id_has_the_same_one_each_time() -> None:
    assert legacy().memory.id == legacy().memory.id
    assert len({legacy().memory.id, legacy(text="下雪了").memory.id, legacy(timestamp=1).memory.id}) == 3
    assert legacy(id=17).memory.id == "17"


BASE64 = base64.b64encode(struct.pack("<3f", 0.6, 0.8, 0.0)).decode()
KNOWLEDGE = {
    "id": "3c90c3cc-0d44-4b50-8888-8dd25736052a", "projectKey": "loan", "title": "还款",
    "content": "还款模块处理所有还款相关业务。", "embedding": BASE64, "createdAt": "2024-01-02T03:04:05Z",
    "updatedAt": 1_704_164_700_000,
}  # fmt: skip


def test_domain_knowledge_keeps_its_fields_and_its_base64_vector() -> None:
    """S1-06."""
    read = one(FileFormat.LEGACY, KNOWLEDGE, project_key="loan", emb_space="bge-m3-space")
    memory = read.memory
    assert (memory.id, memory.kind) == (KNOWLEDGE["id"], pb.MEMORY_KIND_DOMAIN_KNOWLEDGE)
    assert (memory.domain_knowledge.domain, memory.domain_knowledge.summary) == (
        KNOWLEDGE["title"],
        KNOWLEDGE["content"],
    )
    assert memory.create_time.ToJsonString() == "2024-01-02T03:04:05Z"
    assert read.update_time.ToJsonString() == "2024-01-02T03:05:00Z"
    assert (read.emb_space, read.chunks[0].values) == ("bge-m3-space", struct.pack("<3f", 0.6, 0.8, 0.0))


def test_a_vector_whose_space_nobody_named_is_left_out_and_counted() -> None:
    """S1-06."""
    (part,) = parts(FileFormat.LEGACY, KNOWLEDGE, project_key="loan")
    assert isinstance(part, Line)
    assert part.has_unused_vector
    assert len(part.record.memory.chunks) == 0
    (without,) = parts(FileFormat.LEGACY, {**KNOWLEDGE, "embedding": None})
    assert isinstance(without, Line)
    assert not without.has_unused_vector


def test_a_vector_may_be_a_list_of_numbers() -> None:
    read = one(FileFormat.LEGACY, {"text": "x", "tag": "manual", "embedding": [0.6, 0.8, 0]}, emb_space="s")
    assert read.chunks[0].values == struct.pack("<3f", 0.6, 0.8, 0.0)


@pytest.mark.parametrize(
    ("embedding", "said"),
    [
        ("!!", "no Base64"),
        (base64.b64encode(b"12345").decode(), "has 5 bytes"),
        ([1, "2"], "no list of numbers"),
        ([10**400], "float32"),
        ({"a": 1}, "neither Base64"),
    ],
)
def test_a_wrong_vector_is_named_also_where_it_is_not_used(embedding: object, said: str) -> None:
    """S1-06."""
    assert said in reason(FileFormat.LEGACY, {**KNOWLEDGE, "embedding": embedding})


def test_knowledge_of_another_project_is_left_out() -> None:
    """S1-07."""
    assert parts(FileFormat.LEGACY, KNOWLEDGE, project_key="shop") == [OtherProject(place=Place(line=1), key="loan")]


MEM0 = {
    "id": "3c90c3cc-0d44-4b50-8888-8dd25736052a",
    "memory": "Prefers morning meetings 喜欢早会",
    "hash": "d4ff",
    "metadata": {"type": "preference", "score": 3, "seen": True, "parts": ["a", 1], "deep": {"x": 1}},
    "created_at": "2024-01-02T03:04:05.250000-07:00",
    "updated_at": None,
    "user_id": "u1",
    "run_id": "r1",
    "categories": ["work", "时间"],
}


def test_a_memory_of_mem0_keeps_its_text_times_session_and_labels() -> None:
    read = one(FileFormat.MEM0, MEM0)
    memory = read.memory
    assert (memory.id, memory.content, memory.origin) == (MEM0["id"], MEM0["memory"], pb.ORIGIN_SUMMARY)
    assert memory.session_id == "r1"
    assert memory.create_time.ToJsonString() == "2024-01-02T10:04:05.250Z"
    assert read.update_time == memory.create_time
    assert list(memory.tags) == ["work", "时间"]
    said = {"type": "preference", "score": "3", "seen": "true", "parts": '["a", 1]', "deep": '{"x": 1}'}
    assert dict(memory.metadata) == {"user_id": "u1", **said}


def test_a_memory_that_mem0_kept_as_it_was_said_is_of_its_speaker() -> None:
    said = one(FileFormat.MEM0, {"id": "1", "memory": "hi", "role": "user", "actor_id": "Ada"}).memory
    assert (said.origin, said.speaker) == (pb.ORIGIN_USER_INPUT, "Ada")
    assert one(FileFormat.MEM0, {"id": "1", "memory": "hi", "role": "assistant"}).memory.origin == pb.ORIGIN_AI_OUTPUT


def test_what_of_mem0_breaks_the_limits_of_the_contract_is_left_out_and_counted() -> None:
    categories = ["x" * 200, "a\nb", "#", *(f"c{number}" for number in range(70))]
    facts = {"long": "x" * 600, "odd\n": 1, "": 1, "none": None, **{f"k{number}": number for number in range(40)}}
    (part,) = parts(FileFormat.MEM0, {"id": "1", "memory": "hi", "metadata": facts, "categories": categories})
    assert isinstance(part, Line)
    memory = part.record.memory.memory
    assert (len(memory.tags), len(memory.metadata)) == (64, 32)
    assert part.unfit == 3 + 6 + 3 + 8


BACKUP = {
    "user": {"id": "9d", "user_id": "ada"},
    "apps": [{"id": "5a", "name": "cursor"}],
    "categories": [{"id": "7c", "name": "work"}],
    "memories": [
        {"id": "1", "user_id": "9d", "app_id": "5a", "content": "喜欢早会", "state": "active", "category_ids": ["7c"],
         "created_at": "2024-01-02T03:04:05+00:00", "updated_at": "2024-01-03T00:00:00+00:00"},
        {"id": "2", "content": "was wrong", "state": "deleted"},
        {"id": "3", "content": "is over", "state": "archived"},
        {"id": "4", "content": "rests", "state": "paused"},
        {"id": "5", "content": None, "state": "active"},
    ],
    "export_meta": {"version": "1"},
}  # fmt: skip # records of a file


@pytest.mark.parametrize("indent", [None, 2])
def test_a_backup_of_mem0s_server_is_read_by_names_and_without_what_counts_no_more(indent: int | None) -> None:
    data = json.dumps(BACKUP, indent=indent, ensure_ascii=False).encode()
    first, *retired, paused, bad = read_file(data.splitlines(keepends=True), FileFormat.MEM0)
    assert isinstance(first, Line)
    assert isinstance(paused, Line)
    memory = first.record.memory.memory
    assert (memory.content, list(memory.tags)) == ("喜欢早会", ["work"])
    assert dict(memory.metadata) == {"user_id": "ada", "app_id": "cursor"}
    assert memory.create_time.ToJsonString() == "2024-01-02T03:04:05Z"
    assert first.record.memory.update_time.ToJsonString() == "2024-01-03T00:00:00Z"
    assert [one.state for one in retired if isinstance(one, Retired)] == ["deleted", "archived"]
    assert dict(paused.record.memory.memory.metadata) == {"state": "paused"}
    assert isinstance(bad, BadLine)
    assert (bad.place.record, bad.reason) == (5, "content is missing")


def opened(data: bytes, format: FileFormat = FileFormat.JSONL) -> list[Part]:
    return list(read_file(lines_of(io.BytesIO(data)), format))


def exported(*texts: str) -> bytes:
    """An export of notes."""
    records = [TransferRecord(header=TransferHeader(version=2))]
    for number, text in enumerate(texts):
        note = pb.Memory(id=str(number), kind=pb.MEMORY_KIND_NOTE, content=text)
        records.append(TransferRecord(memory=TransferMemory(memory=note)))
    records.append(TransferRecord(end=TransferEnd(memory_count=len(texts), record_count=len(texts) + 1)))
    return b"".join(MessageToJson(record, indent=None, ensure_ascii=False).encode() + b"\n" for record in records)


EXPORT = exported("one", "潮汐")


@pytest.mark.parametrize("packed", [False, True])
def test_an_export_that_is_cut_at_any_byte_is_not_whole_and_gives_nothing_that_it_does_not_hold(packed: bool) -> None:
    whole = opened(EXPORT)
    assert not any(isinstance(part, NotWhole | BadLine) for part in whole)
    data = gzip.compress(EXPORT, mtime=0) if packed else EXPORT
    assert opened(data) == whole
    # A line is whole without its end.
    for end in range(len(data) - 1):
        *read, last = opened(data[:end])
        assert isinstance(last, NotWhole), end
        good = [part for part in read if isinstance(part, Line)]
        assert good == whole[: len(good)]
        assert len(read) - len(good) <= 1


@given(st.lists(st.sampled_from(EXPORT.splitlines(keepends=True)), max_size=8))
def test_lines_of_an_export_in_any_order_are_whole_only_as_they_were_written(lines: list[bytes]) -> None:
    is_whole = not any(isinstance(part, NotWhole) for part in read_file(lines, FileFormat.JSONL))
    header, first, second, end = EXPORT.splitlines(keepends=True)
    # Which memories they are is not counted.
    between = [[header, one, other, end] for one in (first, second) for other in (first, second)]
    assert is_whole == (lines in between)


def test_files_that_are_no_text_are_named_in_one_line() -> None:
    cases = {
        "UTF-16 (byte 0)": EXPORT.decode().encode("utf-16"),
        "UTF-32 (byte 0)": EXPORT.decode().encode("utf-32"),
        "ZIP archive": b"PK\x03\x04",
        "as gzip": b"\x1f\x8bnot gzip",
    }
    for format in FileFormat:
        for said, data in cases.items():
            (part,) = opened(data, format)
            assert isinstance(part, NotWhole)
            assert said in part.reason
    assert opened(codecs.BOM_UTF8 + EXPORT) == opened(EXPORT)
    assert isinstance(opened(codecs.BOM_UTF8 + b"\n" + EXPORT)[-1], Line)


def test_gzip_of_any_number_of_members_is_read_for_every_format() -> None:
    memory = b'{"id": "1", "memory": "a", "text": "a", "tag": "manual"}\n'
    for format in (FileFormat.MEM0, FileFormat.LEGACY):
        assert len(opened(gzip.compress(memory) + gzip.compress(memory), format)) == 2


@pytest.mark.long
def test_a_line_that_gzip_makes_of_nothing_is_refused_before_it_fills_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hummock_tools.importing.json_items.MOST_BYTES", 1 << 16)
    monkeypatch.setattr("hummock_tools.importing.json_items.MOST_BYTES", 1 << 16)
    tracemalloc.start()
    for format in FileFormat:
        for bomb in (b"0" * (8 << 20), b"[\n" + b"0,\n" * (1 << 20)):
            packed = gzip.compress(bomb)
            del bomb
            tracemalloc.reset_peak()
            base = tracemalloc.get_traced_memory()[0]
            last: Part | None = None
            for last in read_file(lines_of(io.BytesIO(packed)), format):
                if isinstance(last, NotWhole) or format is FileFormat.JSONL:
                    break
            assert isinstance(last, NotWhole if format is not FileFormat.JSONL else NotWhole | BadLine)
            assert tracemalloc.get_traced_memory()[1] - base < 2 << 20
    tracemalloc.stop()


def test_what_is_wrong_with_a_memory_of_mem0_is_named() -> None:
    assert reason(FileFormat.MEM0, {"id": "1"}) == "memory is missing"
    assert reason(FileFormat.MEM0, {"memory": "x"}) == "id is missing"
    assert reason(FileFormat.MEM0, {"id": "1", "content": ""}) == "content is missing"
    assert reason(FileFormat.MEM0, {"id": "1", "memory": "x", "categories": "work"}) == "categories is no list"
    assert reason(FileFormat.MEM0, {"id": "1", "memory": ["x"]}) == "memory is no text"
    assert reason(FileFormat.MEM0, {"id": "1", "memory": "x", "created_at": "yesterday"}) == "created_at is no time"
    assert reason(FileFormat.MEM0, {"id": "1", "memory": "x", "metadata": []}) == "metadata is no object"
    assert "lone surrogate" in reason(FileFormat.MEM0, {"id": "1", "memory": "\ud800"})


@given(
    st.sampled_from([FileFormat.MEM0, FileFormat.LEGACY]),
    st.dictionaries(
        st.sampled_from(
            [
                "id", "text", "memory", "tag", "emotion", "timestamp", "title", "content", "embedding", "metadata",
                "categories", "state", "user_id", "projectKey",
            ]
        )
        | st.text(),
        JSON_VALUES,
    ),
)  # fmt: skip
def test_any_object_is_a_record_or_named(format: FileFormat, value: dict[str, Any]) -> None:
    (part,) = parts(format, value, project_key="p", emb_space="s")
    if isinstance(part, Line):
        part.record.SerializeToString()
