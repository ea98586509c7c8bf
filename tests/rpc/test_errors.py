"""Every sort of wrong request over a real socket: a clear status, and the server serves on."""

from __future__ import annotations

import asyncio
import math
import struct
from collections.abc import Callable

import grpc
import pytest
from google.protobuf.message import Message
from msgspec.structs import replace
from structlog.testing import capture_logs

from hummock.core import errors
from hummock.core.memory import Payload
from hummock.core.recall import Recalled, RecallQuery
from hummock_client.v1 import context_service_pb2 as context_pb
from hummock_client.v1 import memory_pb2, memory_service_pb2, recall_pb2
from hummock_client.v1.recall_pb2 import RecallRequest, RecallTuning
from tests.rpc.edge import FixedGarden, Refusal, edge, refused, use_cases
from tests.rpc.samples import MEMORY

GOOD = RecallRequest(project="loan", query_text="增加先本后息的还款方式")


def refusal(method: str, sent: bytes | Message, chosen: dict[str, object] | None = None) -> Refusal:
    """The refusal of a request; the server must answer a good request after it."""

    async def run() -> Refusal:
        async with edge(use_cases(**(chosen or {}))) as serving:
            data = sent if isinstance(sent, bytes) else sent.SerializeToString()
            answer = await refused(serving.raw(method, data))
            if "recall" not in (chosen or {}):
                await serving.raw("ContextService/Recall", GOOD.SerializeToString())
            return answer

    return asyncio.run(run())


def recall(**fields: object) -> RecallRequest:
    request = RecallRequest(project="loan", query_text="q")
    request.MergeFrom(RecallRequest(**fields))  # type: ignore[arg-type] # each row names real fields
    return request


def vector(values: bytes) -> RecallRequest:
    return recall(query_vector=memory_pb2.Embedding(values=values, emb_space="e"))


def tuned(**fields: float) -> RecallRequest:
    return recall(tuning=RecallTuning(**fields))  # type: ignore[arg-type] # the same


def outside(value: str, low: int, high: int) -> str:
    return f"is {value}; it must be greater than or equal to {low} and less than or equal to {high}"


def learnt(*memories: memory_pb2.Memory) -> context_pb.LearnRequest:
    return context_pb.LearnRequest(project="p", memories=memories)


def failure(error: Exception) -> Refusal:
    """The refusal of a recall that fails with this error."""

    def fail(query: RecallQuery) -> Recalled:
        raise error

    return refusal("ContextService/Recall", GOOD, {"recall": fail})


BLANK = "is blank; say what to recall for"
NOTE = memory_pb2.Memory(kind=memory_pb2.MEMORY_KIND_NOTE, content="记住")
LARGE = memory_pb2.Memory(kind=memory_pb2.MEMORY_KIND_NOTE, content="字" * 90_000)
BACKWARDS = memory_pb2.CodeFragment(path="a.py", start_line=9, end_line=3)
CODE = memory_pb2.Memory(kind=memory_pb2.MEMORY_KIND_CODE_FRAGMENT, content="x", code_fragment=BACKWARDS)


@pytest.mark.parametrize(
    ("sent", "field", "rule"),
    [
        (RecallRequest(query_text="q"), "project", "is empty; it is required"),
        (RecallRequest(project="p"), "query_text", "is empty; it is required"),
        (recall(query_text=" "), "query_text", BLANK),
        (recall(query_text="\n\t"), "query_text", BLANK),
        (recall(query_text="\u3000"), "query_text", BLANK),
        (tuned(top_k=0), "tuning.top_k", outside("0", 1, 200)),
        (tuned(top_k=5000), "tuning.top_k", outside("5000", 1, 200)),
        (tuned(min_similarity=math.nan), "tuning.min_similarity", outside("nan", -1, 1)),
        (tuned(relevance_weight=math.nan), "tuning.relevance_weight", outside("nan", 0, 1)),
        (recall(preset=77), "preset", "is 77; the contract knows no such value"),
        # S12 of the reliability notes: no vector without a direction reaches an index.
        (vector(struct.pack("<2f", 1, math.nan)), "query_vector.values", "component 1 is nan; all must be finite"),
        (vector(struct.pack("<2f", -math.inf, 1)), "query_vector.values", "component 0 is -inf; all must be finite"),
        (vector(struct.pack("<2f", 0, -0.0)), "query_vector.values", "is all zero; it has no direction"),
        (vector(b"\0" * 7), "query_vector.values", "has 7 bytes; float32 takes 4 for each component"),
        (vector(b""), "query_vector.values", "is empty; it is required"),
        (learnt(NOTE, NOTE, NOTE, LARGE), "memories[3].content", "has 270000 bytes; it must be at most 262144 bytes"),
        (learnt(CODE), "memories[0].code_fragment.end_line", "is 3, before start_line 9"),
    ],
)
def test_a_field_that_breaks_its_rule_is_named_with_what_it_is_and_the_limit(
    sent: RecallRequest | context_pb.LearnRequest, field: str, rule: str
) -> None:
    answer = refusal(f"ContextService/{sent.DESCRIPTOR.name.removesuffix('Request')}", sent)
    assert (answer.code, answer.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_REQUEST")
    assert (answer.violations, answer.metadata["field"]) == ({field: rule}, field)


def test_every_broken_rule_is_reported_at_once() -> None:
    request = RecallRequest(tuning=RecallTuning(top_k=5000), preset=77)  # type: ignore[arg-type] # unknown
    answer = refusal("ContextService/Recall", request)
    assert sorted(answer.violations) == ["preset", "project", "query_text", "tuning.top_k"]
    assert answer.message.endswith("; and 1 more")


def test_a_wrong_embedding_space_keeps_its_reason_and_facts() -> None:
    answer = failure(errors.EmbSpaceMismatch("query_vector.emb_space", "aaa", "bbb"))
    assert (answer.code, answer.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "EMB_SPACE_MISMATCH")
    assert (answer.metadata["given"], answer.metadata["expected"]) == ("aaa", "bbb")
    assert list(answer.violations) == ["query_vector.emb_space"]


def test_text_that_is_not_utf8_is_the_callers_error() -> None:
    broken = GOOD.SerializeToString().replace("增加".encode(), b"\xff\xfe\xfd\xfc\xfb\xfa")
    answer = refusal("ContextService/Recall", broken)
    assert answer.code is grpc.StatusCode.INVALID_ARGUMENT
    assert answer.violations == {"query_text": "is not UTF-8"}


@pytest.mark.parametrize("method", ["ContextService/Recall", "ContextService/Learn", "MemoryService/ListMemories"])
def test_garbage_is_the_callers_error(method: str) -> None:
    assert refusal(method, b"\xff" * 64).code is grpc.StatusCode.INVALID_ARGUMENT


def test_a_message_above_our_limit_is_told_the_limit_and_one_above_the_cores_leaves_the_server_serving() -> None:
    answer = refusal("ContextService/Learn", b"\0" * (5 << 20))
    assert answer.code is grpc.StatusCode.INVALID_ARGUMENT
    assert "4194304" in answer.message
    assert refusal("ContextService/Learn", b"\0" * (17 << 20)).code is grpc.StatusCode.RESOURCE_EXHAUSTED


def test_many_broken_rules_still_fit_the_trailers() -> None:
    answer = refusal("ContextService/Learn", learnt(*[memory_pb2.Memory(trust=2)] * 512))
    assert answer.code is grpc.StatusCode.INVALID_ARGUMENT
    assert "memories[0].trust" in answer.violations
    assert answer.violations[""].endswith("more")


def test_long_chinese_messages_still_fit_the_trailers() -> None:
    answer = failure(errors.ProjectNotFound("项" * 256))
    assert answer.code is grpc.StatusCode.NOT_FOUND
    assert answer.message.startswith("project 项项")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.InvalidRequest("f", "r"), grpc.StatusCode.INVALID_ARGUMENT),
        (errors.RequestIdReused("u"), grpc.StatusCode.ALREADY_EXISTS),
        (errors.MemoryNotFound("m"), grpc.StatusCode.NOT_FOUND),
        (errors.ProjectNotFound("p"), grpc.StatusCode.NOT_FOUND),
        (errors.SeqNotReached(9, 7), grpc.StatusCode.FAILED_PRECONDITION),
        (errors.StorageFull(2, 1), grpc.StatusCode.RESOURCE_EXHAUSTED),
        (errors.Overloaded(9, 8, 0.5), grpc.StatusCode.RESOURCE_EXHAUSTED),
        (errors.Unavailable("stopping"), grpc.StatusCode.UNAVAILABLE),
    ],
)
def test_each_error_has_its_code_its_reason_and_its_facts(error: errors.HummockError, code: grpc.StatusCode) -> None:
    answer = failure(error)
    assert (answer.code, answer.message, answer.reason) == (code, str(error), error.reason)
    assert answer.metadata == error.metadata
    retries = isinstance(error, errors.Overloaded | errors.Unavailable)
    assert (answer.retry_after_s is not None) == retries


def test_an_unexpected_error_says_nothing_of_its_insides_and_is_logged_once_without_content() -> None:
    def fail(query: RecallQuery) -> Recalled:
        raise RuntimeError(f"secret {query.text}")

    with capture_logs() as logs:
        answer = refusal("ContextService/Recall", GOOD.SerializeToString(), {"recall": fail})
    assert (answer.code, answer.reason) == (grpc.StatusCode.INTERNAL, "INTERNAL")
    assert "secret" not in answer.message
    (line,) = logs
    assert (line["error_id"], line["method"]) == (answer.metadata["error_id"], "/hummock.v1.ContextService/Recall")
    assert "secret" not in str(line)
    assert "先本后息" not in str(line)


def test_a_reply_above_the_limit_says_how_to_ask_for_less() -> None:
    assert MEMORY.payload is not None
    large = replace(MEMORY, payload=Payload(content="x" * (5 << 20), detail=MEMORY.payload.detail))
    request = memory_service_pb2.GetMemoryRequest(project="p", id=MEMORY.id)
    answer = refusal("MemoryService/GetMemory", request, {"garden": FixedGarden(memories={MEMORY.id: large})})
    assert (answer.code, answer.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "REPLY_TOO_LARGE")


@pytest.mark.long
@pytest.mark.parametrize("name", ["a\0b", "a\nb", "a\u202eb"])
@pytest.mark.parametrize(
    ("method", "make", "field"),
    [
        ("ContextService/Recall", lambda name: RecallRequest(project=name, query_text="q"), "project"),
        ("MemoryService/GetMemory", lambda name: memory_service_pb2.GetMemoryRequest(project="p", id=name), "id"),
    ],
)
def test_names_hold_no_control_characters(
    name: str, method: str, make: Callable[[str], recall_pb2.RecallRequest], field: str
) -> None:
    assert refusal(method, make(name)).violations == {field: "holds a control character"}


async def test_calls_before_opening_are_told_to_try_again() -> None:
    async with edge(opened=False) as serving:
        answer = await refused(serving.raw("ContextService/Recall", GOOD.SerializeToString()))
    assert answer.code is grpc.StatusCode.UNAVAILABLE
    assert answer.retry_after_s == 1.0
