"""Over what calls travel, and with which token: TLS, and what may be said in the clear."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

import grpc

from hummock_client.channel import is_local

TOKEN_VARIABLE = "HUMMOCK_TOKEN"  # noqa: S105 # a variable's name

Metadata = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """How a client may call.

    Attributes:
        credentials: Of TLS; None means plaintext.
        metadata: Goes with every call; it may hold the token, and is never shown.
    """

    credentials: grpc.ChannelCredentials | None
    metadata: Metadata = field(default=(), repr=False)


def resolve_access(target: str, *, token: str | None, tls: bool, root_certificates: bytes | None) -> Access:
    """The access that is asked for, to a resolved target.

    Args:
        target: What `resolve_target` gave.
        token: Sent as a bearer token. None means the environment's HUMMOCK_TOKEN; empty means none at all.
        tls: Whether to speak TLS, and trust the authorities that gRPC brings with it.
        root_certificates: The authorities to trust instead, as PEM; it means TLS.

    Raises:
        ValueError: The token is none that a header can hold, or would be sent in the clear to another machine.
    """
    secret = token if token is not None else os.environ.get(TOKEN_VARIABLE, "")
    secure = tls or root_certificates is not None
    credentials = grpc.ssl_channel_credentials(root_certificates=root_certificates) if secure else None
    if not secret:
        return Access(credentials=credentials)
    if not all("!" <= character <= "~" for character in secret):
        raise ValueError("the token has characters that no token has: white space, or others than ASCII")
    if credentials is None and not is_local(target):
        raise ValueError(f"a token is not sent to {target} in the clear; ask for TLS (tls=True or root_certificates)")
    return Access(credentials=credentials, metadata=(("authorization", f"Bearer {secret}"),))
