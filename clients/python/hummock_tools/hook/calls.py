"""Calls of the service as JSON over HTTP.

By a socket: importing http.client would take longer than a call does.
"""

from __future__ import annotations

import json
import os
import socket
import time

TYPE_CHECKING = False  # importing typing would take a tenth of the program's time
if TYPE_CHECKING:
    from typing import Any

_DEFAULT_PORT = 7422
_LARGEST_REPLY = 16 << 20
_LOCAL = ("127.0.0.1", "localhost", "[::1]")


class CallFailed(Exception):
    """A call that failed; `reason` and `code` are the contract's words, and quote nothing of what was said."""

    def __init__(self, reason: str, code: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.code = code


class BadTarget(Exception):
    """HUMMOCK_TARGET, HUMMOCK_HTTP_PORT or HUMMOCK_TOKEN cannot be used."""


class Service:
    """The service on this machine, as HUMMOCK_HTTP_PORT and HUMMOCK_TOKEN name it."""

    def __init__(self) -> None:
        """Reads the environment. Raises: BadTarget."""
        target = os.environ.get("HUMMOCK_TARGET", "")
        host = target.rpartition(":")[0] if ":" in target and not target.endswith("]") else target
        port = os.environ.get("HUMMOCK_HTTP_PORT", "") or str(_DEFAULT_PORT)
        self._token = os.environ.get("HUMMOCK_TOKEN", "")
        # What is said here must not be stored there.
        is_local = not target or target.startswith("unix:") or host in _LOCAL
        if not is_local or not port.isdecimal() or not 0 < int(port) < 1 << 16:
            raise BadTarget
        if any(not "!" <= character <= "~" for character in self._token):
            raise BadTarget
        self._port = int(port)

    def call(self, method: str, request: dict[str, Any], ends_s: float) -> dict[str, Any]:
        """The reply to a request, by `SERVICE/METHOD`; `ends_s` is on the monotonic clock. Raises: CallFailed."""
        return self.send(method, request, ends_s).reply()

    def send(self, method: str, request: dict[str, Any], ends_s: float) -> Call:
        """Sends a request without waiting for the reply. Raises: CallFailed."""
        body = json.dumps(request).encode()
        left_ms = max(1, int((ends_s - time.monotonic()) * 1000))
        lines = [
            f"POST /hummock.v1.{method} HTTP/1.1",
            f"Host: 127.0.0.1:{self._port}",
            "Content-Type: application/json",
            f"Content-Length: {len(body)}",
            f"Connect-Timeout-Ms: {left_ms}",
            "Connection: close",
            *([f"Authorization: Bearer {self._token}"] if self._token else []),
        ]
        call = Call(ends_s)
        call.begin(self._port, "\r\n".join(lines).encode() + b"\r\n\r\n" + body)
        return call


class Call:
    """A request that was sent."""

    def __init__(self, ends_s: float) -> None:
        self._ends_s = ends_s
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)

    def begin(self, port: int, sent: bytes) -> None:
        """Raises: CallFailed."""
        try:
            self._wait()
            self._socket.connect(("127.0.0.1", port))
            self._socket.sendall(sent)
        except OSError as error:
            raise self._failed(error) from error

    def reply(self) -> dict[str, Any]:
        """Waits for the reply. Raises: CallFailed."""
        received = b""
        try:
            while len(received) <= _LARGEST_REPLY:
                head, is_whole, body = received.partition(b"\r\n\r\n")
                if is_whole and len(body) >= _length_of(head):
                    return _read(head, body)
                self._wait()
                more = self._socket.recv(1 << 16)
                if not more:
                    break
                received += more
        except OSError as error:
            raise self._failed(error) from error
        finally:
            self._socket.close()
        raise CallFailed("UNAVAILABLE", "unavailable")

    def _wait(self) -> None:
        left_s = self._ends_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        self._socket.settimeout(left_s)

    def _failed(self, error: OSError) -> CallFailed:
        self._socket.close()
        if isinstance(error, TimeoutError):
            return CallFailed("DEADLINE_EXCEEDED", "deadline_exceeded")
        return CallFailed("UNAVAILABLE", "unavailable")


def _length_of(head: bytes) -> int:
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length" and value.strip().isdigit():
            return int(value)
    return 0


def _read(head: bytes, body: bytes) -> dict[str, Any]:
    """The reply as the Connect protocol has it. Raises: CallFailed."""
    try:
        reply = json.loads(body)
    except (ValueError, RecursionError):
        reply = None
    if not isinstance(reply, dict):
        raise CallFailed("UNKNOWN", "unknown")
    if head.split(b" ", 2)[1:2] == [b"200"]:
        return reply
    code = str(reply.get("code", "unknown"))
    reasons = [each.get("debug", {}).get("reason") for each in reply.get("details", [])]
    raise CallFailed(next((str(each) for each in reasons if each), code.upper()), code)
