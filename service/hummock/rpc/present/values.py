"""Values that many replies hold: times, spans, structures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from google.protobuf.duration_pb2 import Duration
from google.protobuf.struct_pb2 import ListValue, NullValue, Struct, Value
from google.protobuf.timestamp_pb2 import Timestamp

_LAST_MICROSECOND = 253_402_300_799_999_999  # of 9999-12-31


def timestamp(unix_seconds: float) -> Timestamp:
    """The time, to the microsecond: a float64 of seconds holds no more."""
    time = Timestamp()
    set_timestamp(time, unix_seconds)
    return time


def set_timestamp(message: Timestamp, unix_seconds: float) -> None:
    """Sets a Timestamp to the time, to the microsecond."""
    # So far from 1970 the last instants of the year 9999 round up to a time that no Timestamp holds.
    seconds, microseconds = divmod(min(round(unix_seconds * 1e6), _LAST_MICROSECOND), 1_000_000)
    message.SetInParent()
    message.seconds = seconds
    message.nanos = 1000 * microseconds


def duration(seconds: float) -> Duration:
    """The span, to the nanosecond."""
    span = Duration()
    set_duration(span, seconds)
    return span


def set_duration(message: Duration, seconds: float) -> None:
    """Sets a Duration to the span, to the nanosecond."""
    whole, nanoseconds = divmod(round(seconds * 1e9), 1_000_000_000)
    message.SetInParent()
    message.seconds = whole
    message.nanos = nanoseconds


def struct(fields: Mapping[str, object]) -> Struct:
    """Plain JSON values, tuples as lists. Raises: TypeError for any other value."""
    return Struct(fields={name: json_value(value) for name, value in fields.items()})


def json_value(value: object) -> Value:
    """A plain JSON value, tuples as lists. Raises: TypeError for any other."""
    if value is None:
        return Value(null_value=NullValue.NULL_VALUE)
    if isinstance(value, bool):
        return Value(bool_value=value)
    if isinstance(value, int | float):
        return Value(number_value=float(value))
    if isinstance(value, str):
        return Value(string_value=value)
    if isinstance(value, Mapping):
        return Value(struct_value=struct(value))
    if isinstance(value, Sequence):
        return Value(list_value=ListValue(values=[json_value(item) for item in value]))
    raise TypeError(f"{type(value).__name__} is no JSON value")
