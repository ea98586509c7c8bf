"""Errors as outsiders see them, held in a file: clients switch on them.

`python -m tests.rpc.test_golden` writes the file anew after a change that is meant.
"""

from __future__ import annotations

import json
from pathlib import Path

from google.protobuf.json_format import MessageToDict

from hummock.core import errors
from hummock.core.errors import DeadlinePassed
from hummock.rpc.status import InternalError, ReplyTooLarge, to_proto
from hummock.rpc.validation import RulesBroken, Violation

FILE = Path(__file__).parent / "golden" / "statuses.json"

ERRORS: tuple[errors.HummockError, ...] = (
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


if __name__ == "__main__":
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(json.dumps(statuses(), ensure_ascii=False, indent=2, sort_keys=True) + "\n", encoding="utf-8")
