"""Maps errors to statuses: one table, with the details of google.rpc."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

import grpc
import structlog
from google.protobuf import any_pb2, duration_pb2
from google.protobuf.message import Message
from google.rpc import error_details_pb2, status_pb2
from grpc_status import rpc_status

from hummock.core.access import ScopeMissing, TokenInvalid
from hummock.core.errors import (
    AlreadyExists,
    DataLoss,
    DeadlinePassed,
    Exhausted,
    HummockError,
    InvalidRequest,
    NotFound,
    NotReady,
    Overloaded,
    Unavailable,
    WrongState,
    places_of,
)
from hummock.rpc.validation import RulesBroken, Violation

MAX_REPLY_BYTES = 4 * 1024 * 1024
"""Largest reply that gRPC clients accept by default."""

LARGEST_REPLY_BYTES = 16 * 1024 * 1024
"""Largest reply that a request may allow by its max_reply_bytes."""

DOMAIN = "hummock.dev"
_RETRY_S = 1.0

# Trailers are refused by clients above 8 KiB, and a character of Chinese takes 9 bytes in the message's header.
_MESSAGE_BYTES = 600
_VALUE_BYTES = 256
_VIOLATIONS_BYTES = 2048

_CODES: tuple[tuple[type[HummockError], grpc.StatusCode], ...] = (
    (AlreadyExists, grpc.StatusCode.ALREADY_EXISTS),
    (WrongState, grpc.StatusCode.FAILED_PRECONDITION),
    (InvalidRequest, grpc.StatusCode.INVALID_ARGUMENT),
    (NotFound, grpc.StatusCode.NOT_FOUND),
    (NotReady, grpc.StatusCode.FAILED_PRECONDITION),
    (Exhausted, grpc.StatusCode.RESOURCE_EXHAUSTED),
    (Unavailable, grpc.StatusCode.UNAVAILABLE),
    (DataLoss, grpc.StatusCode.DATA_LOSS),
    (DeadlinePassed, grpc.StatusCode.DEADLINE_EXCEEDED),
    (TokenInvalid, grpc.StatusCode.UNAUTHENTICATED),
    (ScopeMissing, grpc.StatusCode.PERMISSION_DENIED),
)

_log = structlog.get_logger("hummock.rpc")


class InternalError(HummockError):
    """An unexpected failure; the service's log has more under the error_id."""

    def __init__(self, error_id: str) -> None:
        super().__init__(f"something went wrong inside the service; its log tells more under error_id {error_id}")
        self.error_id = error_id


class ReplyTooLarge(Exhausted):
    """The reply is larger than a message may be."""

    reason = "REPLY_TOO_LARGE"

    def __init__(self, size_bytes: int, limit_bytes: int) -> None:
        super().__init__(
            f"the reply has {size_bytes} bytes; the limit is {limit_bytes}; ask for fewer memories or the INDEX view"
        )
        self.size_bytes = size_bytes
        self.limit_bytes = limit_bytes


@dataclass(frozen=True, slots=True)
class Spliced:
    """A reply in two parts: the bytes of some of its fields, and a message with the others."""

    head: bytes | bytearray
    rest: Message


def to_bytes(reply: Message | Spliced, max_bytes: int = 0) -> bytes:
    """Serialize a reply of at most `max_bytes`; 0 means MAX_REPLY_BYTES. Raises: ReplyTooLarge."""
    rest = reply.rest if isinstance(reply, Spliced) else reply
    data = rest.SerializeToString()
    if isinstance(reply, Spliced):
        data = b"".join((reply.head, data))
    limit_bytes = max_bytes or MAX_REPLY_BYTES
    if len(data) > limit_bytes:
        raise ReplyTooLarge(len(data), limit_bytes)
    return data


def known(error: Exception, method: str) -> HummockError:
    """The error itself if it was raised on purpose; any other is logged here, once, and becomes an InternalError.

    The log has the type and the places in the code, and nothing that could hold a caller's text.
    """
    if isinstance(error, HummockError) and _code_of(error) is not grpc.StatusCode.INTERNAL:
        return error
    internal = InternalError(uuid.uuid4().hex)
    _log.error(
        "call_failed",
        method=method,
        error_id=internal.error_id,
        error=type(error).__qualname__,
        places=places_of(error),
    )
    return internal


def to_proto(error: HummockError) -> status_pb2.Status:
    """The error as google.rpc.Status: ErrorInfo always; BadRequest and RetryInfo where they apply."""
    status = status_pb2.Status(code=int(_code_of(error).value[0]), message=_cut(str(error), _MESSAGE_BYTES))
    info = {name: _cut(value, _VALUE_BYTES) for name, value in error.metadata.items()}
    _add(status, error_details_pb2.ErrorInfo(reason=error.reason, domain=DOMAIN, metadata=info))
    if isinstance(error, InvalidRequest):
        _add(status, _bad_request(violations_of(error)))
    retry_after_s = _retry_after_s(error)
    if retry_after_s is not None:
        delay = duration_pb2.Duration()
        delay.FromNanoseconds(round(retry_after_s * 1e9))
        _add(status, error_details_pb2.RetryInfo(retry_delay=delay))
    return status


def to_grpc(error: HummockError) -> grpc.Status:
    """The error as the status that ends a call."""
    status: grpc.Status = rpc_status.to_status(to_proto(error))
    return status


def violations_of(error: InvalidRequest) -> Sequence[Violation]:
    """Every field that is wrong; a rule of the whole request has an empty field."""
    return error.violations if isinstance(error, RulesBroken) else (Violation(field=error.field, rule=error.rule),)


def _code_of(error: HummockError) -> grpc.StatusCode:
    return next((code for base, code in _CODES if isinstance(error, base)), grpc.StatusCode.INTERNAL)


def _retry_after_s(error: HummockError) -> float | None:
    if isinstance(error, Overloaded):
        return error.retry_after_s
    return _RETRY_S if isinstance(error, Unavailable | TokenInvalid) else None


def _bad_request(violations: Sequence[Violation]) -> error_details_pb2.BadRequest:
    details = error_details_pb2.BadRequest()
    for index, broken in enumerate(violations):
        if details.ByteSize() > _VIOLATIONS_BYTES:
            details.field_violations.add(description=f"and {len(violations) - index} more")
            break
        details.field_violations.add(
            field=_cut(broken.field, _VALUE_BYTES), description=_cut(broken.rule, _VALUE_BYTES)
        )
    return details


def _add(status: status_pb2.Status, detail: Message) -> None:
    packed = any_pb2.Any()
    packed.Pack(detail)
    status.details.append(packed)


def _cut(text: str, limit_bytes: int) -> str:
    encoded = text.encode(errors="replace")
    return text if len(encoded) <= limit_bytes else encoded[: limit_bytes - 3].decode(errors="ignore") + "…"
