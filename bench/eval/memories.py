"""Records of the sets as memories. They have no titles or summaries: those that the server makes are never searched."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp

from hummock.v1 import memory_pb2 as pb

Record = Mapping[str, Any]
"""A line of a data file; which fields it has depends on the file."""

_FIRST_EXCHANGE = timedelta(hours=12)


def note(record: Record) -> pb.MemoryInput:
    """A paragraph; the titles that some sets have are not used."""
    return pb.MemoryInput(id=record["_id"], kind=pb.MEMORY_KIND_NOTE, payload=pb.MemoryPayload(content=record["text"]))


def code(record: Record) -> pb.MemoryInput:
    """A function in a file of its own; its name is left where it stands, in the code."""
    fragment = pb.CodeFragment(path=f"{record['_id']}.py", language="python")
    return pb.MemoryInput(
        id=record["_id"],
        kind=pb.MEMORY_KIND_CODE_FRAGMENT,
        payload=pb.MemoryPayload(content=record["text"], code_fragment=fragment),
    )


def exchange(record: Record) -> pb.MemoryInput:
    """What a user said and what was answered, a line each: one memory. The day is its session.

    Exchanges of a day are a minute apart, from noon UTC on; only their order is known. They are learnt then.
    """
    time = _timestamp(_noon(record["day"]) + timedelta(minutes=record["position"]))
    return pb.MemoryInput(
        id=record["_id"],
        kind=pb.MEMORY_KIND_NOTE,
        origin=pb.ORIGIN_USER_INPUT,
        payload=pb.MemoryPayload(content=f"{record['query']}\n{record['response']}"),
        session_id=record["day"],
        speaker=record["user"],
        event_time=time,
        create_time=time,
    )


def day_after(record: Record) -> Timestamp:
    """Noon UTC of the day after an exchange."""
    return _timestamp(_noon(record["day"]) + timedelta(days=1))


def _noon(day: str) -> datetime:
    return datetime.fromisoformat(day).replace(tzinfo=UTC) + _FIRST_EXCHANGE


def _timestamp(time: datetime) -> Timestamp:
    stamp = Timestamp()
    stamp.FromDatetime(time)
    return stamp
