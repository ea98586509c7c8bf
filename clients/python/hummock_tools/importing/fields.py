"""Lines of an import file, and the fields of foreign records."""

from __future__ import annotations

import base64
import binascii
import math
import struct
from dataclasses import dataclass
from datetime import UTC, datetime

from google.protobuf.timestamp_pb2 import Timestamp

from hummock_client.requests import vector
from hummock_client.v1.transfer_pb2 import TransferRecord

Value = None | bool | int | float | str | list["Value"] | dict[str, "Value"]
"""A JSON value."""

Fields = dict[str, Value]
"""A JSON object."""

_FIRST_MILLISECONDS = 1e11
"""Numbers from here on are milliseconds: as seconds they would lie after the year 5000, as those in 1973."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Position of a record in its file: its line, and its place in a list, from 1; 0 where each has its own line."""

    line: int
    record: int = 0

    def __str__(self) -> str:
        return f"line {self.line}, record {self.record}" if self.record else f"line {self.line}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A record: if it has a vector that was not requested, and how many labels and facts the contract does not take."""

    place: Place
    record: TransferRecord
    has_unused_vector: bool = False
    unfit: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class BadLine:
    """A part of the file that is no record, and why."""

    place: Place
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NotWhole:
    """The last part of a file that is not whole, and why: nothing after it was read."""

    place: Place
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherProject:
    """A record of another project than the one that is asked for."""

    place: Place
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Retired:
    """A record whose state marks it as no longer valid."""

    place: Place
    state: str


Part = Line | BadLine | NotWhole | OtherProject | Retired


class BadRecord(Exception):
    """A JSON object is no record of its format; the message says why."""


def text(fields: Fields, name: str, *, required: bool = False) -> str:
    """A text; "" when it is missing or null. Numbers are written out. Raises: BadRecord."""
    value = fields.get(name)
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if value is None or value == "":
        if required:
            raise BadRecord(f"{name} is missing")
        return ""
    if not isinstance(value, str):
        raise BadRecord(f"{name} is no text")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise BadRecord(f"{name} holds half a character (a lone surrogate)") from None
    return value


def time(fields: Fields, name: str) -> Timestamp | None:
    """Parse a time in ISO 8601 (UTC without a zone) or in seconds or milliseconds since 1970. Raises: BadRecord."""
    value = fields.get(name)
    if value is None or value == "":
        return None
    made = Timestamp()
    try:
        if isinstance(value, str):
            moment = datetime.fromisoformat(value)
            made.FromDatetime(moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC))
            return made
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            seconds = value / 1000 if abs(value) >= _FIRST_MILLISECONDS else value
            made.FromMicroseconds(round(seconds * 1e6))
            made.ToJsonString()
            return made
    except (ValueError, OverflowError):
        pass
    raise BadRecord(f"{name} is no time")


def embedding(fields: Fields, name: str) -> bytes:
    """A vector as little-endian float32, of a list of numbers or Base64; b"" without one. Raises: BadRecord."""
    value = fields.get(name)
    if value is None or value in ("", []):
        return b""
    if isinstance(value, list):
        numbers = [one for one in value if isinstance(one, int | float) and not isinstance(one, bool)]
        if len(numbers) < len(value):
            raise BadRecord(f"{name} is no list of numbers")
        try:
            return vector(numbers, "").values
        except OverflowError:
            raise BadRecord(f"{name} holds a number that float32 does not") from None
    if not isinstance(value, str):
        raise BadRecord(f"{name} is neither Base64 nor a list of numbers")
    try:
        data = base64.b64decode("".join(value.split()), validate=True)
    except (binascii.Error, ValueError):
        raise BadRecord(f"{name} is no Base64") from None
    if len(data) % struct.calcsize("<f"):
        raise BadRecord(f"{name} has {len(data)} bytes; float32 takes 4 for each component")
    return data
