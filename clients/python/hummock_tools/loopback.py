"""Listens only on loopback, for servers without authentication."""

from __future__ import annotations

import ipaddress
import socket
from typing import Final

_BACKLOG: Final = 128


class NotLoopback(ValueError):
    """Other machines can reach the address."""


def listen(host: str, port: int) -> socket.socket:
    """Open a listening socket; port 0 takes a free one.

    Raises:
        NotLoopback: Other machines could call, and nothing would ask them who they are.
        OSError: The port is taken.
    """
    address = _loopback(host, port)
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return socket.create_server((address, port), family=family, backlog=_BACKLOG)


def url_of(listener: socket.socket) -> str:
    """URL that clients connect to, without a path."""
    host, port = listener.getsockname()[:2]
    return f"http://{_in_url(host)}:{port}"


def names_of(listener: socket.socket) -> tuple[str, ...]:
    """Valid Host values of a request: they tell it from a page whose own name resolves to this machine."""
    host, port = listener.getsockname()[:2]
    return tuple(sorted({f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]", _in_url(host))}))


def _loopback(host: str, port: int) -> str:
    if host == "localhost":
        return "127.0.0.1"
    try:
        is_loopback = ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_loopback = False
    if not is_loopback:
        raise NotLoopback(
            f"{host} can be reached by other machines, and this server asks nobody who they are: what it may do, all "
            "could do through it. Listen on 127.0.0.1, and let other machines in through what checks who "
            f"they are, for example ssh -L {port}:127.0.0.1:{port}"
        )
    return host


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host
