"""docs/limits.md says what the contract and the service say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from hummock.memories.quoted import MOST_SOURCE_CHARACTERS
from hummock.rpc import admission, listening, status, streams, turns, validation, values
from hummock.rpc.policy import SERVICES
from hummock.rpc.validation import RulesBroken, check
from hummock_client.v1 import memory_pb2, recall_pb2

TABLE = (Path(__file__).parents[2] / "docs" / "limits.md").read_text("utf-8")
ROW = re.compile(r"^\| `(\w+)\.(\w+)`(?:, `\w+\.\w+`)? \| (\d+)", re.MULTILINE)
MIB = 1 << 20


def types() -> dict[str, type[Message]]:
    of_calls: list[Descriptor] = [method.input_type for service in SERVICES for method in service.methods]
    others = [memory_pb2.Memory.DESCRIPTOR, recall_pb2.RecallTuning.DESCRIPTOR]
    return {one.name: GetMessageClass(one) for one in (*of_calls, *others)}


def broken(message: Message) -> set[str]:
    try:
        check(message)
    except RulesBroken as error:
        return {re.split(r"[.\[]", violation.field)[0] for violation in error.violations}
    return set()


def filled(kind: type[Message], name: str, size: int) -> Message:
    """A message whose field is of this size: so many elements or letters, or this number."""
    message = kind()
    field = kind.DESCRIPTOR.fields_by_name[name]
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        getattr(message, name).update({str(number): "" for number in range(size)})
    elif field.is_repeated and field.message_type is not None:
        for _ in range(size):
            getattr(message, name).add()
    elif field.is_repeated:
        getattr(message, name).extend(str(number) for number in range(size))
    else:
        setattr(message, name, "x" * size if field.type == field.TYPE_STRING else size)
    return message


@pytest.mark.parametrize(("kind", "name", "limit"), ROW.findall(TABLE))
def test_a_field_breaks_its_rule_above_its_limit_and_not_at_it(kind: str, name: str, limit: str) -> None:
    """X6."""
    above, at = (filled(types()[kind], name, size) for size in (int(limit) + 1, int(limit)))
    assert name in broken(above)
    if types()[kind].DESCRIPTOR.fields_by_name[name].message_type is None:
        assert name not in broken(at)


@pytest.mark.parametrize("kind", [memory_pb2.Memory, memory_pb2.MemoryFilter])
def test_metadata_breaks_its_rules_by_its_names_and_its_values(kind: type[Message]) -> None:
    """X6."""
    for name, value, is_wrong in (
        ("n" * 64, "v" * 512, False),
        ("名" * 64, "值" * 512, False),
        ("n", "", False),
        ("", "v", True),
        ("n" * 65, "v", True),
        ("n", "v" * 513, True),
    ):
        assert broken(kind(metadata={name: value})) == ({"metadata"} if is_wrong else set())


def test_what_no_rule_says_is_as_the_table_has_it() -> None:
    assert (validation.MAX_REQUEST_BYTES, status.MAX_REPLY_BYTES) == (4 * MIB, 4 * MIB)
    assert (status.LARGEST_REPLY_BYTES, values.MAX_PAGE_SIZE, streams.MAX_STREAMS) == (16 * MIB, 1000, 1000)
    assert (streams.MAX_STREAMS_OF_A_PROJECT, streams.MAX_STREAMS_OF_A_CALLER) == (600, 200)
    assert (admission.LONGEST_WAIT_S, admission.STANDING_WAIT_S, admission.ALWAYS_WAIT) == (1.0, 0.1, 64)
    assert (listening.CALLS_OF_CONNECTION, listening.UNREAD_CALLS, listening.UNREAD_CALLS_MOST) == (256, 1024, 2048)
    assert (turns.REFUSALS_AT_ONCE, turns.REFUSALS_PER_S) == (32, 100.0)
    assert MOST_SOURCE_CHARACTERS == 262_144
    for row in (
        "| a request | 4 MiB |",
        "| a page | 1000 |",
        "| streams open at once | 1000 |",
        "| streams open at once of a project | 600 |",
        "| streams open at once of a caller | 200 |",
        "| calls and streams of a connection at once | 256",
        "| calls that have come and are not read yet | 1024 | gRPC ends more and more of them, and all from 2048 on",
        "| refusals (OVERLOADED, TOKEN_INVALID, SCOPE_MISSING) | 32 at once, then 100 a second",
        "| what a call may wait for a worker, behind more than 64 others | 1 s; 0.1 s once",
        "| text of used memories that LearnTurn compares an answer with | 262144 characters",
    ):
        assert row in TABLE
