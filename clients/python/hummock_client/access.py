"""Over what calls travel, and with which token: TLS, and what may be said in the clear."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import grpc

from hummock_client.channel import channel_options, is_local

TOKEN_VARIABLE = "HUMMOCK_TOKEN"  # noqa: S105 # a variable's name
TOKEN_FILE_VARIABLE = "HUMMOCK_TOKEN_FILE"  # noqa: S105 # a variable's name
TLS_VARIABLE = "HUMMOCK_TLS"
AUTHORITIES_VARIABLE = "HUMMOCK_TLS_CA"
CERTIFICATE_VARIABLE = "HUMMOCK_CLIENT_CERTIFICATE"
KEY_VARIABLE = "HUMMOCK_CLIENT_KEY"

_LARGEST_FILE_BYTES = 1 << 20

Metadata = tuple[tuple[str, str], ...]


class Certificate(NamedTuple):
    """A client's own certificate, with those between it and its authority, and its private key, both as PEM."""

    chain: bytes
    key: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Credentials and metadata of a client's calls.

    Attributes:
        credentials: TLS credentials; None means plaintext.
        metadata: Goes with every call; it may hold the token, and is never shown.
    """

    credentials: grpc.ChannelCredentials | None
    metadata: Metadata = field(default=(), repr=False)


def resolve_access(
    target: str,
    *,
    token: str | None = None,
    tls: bool = False,
    root_certificates: bytes | None = None,
    certificate: Certificate | None = None,
) -> Access:
    """The access that is asked for, to a resolved target.

    Args:
        target: What `resolve_target` gave.
        token: Sent as a bearer token. None means the environment's HUMMOCK_TOKEN, or what the file holds that
            HUMMOCK_TOKEN_FILE names, which its owner alone may read; empty means none at all.
        tls: Whether to speak TLS, and trust the authorities that gRPC brings with it.
        root_certificates: The authorities to trust instead, as PEM; it means TLS.
        certificate: The client's own, for a service that asks for one; it means TLS.

    Where nothing is said of TLS, the environment's HUMMOCK_TLS=1 asks for it; HUMMOCK_TLS_CA names a file of
    authorities, HUMMOCK_CLIENT_CERTIFICATE and HUMMOCK_CLIENT_KEY those of the client's own. Unix sockets are plain.

    Raises:
        ValueError: The token is none that a header can hold, or would be sent in the clear to another machine; a file
            cannot be read, or that of the token can be read by others.
    """
    if not (tls or root_certificates or certificate) and not target.startswith("unix:"):
        tls = os.environ.get(TLS_VARIABLE, "") not in ("", "0")
        root_certificates = _file_of(AUTHORITIES_VARIABLE)
        certificate = _own_certificate()
    secret = token if token is not None else _token()
    credentials = None
    if tls or root_certificates is not None or certificate is not None:
        chain, key = certificate or (None, None)
        credentials = grpc.ssl_channel_credentials(root_certificates, key, chain)
    if not secret:
        return Access(credentials=credentials)
    if not all("!" <= character <= "~" for character in secret):
        raise ValueError("the token has characters that no token has: white space, or others than ASCII")
    if credentials is None and not is_local(target):
        raise ValueError(
            f"a token is not sent to {target} in the clear; ask for TLS (tls=True or root_certificates, "
            f"{TLS_VARIABLE}=1 or {AUTHORITIES_VARIABLE})"
        )
    return Access(credentials=credentials, metadata=(("authorization", f"Bearer {secret}"),))


def open_channel(target: str, access: Access) -> grpc.Channel:
    """A channel to a resolved target, with which the token goes by itself, for stubs and others that know of none."""
    options = channel_options(target)
    channel = (
        grpc.secure_channel(target, access.credentials, options=options)
        if access.credentials
        else grpc.insecure_channel(target, options=options)
    )
    return grpc.intercept_channel(channel, _Sending(access.metadata)) if access.metadata else channel


class _Sending(
    grpc.UnaryUnaryClientInterceptor,
    grpc.UnaryStreamClientInterceptor,
    grpc.StreamUnaryClientInterceptor,
    grpc.StreamStreamClientInterceptor,
):
    """Sends metadata with every call."""

    def __init__(self, metadata: Metadata) -> None:
        self._metadata = metadata

    def _call(self, go_on: Callable[[Any, Any], Any], details: Any, request: Any) -> Any:
        return go_on(_Details(details, (*(details.metadata or ()), *self._metadata)), request)

    # All four shapes are one to it; the stubs know them apart.
    intercept_unary_unary = _call  # type: ignore[assignment] # one for all four
    intercept_unary_stream = _call  # type: ignore[assignment] # one for all four
    intercept_stream_unary = _call  # type: ignore[assignment] # one for all four
    intercept_stream_stream = _call  # type: ignore[assignment] # one for all four


class _Details(grpc.ClientCallDetails):
    """Details of a call, with other metadata."""

    def __init__(self, given: Any, metadata: Metadata) -> None:
        self.method = given.method
        self.timeout = given.timeout
        self.metadata = metadata
        self.credentials = given.credentials
        self.wait_for_ready = given.wait_for_ready
        self.compression = given.compression


def _token() -> str:
    """The token that the environment sets, or an empty string. Raises: ValueError."""
    if (said := os.environ.get(TOKEN_VARIABLE)) is not None:
        return said
    data = _file_of(TOKEN_FILE_VARIABLE, is_secret=True)
    # Editors end the file with a newline, and those of Windows begin it with a byte order mark.
    return "" if data is None else data.decode("utf-8-sig", errors="replace").strip()


def _own_certificate() -> Certificate | None:
    chain, key = _file_of(CERTIFICATE_VARIABLE), _file_of(KEY_VARIABLE)
    if chain is None and key is None:
        return None
    if chain is None or key is None:
        raise ValueError(f"{CERTIFICATE_VARIABLE} and {KEY_VARIABLE} go together")
    return Certificate(chain, key)


def _file_of(variable: str, *, is_secret: bool = False) -> bytes | None:
    """Content of the file that an environment variable names, or None if the variable is unset. Raises: ValueError."""
    named = os.environ.get(variable)
    if not named:
        return None
    path = Path(named).expanduser()
    try:
        with path.open("rb") as opened:
            # Modes of Windows do not say who may read.
            is_checked = is_secret and sys.platform != "win32"
            if is_checked and os.fstat(opened.fileno()).st_mode & (stat.S_IRWXG | stat.S_IRWXO):
                raise ValueError(f"{variable}: {path} can be read by others; chmod 600 {path}")
            return opened.read(_LARGEST_FILE_BYTES)
    except OSError as error:
        raise ValueError(f"{variable}: {path} cannot be read: {error.strerror}") from error
