"""Page tokens: where a page ended, bound to the request that it belongs to."""

from __future__ import annotations

from hashlib import blake2b

from google.protobuf.message import Message

from hummock.core.errors import InvalidRequest

_DIGEST_CHARACTERS = 32
_MAX_NUMBER = (1 << 63) - 1


def page_token(request: Message, position: str) -> str:
    """The token of the page that begins behind `position`."""
    return _digest(request, position) + position


def page_position(request: Message, token: str) -> str:
    """Where the page begins that this token of the request asks for; "" is the beginning.

    Raises:
        InvalidRequest: The token is not one that a request with the same other fields was answered with.
    """
    if not token:
        return ""
    digest, position = token[:_DIGEST_CHARACTERS], token[_DIGEST_CHARACTERS:]
    if not position or digest != _digest(request, position):
        raise InvalidRequest("page_token", "does not belong to this request; the other fields must stay the same")
    return position


def page_number(request: Message, token: str) -> int | None:
    """The position where pages are told apart by numbers from 1 on; None is the beginning.

    Raises: InvalidRequest, also where somebody has made a token of something else.
    """
    position = page_position(request, token)
    if not position:
        return None
    if not (position.isascii() and position.isdigit() and 0 < int(position) <= _MAX_NUMBER):
        raise InvalidRequest("page_token", "is not one that was answered")
    return int(position)


def _digest(request: Message, position: str) -> str:
    bound = type(request)()
    bound.CopyFrom(request)
    bound.ClearField("page_token")
    bound.ClearField("page_size")
    hashed = blake2b(bound.SerializeToString(deterministic=True), digest_size=_DIGEST_CHARACTERS // 2)
    hashed.update(request.DESCRIPTOR.full_name.encode() + b"\0" + position.encode())
    return hashed.hexdigest()
