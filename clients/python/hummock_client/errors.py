"""The one error that calls raise."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

import grpc
from google.protobuf.any_pb2 import Any
from google.protobuf.message import DecodeError, Message
from google.rpc import error_details_pb2, status_pb2

_DETAILS_KEY = "grpc-status-details-bin"
_HANDSHAKE = "handshake"
"""A word of gRPC's own messages about TLS; their other words change."""

_GIVEN_UP = {
    grpc.StatusCode.UNAVAILABLE.name: "the service cannot be reached: is `hummock serve` running? target {target}",
    grpc.StatusCode.DEADLINE_EXCEEDED.name: "the service did not answer in time; target {target}",
}
"""What is said where no service answered; the clients of all languages say the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldViolation:
    """A field of the request, by its path, and the rule that it breaks."""

    field: str
    rule: str


class HummockCallError(Exception):
    """A call failed.

    Attributes:
        code: The gRPC status code.
        reason: Stable, in upper case, for example "MEMORY_NOT_FOUND"; the code's name when the service gave none.
        message: For people.
        field_violations: Every field of the request that is wrong; empty when none is.
        metadata: The facts of the message by name.
        retry_after_s: Seconds after which a repeat may succeed; None when the service did not say.
    """

    def __init__(
        self,
        *,
        code: grpc.StatusCode,
        reason: str,
        message: str,
        field_violations: tuple[FieldViolation, ...] = (),
        metadata: Mapping[str, str] | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(f"{reason}: {message}")
        self.code = code
        self.reason = reason
        self.message = message
        self.field_violations = field_violations
        self.metadata = dict(metadata or {})
        self.retry_after_s = retry_after_s


class FailedCall(Protocol):
    """A failed call, as both gRPC APIs present it."""

    def code(self) -> grpc.StatusCode:
        """The status code."""

    def details(self) -> str | None:
        """The message."""

    def trailing_metadata(self) -> Iterable[tuple[str, str | bytes]] | None:
        """The metadata sent with the status."""


def describe(error: HummockCallError, target: str) -> str:
    """A message for people: what went wrong, and the fix if known; `target` is the address that was called."""
    # Without a reason of the service's own it was the channel that gave up.
    if error.reason == grpc.StatusCode.UNAVAILABLE.name and _HANDSHAKE in error.message.lower():
        return f"TLS was not agreed on: is the certificate valid, and its authority trusted? target {target}"
    if error.reason in _GIVEN_UP:
        return _GIVEN_UP[error.reason].format(target=target)
    if error.reason == grpc.StatusCode.CANCELLED.name:
        return f"more calls come than the service can read: try again in a second; target {target}"
    if error.code is grpc.StatusCode.UNIMPLEMENTED:
        return f"what listens there does not know this call: is it `hummock serve`, and as new? target {target}"
    broken = [f"{each.field}: {each.rule}" if each.field else each.rule for each in error.field_violations]
    return "; ".join(broken) or error.message or error.reason


def not_ready(target: str, timeout_s: float) -> HummockCallError:
    """The error for a service that was not ready in time."""
    return HummockCallError(
        code=grpc.StatusCode.UNAVAILABLE,
        reason="NOT_REACHED",
        message=f"no service was ready at {target} within {timeout_s:g} s; is `hummock serve` running?",
        metadata={"target": target},
    )


def call_error(failed: FailedCall, target: str) -> HummockCallError:
    """The error that tells what a failed call told; where no service did, it names the target and what to start."""
    code, message, details = failed.code(), failed.details() or "", list(_details(failed))
    if code is grpc.StatusCode.UNAVAILABLE and not details:
        message = _GIVEN_UP[code.name].format(target=target) + (f" ({message})" if message else "")
    elif code is grpc.StatusCode.DEADLINE_EXCEEDED and not details:
        message = _GIVEN_UP[code.name].format(target=target)
    return _error(code, message, details)


def status_error(status: status_pb2.Status) -> HummockCallError:
    """The error that tells what a status inside a reply tells."""
    code = next((code for code in grpc.StatusCode if code.value[0] == status.code), grpc.StatusCode.UNKNOWN)
    return _error(code, status.message, status.details)


def _error(code: grpc.StatusCode, message: str, details: Iterable[Any]) -> HummockCallError:
    info, violations, retry_after_s = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest(), None
    retry = error_details_pb2.RetryInfo()
    for detail in details:
        _unpacked(detail, info)
        _unpacked(detail, violations)
        if _unpacked(detail, retry):
            retry_after_s = retry.retry_delay.ToNanoseconds() / 1e9
    return HummockCallError(
        code=code,
        reason=info.reason or code.name,
        message=message,
        field_violations=tuple(
            FieldViolation(field=broken.field, rule=broken.description) for broken in violations.field_violations
        ),
        metadata=info.metadata,
        retry_after_s=retry_after_s,
    )


def _unpacked(detail: Any, into: Message) -> bool:
    """Unpacks the detail into the message if its type fits; an unreadable detail counts as another type."""
    try:
        return detail.Unpack(into)
    except DecodeError:
        into.Clear()
        return False


def _details(failed: FailedCall) -> Iterable[Any]:
    for key, value in failed.trailing_metadata() or ():
        if key == _DETAILS_KEY and isinstance(value, bytes):
            try:
                return list(status_pb2.Status.FromString(value).details)
            except DecodeError:
                return ()
    return ()
