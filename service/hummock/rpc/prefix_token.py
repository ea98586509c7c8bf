"""Prefix tokens: what the turns so far have left behind, in the caller's keeping."""

from __future__ import annotations

from hashlib import blake2b

import msgspec

from hummock.core.errors import InvalidRequest
from hummock.core.render import PrefixState

_VERSION = b"\x01"
_DIGEST_BYTES = 8
_decoder = msgspec.msgpack.Decoder(PrefixState)
_encoder = msgspec.msgpack.Encoder()


def prefix_token(project: str, state: PrefixState) -> bytes:
    """The token that holds this state, bound to the project."""
    body = _VERSION + _encoder.encode(state)
    return _digest(project, body) + body


def prefix_state(project: str, token: bytes) -> PrefixState | None:
    """The state that a token of this project holds; None for the empty token.

    Raises:
        InvalidRequest: It is no token, one of another project, or one of another version of the service.
    """
    if not token:
        return None
    digest, body = token[:_DIGEST_BYTES], token[_DIGEST_BYTES:]
    if digest != _digest(project, body) or not body.startswith(_VERSION):
        raise InvalidRequest("prefix_token", "is not one that this project's Render answered with; leave it out")
    try:
        return _decoder.decode(body.removeprefix(_VERSION))
    except msgspec.MsgspecError as error:
        raise InvalidRequest("prefix_token", "cannot be read; leave it out") from error


def _digest(project: str, body: bytes) -> bytes:
    return blake2b(body, digest_size=_DIGEST_BYTES, person=b"hummock-prefix", key=project.encode()[:64]).digest()
