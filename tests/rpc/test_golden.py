"""Errors as outsiders see them, held in a file, and their reasons: clients switch on them.

`python -m tests.rpc.test_golden` writes the file anew after a change that is meant.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
from collections.abc import Iterator
from pathlib import Path

import grpc
from google.protobuf.json_format import MessageToDict

import hummock
from hummock.core import errors
from hummock.core.errors import DeadlinePassed, HummockError
from hummock.rpc.status import InternalError, ReplyTooLarge, _code_of, to_proto
from hummock.rpc.validation import RulesBroken, Violation
from hummock_client.v1.errors_pb2 import ErrorReason

FILE = Path(__file__).parent / "golden" / "statuses.json"

ERRORS: tuple[HummockError, ...] = (
    errors.InvalidRequest("memories[3].content", "is required for NOTE"),
    RulesBroken(
        [
            Violation(field="tuning.top_k", rule="is 5000; it must be at most 200"),
            Violation(field="query_text", rule="is empty; it is required"),
        ]
    ),
    errors.RequestIdReused("5f0c0a5e-0000-4000-8000-000000000000"),
    errors.EmbSpaceMismatch("query_vector.emb_space", "aaa", "bbb"),
    errors.MemoryNotFound("世界.图鉴.物品.潮汐木芯"),
    errors.ProjectNotFound("loan"),
    errors.SessionNotFound("会话-1"),
    errors.SessionExists("会话-1"),
    errors.MessageIdTaken("user.message_id", "m-1"),
    errors.SeqNotReached(9, 7),
    errors.Overloaded(256, 256, 0.25),
    errors.StorageFull(2048, 1024),
    ReplyTooLarge(17_000_000, 4_194_304),
    errors.Unavailable("the service is starting or stopping; try again"),
    DeadlinePassed(),
    InternalError("0123456789abcdef0123456789abcdef"),
)


def statuses() -> list[object]:
    """Every status as protobuf's JSON mapping writes it."""
    return [MessageToDict(to_proto(error)) for error in ERRORS]


def test_the_statuses_of_all_errors_are_those_of_the_file() -> None:
    assert statuses() == json.loads(FILE.read_text(encoding="utf-8"))


def kinds() -> Iterator[type[HummockError]]:
    """All classes of errors that the service knows."""
    for module in pkgutil.walk_packages(hummock.__path__, "hummock."):
        # A program.
        if module.name != "hummock.__main__":
            importlib.import_module(module.name)
    waiting = [HummockError]
    while waiting:
        kind = waiting.pop()
        yield kind
        waiting += kind.__subclasses__()


def sent(kind: type[HummockError]) -> bool:
    """True if a call can end with it: it has a code of its own, and is not just a base class."""
    made = kind.__new__(kind)
    has_code = _code_of(made) is not grpc.StatusCode.INTERNAL or kind is InternalError
    return has_code and (kind.reason in vars(kind).values() or not kind.__subclasses__())


def test_every_reason_is_in_the_contract_and_the_contract_has_no_other() -> None:
    """X3."""
    bases = {"NOT_FOUND", "NOT_READY", "EXHAUSTED"}
    given = {kind.reason for kind in kinds() if sent(kind)} - bases
    listed = {name.removeprefix("ERROR_REASON_") for name in ErrorReason.keys()}  # noqa: SIM118 # no mapping
    assert given == listed - {"UNSPECIFIED"}


if __name__ == "__main__":
    FILE.parent.mkdir(exist_ok=True)
    lines = (json.dumps(one, ensure_ascii=False, sort_keys=True) for one in statuses())
    FILE.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")
