"""Parses bytes to a valid request. The rules are written in the contract and are applied here, nowhere else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, TypeVar, cast

import protovalidate
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.empty_pb2 import Empty
from google.protobuf.message import DecodeError, Message
from google.protobuf.unknown_fields import UnknownFieldSet

from hummock.core.errors import InvalidRequest
from hummock.core.recall import MAX_QUERY_CHARACTERS
from hummock_client.v1.recall_pb2 import RecallRequest

MAX_REQUEST_BYTES = 4 * 1024 * 1024
_NAMED_IN_MESSAGE = 3

AnyMessage = TypeVar("AnyMessage", bound=Message)

_validator = protovalidate.Validator()
_PLAIN = {
    "required": "is required",
    "enum.not_in": "is not said; it is required",
    "string.uuid": "is not a UUID",
    "repeated.unique": "names a value twice",
}
_MOST_DEPTH = 32
"""Greatest nesting depth of messages that is searched for text that is not UTF-8."""

_LENGTH = 2  # kind of a field on the wire

PER_CALL: Final = ("project", "query_text", "query_vector", "session_id", "min_seq", "as_of")
"""Fields of a recall that differ from call to call; all others are its shape, which is checked and parsed once."""

SHAPES_KEPT: Final = 256
LARGEST_KEPT_BYTES: Final = 4096
"""Larger shapes, of long filters, are checked and parsed at each call."""

# Lengths that the contract allows, of a session's name some of them: what is longer or shorter is left to its rules.
_PROJECT, _TEXT, _VECTOR_BYTES, _SPACE = range(1, 257), range(1, MAX_QUERY_CHARACTERS + 1), range(4, 65537), range(65)
_SESSION = range(65)


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """A field's path in the request, and the rule that it breaks."""

    field: str
    rule: str


class RulesBroken(InvalidRequest):
    """Fields of the request break rules of the contract; `field` and `rule` describe the first."""

    def __init__(self, violations: Sequence[Violation]) -> None:
        super().__init__(violations[0].field, violations[0].rule)
        self.violations = tuple(violations)

    def __str__(self) -> str:
        named = "; ".join(f"{broken.field}: {broken.rule}" for broken in self.violations[:_NAMED_IN_MESSAGE])
        others = len(self.violations) - _NAMED_IN_MESSAGE
        return f"{named}; and {others} more" if others > 0 else named

    @property
    def metadata(self) -> dict[str, str]:
        """The first field and its rule; the others are field violations."""
        return {"field": self.field, "rule": self.rule}


def parse(message_type: type[AnyMessage], data: bytes) -> AnyMessage:
    """The request that the bytes hold, checked against the rules of the contract.

    Raises:
        InvalidRequest: Too large, not a message of this type, or a text that is not UTF-8.
        RulesBroken: Names every field that breaks a rule.
    """
    check_size(data)
    message = decode(message_type, data)
    check(message)
    return message


def check_size(data: bytes) -> None:
    """Checks the size of a message. Raises: InvalidRequest."""
    if len(data) > MAX_REQUEST_BYTES:
        raise InvalidRequest("", f"the message has {len(data)} bytes; the limit is {MAX_REQUEST_BYTES} (4 MiB)")


def decode(message_type: type[AnyMessage], data: bytes) -> AnyMessage:
    """The message that the bytes hold, its size and its rules not checked. Raises: InvalidRequest."""
    message = message_type()
    try:
        message.ParseFromString(data)
    except DecodeError as error:
        field = bad_text_field(message_type, data)
        if field:
            raise InvalidRequest(field, "is not UTF-8") from error
        raise InvalidRequest("", f"the bytes are no {message_type.DESCRIPTOR.full_name}: they are garbled") from error
    return message


def check(message: Message, prefix: str = "", only: Iterable[str] | None = None) -> None:
    """Check a message against the rules of the contract.

    Args:
        message: The request, or a part of it.
        prefix: Path of the part within the request, ending in a dot.
        only: Paths of the fields to check, with their parents and children; None means all.

    Raises:
        RulesBroken: Names every field that breaks a rule.
    """
    if isinstance(message, RecallRequest) and _keeps_rules(message):
        return
    broken = [_translated(message, found, prefix) for found in _validator.collect_violations(message)]
    if only is not None:
        wanted = [prefix + path for path in only]
        broken = [one for one in broken if any(_meet(one.field, path) for path in wanted)]
    if broken:
        raise RulesBroken(broken)


def _keeps_rules(request: RecallRequest) -> bool:
    """Whether a recall is known to keep all rules, by its lengths and its shape; False leaves it open."""
    vector = request.query_vector
    return (
        len(request.project) in _PROJECT
        and len(request.query_text) in _TEXT
        and len(request.session_id) in _SESSION
        and (
            not request.HasField("query_vector")
            or (len(vector.values) in _VECTOR_BYTES and len(vector.emb_space) in _SPACE)
        )
        and len(shape := shape_of(request)) <= LARGEST_KEPT_BYTES
        and _shape_keeps_rules(shape)
    )


@lru_cache(SHAPES_KEPT)
def _shape_keeps_rules(shape: bytes) -> bool:
    rest = RecallRequest.FromString(shape)
    rest.project = rest.query_text = "-"
    return not _validator.collect_violations(rest)


def shape_of(request: RecallRequest) -> bytes:
    """The request without its fields `PER_CALL`, as bytes that are equal for equal shapes."""
    rest = RecallRequest()
    rest.CopyFrom(request)
    for name in PER_CALL:
        rest.ClearField(name)
    return rest.SerializeToString(deterministic=True)


def placed(error: InvalidRequest, prefix: str) -> InvalidRequest:
    """The error with the place of a part of the request, with a dot at its end, before its fields."""
    if isinstance(error, RulesBroken):
        return RulesBroken([Violation(field=prefix + one.field, rule=one.rule) for one in error.violations])
    error.move_into(prefix)
    return error


def compile_rules(message_types: Iterable[type[Message]]) -> None:
    """Compile the rules of these messages at start, so that no call has to."""
    for message_type in message_types:
        _validator.collect_violations(message_type())


def _meet(field: str, path: str) -> bool:
    return field == path or field.startswith((path + ".", path + "[")) or path.startswith(field + ".")


def _translated(request: Message, found: protovalidate.Violation, prefix: str) -> Violation:
    elements: Sequence[object] = found.proto.field.elements if found.proto.field else ()
    path = ".".join(_element(element) for element in elements)
    choices = _choices(cast(Descriptor, request.DESCRIPTOR), [_name(element) for element in elements])
    if choices:
        return Violation(field=prefix + path, rule=f"is not said; set {' or '.join(choices)}")
    rule_id, message = str(found.proto.rule_id), str(found.proto.message)
    return Violation(field=prefix + path, rule=_in_words(rule_id, message, found.field_value))


def _choices(of: Descriptor, names: Sequence[str]) -> list[str]:
    """Names of the fields among which a oneof at the end of a path chooses; empty where the path ends in a field."""
    for name in names[:-1]:
        field = of.fields_by_name.get(name)
        if field is None or field.message_type is None:
            return []
        of = field.message_type
    oneof = of.oneofs_by_name.get(names[-1]) if names else None
    return [] if oneof is None else [field.name for field in oneof.fields]


def _element(element: object) -> str:
    subscript = getattr(element, "subscript", None)
    return _name(element) if subscript is None else f"{_name(element)}[{subscript.value}]"


def _name(element: object) -> str:
    return str(getattr(element, "field_name", ""))


def _in_words(rule_id: str, message: str, value: object) -> str:
    """The rule together with the number or size of the value, never a text of the caller's."""
    if rule_id in _PLAIN:
        return _PLAIN[rule_id]
    if rule_id == "enum.defined_only":
        return f"is {value}; the contract knows no such value"
    if isinstance(value, str | bytes) and not value:
        return "is empty; it is required"
    if isinstance(value, str):
        size = f"{len(value.encode())} bytes" if rule_id.endswith("_bytes") else f"{len(value)} characters"
        return f"has {size}; it {message}"
    if isinstance(value, bytes):
        return f"has {len(value)} bytes; it {message}"
    if isinstance(value, int | float):
        return f"is {value}; it {message}"
    return message


def bad_text_field(message_type: type[Message], data: bytes) -> str:
    """The path of the first field that holds a text which is not UTF-8; empty where there is none, or no telling."""
    try:
        return _first_bad(cast(Descriptor, message_type.DESCRIPTOR), data, 0)
    except DecodeError:
        return ""


def _first_bad(message_type: Descriptor, data: bytes, depth: int) -> str:
    if depth > _MOST_DEPTH:
        raise DecodeError
    counts: dict[str, int] = {}
    # To a message without fields all are unknown: with their numbers, in the order of the wire.
    for sent in cast(Iterable[Any], UnknownFieldSet(Empty.FromString(data))):
        field = message_type.fields_by_number.get(sent.field_number)
        if field is None or sent.wire_type != _LENGTH:
            continue
        place = counts[field.name] = counts.get(field.name, -1) + 1
        inner = _bad_in(field, sent.data, depth)
        if inner is not None:
            path = f"{field.name}[{place}]" if field.is_repeated else field.name
            return f"{path}.{inner}" if inner else path
    return ""


def _bad_in(field: FieldDescriptor, value: bytes, depth: int) -> str | None:
    """Find invalid UTF-8 in this field: "" for its own text, a path for a nested one, None for none."""
    if field.type == FieldDescriptor.TYPE_STRING:
        return None if _is_utf8(value) else ""
    if field.message_type is not None:
        return _first_bad(field.message_type, value, depth + 1) or None
    return None


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True
