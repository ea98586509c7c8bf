"""What a file holds, each part with the line on which it begins."""

from __future__ import annotations

from dataclasses import dataclass

from hummock.v1.transfer_pb2 import TransferRecord

Value = None | bool | int | float | str | list["Value"] | dict[str, "Value"]
"""A JSON value."""

Fields = dict[str, Value]
"""A JSON object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A record; `number` counts from 1. `has_unused_vector` means that it came with one that was not asked for."""

    number: int
    record: TransferRecord
    has_unused_vector: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BadLine:
    """A part of the file that is no record, and why."""

    number: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherProject:
    """A record of another project than the one that is asked for."""

    number: int
    key: str


class BadRecord(Exception):
    """A JSON object is no record of its format; the message says why."""
