"""Where the service is."""

from __future__ import annotations

import ipaddress
import os

DEFAULT_TARGET = "127.0.0.1:7420"
DEFAULT_PORT = 7420
TARGET_VARIABLE = "HUMMOCK_TARGET"


def resolve_target(target: str | None = None) -> str:
    """The target as gRPC writes it.

    Args:
        target: `host`, `host:port`, `[ipv6]:port`, `unix:path` or `unix:///path`. None means the environment's
            HUMMOCK_TARGET, and without it 127.0.0.1:7420.

    Raises:
        ValueError: It is none of these.
    """
    text = target if target is not None else os.environ.get(TARGET_VARIABLE) or DEFAULT_TARGET
    if text.startswith("unix:"):
        path = text.removeprefix("unix:").removeprefix("//")
        if not path:
            raise ValueError(f"{text} names no socket; write unix:///path/to/hummock.sock")
        return f"unix:{path}"
    host, port = _host_and_port(text)
    if not host or not (port.isascii() and port.isdecimal() and 0 < int(port) <= 65535):
        raise ValueError(f"{text} is no target; write host:port, for example {DEFAULT_TARGET}, or unix:///path")
    return f"{host}:{port}"


def is_local(target: str) -> bool:
    """Whether a resolved target is on this machine."""
    host = target.rpartition(":")[0].strip("[]")
    if target.startswith("unix:") or host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _host_and_port(text: str) -> tuple[str, str]:
    if text.endswith("]") or ":" not in text:
        return text, str(DEFAULT_PORT)
    host, _, port = text.rpartition(":")
    return ("" if ":" in host and not host.startswith("[") else host), port
