"""The project that a request's bytes name, and the caller on its connection."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Protocol

from google.protobuf.message import Message

PEER = "hummock-peer"
"""Metadata key by which a process that shares the service's port names the peer of a forwarded call."""

_MOST_FIELDS = 64
_LENGTHS = {1: 8, 5: 4}
_STRING = 2


class CallContext(Protocol):
    """The part of a call's context that identifies its peer."""

    def peer(self) -> str:
        """GRPC's name of the other end."""

    def invocation_metadata(self) -> Any:
        """The metadata that the caller sent with the request."""


def caller_of(context: CallContext) -> str:
    """The caller's identity: the address of another machine, or the connection of a local process.

    All local processes have one address, and the calls of a script are not to slow down an editor.
    """
    peer = context.peer()
    if peer.startswith("unix:"):
        # Only this user reaches such a socket; what comes by it may be handed on for others.
        sent = dict(context.invocation_metadata() or ())
        peer = str(sent.get(PEER, peer))
    kind, _, address = peer.partition(":")
    host, _, _ = address.rpartition(":")
    is_here = kind == "unix" or host.startswith("127.") or host.strip("[]") in {"::1", "%5B::1%5D"}
    return peer if is_here or not host else host


class ProjectName:
    """Finds the project in the bytes of a request, before they are parsed; empty for bytes that are no such request.

    A wrong answer is harmless: it only chooses the queue in which a call waits.
    """

    def __init__(self, request_type: type[Message]) -> None:
        """Prepare for requests of this type, which name the project in a field of their own or of a submessage."""
        self._paths = _paths(request_type.DESCRIPTOR)

    def __call__(self, data: bytes) -> str:
        """The project's name; empty if there is none."""
        found: bytes | None = data
        for numbers in self._paths:
            found = None if found is None else _field(found, numbers)
        return (found or b"").decode(errors="replace") if self._paths else ""


def _paths(request_type: Any) -> list[frozenset[int]]:
    """The numbers of the fields that lead to the project, by the descriptor of a request."""
    if "project" in request_type.fields_by_name:
        return [frozenset({request_type.fields_by_name["project"].number})]
    parts = [one for one in request_type.fields if one.message_type and "project" in one.message_type.fields_by_name]
    if not parts:
        return []
    names = {one.message_type.fields_by_name["project"].number for one in parts}
    return [frozenset(one.number for one in parts), frozenset(names)]


def _field(data: bytes, numbers: Collection[int]) -> bytes | None:
    """The first of these fields that has a length. Source: the wire format in the documentation of Protocol Buffers."""
    at = 0
    for _ in range(_MOST_FIELDS):
        key, at = _varint(data, at)
        kind = key & 7
        if kind == _STRING:
            length, at = _varint(data, at)
            if key >> 3 in numbers:
                return data[at : at + length]
            at += length
        elif kind == 0:
            _, at = _varint(data, at)
        elif kind in _LENGTHS:
            at += _LENGTHS[kind]
        else:
            return None
        if at >= len(data):
            return None
    return None


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A varint and the offset of its end; 0 beyond the end of the bytes."""
    value = shift = 0
    while at < len(data) and shift < 64:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    return value, at
