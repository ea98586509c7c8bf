"""TLS: a certificate and its key from files, which may be replaced while the service runs."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

import grpc
import structlog

from hummock.core.errors import StartError

_log = structlog.get_logger("hummock.rpc")

_Stamp = tuple[tuple[int, int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsFiles:
    """Paths of the files, all of them PEM.

    Attributes:
        certificate: The service's certificate chain.
        key: Its private key, without a password.
        client_ca: Authorities that sign client certificates; None requires none.
    """

    certificate: Path
    key: Path
    client_ca: Path | None = None

    @property
    def all(self) -> tuple[Path, ...]:
        """The files that are configured."""
        return (self.certificate, self.key) if self.client_ca is None else (self.certificate, self.key, self.client_ca)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Loaded:
    """Contents of the files: checked, and fitting together."""

    stamp: _Stamp
    certificate: bytes
    key: bytes
    client_ca: bytes | None
    context: ssl.SSLContext


class Tls:
    """The current contents of the files. Each new connection checks whether they were replaced.

    Files that do not fit together, as in the middle of a replacement, are logged, and the last valid ones stay in use.
    """

    def __init__(self, files: TlsFiles) -> None:
        """Reads the files. Raises: StartError."""
        self._files = files
        self._lock = Lock()
        self._loaded = _load(files)
        self._refused: _Stamp = ()

    def for_grpc(self) -> grpc.ServerCredentials:
        """Credentials of a gRPC server."""
        given = self._loaded

        def replacement() -> grpc.ServerCertificateConfiguration | None:
            nonlocal given
            now = self._now()
            if now is given:
                return None
            given = now
            return _configuration(now)

        # None, which says that nothing changed, is missing from the stubs.
        fetch: Callable[[], Any] = replacement
        return grpc.dynamic_ssl_server_credentials(
            _configuration(given), fetch, require_client_authentication=self._files.client_ca is not None
        )

    def for_http(self) -> ssl.SSLContext:
        """TLS context for a server that uses Python's `ssl`; it takes new certificates without a restart."""
        context = _load(self._files).context

        def replace(connection: ssl.SSLObject | ssl.SSLSocket, name: str | None, of: ssl.SSLContext) -> None:
            # Called at each beginning of a handshake, with a name or without.
            connection.context = self._now().context

        context.sni_callback = replace
        return context

    def _now(self) -> _Loaded:
        with self._lock:
            try:
                stamp = _stamp(self._files)
                if stamp not in (self._loaded.stamp, self._refused):
                    self._refused = stamp
                    self._loaded = _load(self._files)
                    _log.info("tls_files_read_again")
            except (OSError, StartError) as error:
                _log.error("tls_files_refused", problem=str(error))
            return self._loaded


def _load(files: TlsFiles) -> _Loaded:
    """Read and check the files. Raises: StartError."""
    try:
        stamp = _stamp(files)
        certificate, key, *client_ca = [path.read_bytes() for path in files.all]
        context = _context(files)
        if stamp != _stamp(files):
            raise StartError(f"{files.certificate} was replaced while it was read")
    except OSError as error:
        raise StartError(f"{error.filename} cannot be read: {error.strerror}") from error
    return _Loaded(
        stamp=stamp, certificate=certificate, key=key, client_ca=client_ca[0] if client_ca else None, context=context
    )


def _context(files: TlsFiles) -> ssl.SSLContext:
    """Python's own, of files that were read already. Raises: StartError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        # Without a password it would ask for one on the terminal.
        context.load_cert_chain(files.certificate, files.key, password=lambda: b"")
    except ssl.SSLError as error:
        raise StartError(
            f"tls_certificate {files.certificate} and tls_key {files.key} are no certificate and its key as PEM, "
            f"without a password: {error.reason or error}"
        ) from error
    if files.client_ca is not None:
        try:
            context.load_verify_locations(files.client_ca)
        except ssl.SSLError as error:
            raise StartError(f"tls_client_ca {files.client_ca} holds no certificate as PEM") from error
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def _configuration(loaded: _Loaded) -> grpc.ServerCertificateConfiguration:
    return grpc.ssl_server_certificate_configuration(
        [(loaded.key, loaded.certificate)], root_certificates=loaded.client_ca
    )


def _stamp(files: TlsFiles) -> _Stamp:
    """Differs whenever one of them is another one. Raises: OSError."""
    found = [path.stat() for path in files.all]
    return tuple((each.st_ino, each.st_mtime_ns, each.st_size) for each in found)
