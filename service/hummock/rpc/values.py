"""Values that many messages hold: names, ids, tags, times, spans, vectors, filters, views, pages."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any, TypedDict

import numpy as np
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from hummock.core.errors import InvalidRequest
from hummock.core.memory import Filter, MemoryKind, Metadata, Origin, QueryVector
from hummock.core.project import MAX_PROJECT_BYTES
from hummock.core.time_zone import zone_of
from hummock_client.v1 import memory_pb2
from hummock_kernels.messages import LAST_MICROSECOND

# Control characters, and those that change the writing direction: they let an id look like another one.
_FORBIDDEN_IN_NAMES = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
DEFAULT_PAGE_SIZE = 100
MAX_PAGE_SIZE = 1000

_MARKS = re.compile(r"^[#\s]+")
_FLOAT_BYTES = 4
_FIRST_SECOND = -62_135_596_800  # 0001-01-01
_LAST_SECOND = 253_402_300_799  # 9999-12-31


def seconds(span: Duration) -> float:
    """A span of time in seconds."""
    return span.seconds + span.nanos / 1e9


@lru_cache(maxsize=1024)
def project_name(field: str, name: str) -> str:
    """Check the name of a project. Reads and writes refuse the same names with the same messages."""
    if not name.strip():
        raise InvalidRequest(field, "is blank; name the project")
    if len(name.encode()) > MAX_PROJECT_BYTES:
        raise InvalidRequest(field, f"has {len(name.encode())} bytes; it must be 1 to {MAX_PROJECT_BYTES}")
    return identifier(field, name)


def identifier(field: str, value: str) -> str:
    """An id or a name, as it was sent; it holds no control characters."""
    if not value.isprintable() and _FORBIDDEN_IN_NAMES.search(value):
        raise InvalidRequest(field, "holds a control character")
    return value


def time_zone(field: str, name: str) -> str:
    """Check the name of a time zone; it may be empty."""
    zone_of(name, field)
    return name


def identifiers(field: str, values: Iterable[str]) -> tuple[str, ...]:
    """Several ids, in order."""
    return tuple([identifier(f"{field}[{index}]", value) for index, value in enumerate(values)])


class Write(TypedDict):
    """The fields of every `WriteCommand`."""

    project: str
    request_id: str
    fingerprint: bytes


def write(request: Any) -> Write:
    """The project that a request writes to, its request_id and its fingerprint. Raises: InvalidRequest."""
    return Write(
        project=project_name("project", request.project),
        # Both spellings of a UUID are equal.
        request_id=request.request_id.lower(),
        # Only requests with a request_id need it, and it costs as much as parsing.
        fingerprint=fingerprint(request) if request.request_id else b"",
    )


def fingerprint(request: Message) -> bytes:
    """16 bytes that are equal for requests that are equal but for their request_id."""
    bare = type(request)()
    bare.CopyFrom(request)
    bare.ClearField("request_id")
    digest = blake2b(request.DESCRIPTOR.full_name.encode() + b"\0", digest_size=16)
    digest.update(bare.SerializeToString(deterministic=True))
    return digest.digest()


def mask(paths: Iterable[str], allowed: Sequence[str]) -> frozenset[str]:
    """The fields that an update names. Raises: InvalidRequest: none, or one that is not allowed."""
    named = frozenset(paths)
    if not named or not named.issubset(allowed):
        raise InvalidRequest("update_mask", f"must name one or more of {', '.join(allowed)}, and nothing else")
    return named


def tags(field: str, values: Iterable[str]) -> tuple[str, ...]:
    """Tags without "#" in front, without space around and without duplicates, in order."""
    names: dict[str, None] = {}
    for index, value in enumerate(values):
        name = _tag_name(value)
        if not name:
            raise InvalidRequest(f"{field}[{index}]", "is blank")
        names[identifier(f"{field}[{index}]", name)] = None
    return tuple(names)


def metadata(field: str, given: Mapping[str, str]) -> Metadata:
    """The caller's own facts, by their names."""
    return tuple((identifier(field, name), given[name]) for name in sorted(given))


def files(field: str, given: Iterable[str]) -> tuple[str, ...]:
    """Paths below a repository's root, in order, each once. Raises: InvalidRequest."""
    paths = identifiers(field, given)
    for index, path in enumerate(paths):
        if not {"", ".", ".."}.isdisjoint(path.split("/")) or "\\" in path or path[1:2] == ":":
            rule = 'is not below the root of a repository; write it like "src/pay.py", without ".", ".." and "\\"'
            raise InvalidRequest(f"{field}[{index}]", rule)
    return tuple(dict.fromkeys(paths))


@lru_cache(maxsize=4096)
def _tag_name(value: str) -> str:
    return _MARKS.sub("", value).rstrip()


def time(field: str, request: Message, name: str) -> float | None:
    """Unix seconds of the Timestamp field `name` of the request; None when it is unset."""
    if not request.HasField(name):
        return None
    value: Timestamp = getattr(request, name)
    if not (_FIRST_SECOND <= value.seconds <= _LAST_SECOND and 0 <= value.nanos < 1_000_000_000):
        raise InvalidRequest(field, "is not a time between the years 1 and 9999")
    return value.seconds + value.nanos / 1e9


def vector(field: str, sent: memory_pb2.Embedding) -> QueryVector:
    """The vector at length 1. Its space and its dimension are compared where the project's are known."""
    if len(sent.values) % _FLOAT_BYTES:
        raise InvalidRequest(f"{field}.values", f"has {len(sent.values)} bytes; float32 takes 4 for each component")
    values = np.frombuffer(sent.values, "<f4").astype(np.float64)
    # The square of a float32 is finite in float64.
    square = float(values @ values)
    if not math.isfinite(square):
        at = int(np.flatnonzero(~np.isfinite(values))[0])
        raise InvalidRequest(f"{field}.values", f"component {at} is {values[at]}; all must be finite")
    if square == 0:
        raise InvalidRequest(f"{field}.values", "is all zero; it has no direction")
    return QueryVector(values=(values / math.sqrt(square)).astype(np.float32), emb_space=sent.emb_space)


def vectors(sent: Sequence[memory_pb2.Embedding]) -> list[QueryVector] | None:
    """The vectors at length 1, in order; None when one of them is wrong, or they differ in size."""
    sizes = {len(one.values) for one in sent}
    size = sizes.pop() if len(sizes) == 1 else 0
    if size == 0 or size % _FLOAT_BYTES:
        return None
    values = np.frombuffer(b"".join([one.values for one in sent]), "<f4").astype(np.float64).reshape(len(sent), -1)
    length = np.sqrt(np.einsum("ij,ij->i", values, values))
    # The square of a float32 is finite in float64.
    if not (np.isfinite(length) & (length > 0)).all():
        return None
    unit = (values / length[:, None]).astype(np.float32)
    return [QueryVector(values=row, emb_space=one.emb_space) for row, one in zip(unit, sent, strict=True)]


def memory_filter(field: str, sent: memory_pb2.MemoryFilter) -> Filter:
    """The conditions; an unset message has none."""
    # Most conditions are unset, and reading each field takes longer than listing the set ones.
    given = {one.name: value for one, value in sent.ListFields()}
    return Filter(
        kinds=frozenset(map(MemoryKind, given.get("kinds", ()))),
        origins=frozenset(map(Origin, given.get("origins", ()))),
        tags=tags(f"{field}.tags", sent.tags) if "tags" in given else (),
        session_ids=identifiers(f"{field}.session_ids", given.get("session_ids", ())),
        paths=tuple(given.get("paths", ())),
        speakers=tuple(given.get("speakers", ())),
        writers=tuple(given.get("writers", ())),
        created_after=time(f"{field}.created_after", sent, "created_after") if "created_after" in given else None,
        created_before=time(f"{field}.created_before", sent, "created_before") if "created_before" in given else None,
        excluded_ids=identifiers(f"{field}.excluded_ids", given.get("excluded_ids", ())),
        event_after=time(f"{field}.event_after", sent, "event_after") if "event_after" in given else None,
        event_before=time(f"{field}.event_before", sent, "event_before") if "event_before" in given else None,
        metadata=metadata(f"{field}.metadata", sent.metadata) if "metadata" in given else (),
        pinned=given.get("pinned", False),
    )


def wants_full(view: memory_pb2.MemoryView.ValueType, *, unset_means_full: bool) -> bool:
    """Whether the reply carries payloads."""
    return unset_means_full if view == memory_pb2.MEMORY_VIEW_UNSPECIFIED else view != memory_pb2.MEMORY_VIEW_INDEX


def wants_raw(view: memory_pb2.MemoryView.ValueType) -> bool:
    """Whether it carries raw texts as well."""
    return view == memory_pb2.MEMORY_VIEW_RAW


def page_size(asked: int, unset_means: int = DEFAULT_PAGE_SIZE) -> int:
    """The size of a page; sizes above the maximum are lowered to it."""
    return min(asked or unset_means, MAX_PAGE_SIZE)


def timestamp(unix_seconds: float) -> Timestamp:
    """The time, to the microsecond: a float64 of seconds holds no more."""
    # So far from 1970 the last instants of the year 9999 round up to a time that no Timestamp holds.
    seconds, microseconds = divmod(min(round(unix_seconds * 1e6), LAST_MICROSECOND), 1_000_000)
    return Timestamp(seconds=seconds, nanos=1000 * microseconds)


def duration(seconds: float) -> Duration:
    """The span, to the nanosecond."""
    whole, nanos = divmod(round(seconds * 1e9), 1_000_000_000)
    return Duration(seconds=whole, nanos=nanos)
