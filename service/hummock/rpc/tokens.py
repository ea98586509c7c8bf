"""Tokens that the client keeps: the end of a page, and the state of the turns so far."""

from __future__ import annotations

import math
from collections.abc import Iterable
from hashlib import blake2b

import msgspec
from google.protobuf.message import Message

from hummock.core.errors import InvalidRequest
from hummock.core.memory import MAX_ID_BYTES
from hummock.core.render import MAX_PREFIX_MEMORIES, PrefixState

_DIGEST_CHARACTERS = 32
_MAX_NUMBER = (1 << 63) - 1
_VERSION = b"\x01"
_DIGEST_BYTES = 8
_TURNS_END = 1 << 31
# Sums over turns of up to a million tokens each, which a float holds exactly.
_TOKENS_END = 1 << 53
_decoder = msgspec.msgpack.Decoder(PrefixState)
_encoder = msgspec.msgpack.Encoder()


def page_token(request: Message, position: str | int | None) -> str:
    """The token of the page that begins after a position, a name or a number from 1; empty if there is none."""
    return _request_digest(request, str(position)) + str(position) if position else ""


def page_position(request: Message, token: str) -> str:
    """Return the position after which the token's page begins; "" is the beginning.

    Raises:
        InvalidRequest: The token belongs to a request with other fields.
    """
    if not token:
        return ""
    digest, position = token[:_DIGEST_CHARACTERS], token[_DIGEST_CHARACTERS:]
    if not position or digest != _request_digest(request, position):
        raise InvalidRequest("page_token", "does not belong to this request; the other fields must stay the same")
    return position


def page_number(request: Message, token: str) -> int | None:
    """Return the position of a page, a number from 1; None is the beginning.

    Raises: InvalidRequest, also for a token that was made up.
    """
    position = page_position(request, token)
    if not position:
        return None
    if not (position.isascii() and position.isdigit() and 0 < int(position) <= _MAX_NUMBER):
        raise InvalidRequest("page_token", "is not one that was answered")
    return int(position)


def prefix_token(project: str, state: PrefixState) -> bytes:
    """The token that holds this state, bound to the project."""
    body = _VERSION + _encoder.encode(state)
    return _prefix_digest(project, body) + body


def prefix_state(project: str, token: bytes) -> PrefixState | None:
    """The state that a token of this project holds; None for the empty token.

    Raises:
        InvalidRequest: It is no token, one of another project or of another version of the service, or holds a number
            that no Render writes.
    """
    if not token:
        return None
    digest, body = token[:_DIGEST_BYTES], token[_DIGEST_BYTES:]
    if digest != _prefix_digest(project, body) or not body.startswith(_VERSION):
        raise InvalidRequest("prefix_token", "is not one that this project's Render answered with; leave it out")
    try:
        state = _decoder.decode(body.removeprefix(_VERSION))
    except msgspec.MsgspecError as error:
        raise InvalidRequest("prefix_token", "cannot be read; leave it out") from error
    _check(state)
    return state


def _request_digest(request: Message, position: str) -> str:
    bound = type(request)()
    bound.CopyFrom(request)
    bound.ClearField("page_token")
    bound.ClearField("page_size")
    hashed = blake2b(bound.SerializeToString(deterministic=True), digest_size=_DIGEST_CHARACTERS // 2)
    hashed.update(request.DESCRIPTOR.full_name.encode() + b"\0" + position.encode())
    return hashed.hexdigest()


def _prefix_digest(project: str, body: bytes) -> bytes:
    # A key has at most 64 bytes, and names may be longer.
    key = blake2b(project.encode()).digest()
    return blake2b(body, digest_size=_DIGEST_BYTES, person=b"hummock-prefix", key=key).digest()


def _check(state: PrefixState) -> None:
    # The digest guards against mistakes, not forgery: anyone who knows the project's name can compute it.
    ids = {"prefix_ids": state.prefix_ids, "seen": tuple(one.memory_id for one in state.seen)}
    for field, memory_ids in ids.items():
        if len(memory_ids) > MAX_PREFIX_MEMORIES:
            raise _refused(field, f"holds {len(memory_ids)} memories; the limit is {MAX_PREFIX_MEMORIES}")
        if (most := max((len(one.encode()) for one in memory_ids), default=0)) > MAX_ID_BYTES:
            raise _refused(field, f"holds an id of {most} bytes; the limit is {MAX_ID_BYTES}")
    _check_numbers("turn", (state.turn, state.base_turn), _TURNS_END)
    _check_numbers("seen", (number for one in state.seen for number in (one.turns, one.last_turn)), _TURNS_END)
    _check_numbers("all_tokens", (state.prefix_tokens, state.all_tokens), _TOKENS_END)
    if not math.isfinite(state.as_of):
        raise _refused("as_of", f"is {state.as_of}, which is no time")


def _check_numbers(field: str, numbers: Iterable[int], end: int) -> None:
    for number in numbers:
        if not 0 <= number < end:
            raise _refused(field, f"holds {number}; it must be 0 to {end - 1}")


def _refused(field: str, why: str) -> InvalidRequest:
    return InvalidRequest(f"prefix_token.{field}", f"{why}; leave the token out")
