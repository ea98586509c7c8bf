"""Metadata that no client of gRPC would send: it is the caller's fault, and no line of the log."""

from __future__ import annotations

import asyncio
import struct
from pathlib import Path

import pytest
import structlog

from hummock.access.authenticator import Authenticator, Exposure
from hummock.rpc.interceptor import AUTHORIZATION, OVER_HTTP, TRACE_KEYS, EndedCall, Interceptor
from hummock.rpc.server import Access
from tests.rpc.edge import edge
from tests.rpc.test_interceptor import token_of

pytestmark = pytest.mark.timed

_SETTINGS, _HEADERS, _DATA, _RST_STREAM, _GOAWAY = 4, 1, 0, 3, 7
_END_STREAM, _END_HEADERS, _ACK = 1, 4, 1
ODD_BYTES = (*range(0x20), 0x7F, 0x80, 0x85, 0xA0, 0xFF)


class Ended:
    """Notes the calls that have ended."""

    def __init__(self) -> None:
        self.outcomes: set[str] = set()

    def ended(self, call: EndedCall) -> None:
        self.outcomes.add(call.outcome)


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def literal(name: bytes, value: bytes) -> bytes:
    """A header field as HPACK writes it without a table and without Huffman's code; both below 127 bytes."""
    return b"\x00%c%s%c%s" % (len(name), name, len(value), value)


def call(name: str, value: bytes) -> bytes:
    """The bytes of a connection with one call of GetStatus."""
    fields = {
        b":method": b"POST", b":scheme": b"http", b":path": b"/hummock.v1.AdminService/GetStatus", b":authority": b"x",
        b"te": b"trailers", b"content-type": b"application/grpc", name.encode(): value,
    }  # fmt: skip
    block = b"".join(literal(*field) for field in fields.items())
    return b"".join(
        (
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            frame(_SETTINGS, 0, 0),
            frame(_HEADERS, _END_HEADERS, 1, block),
            frame(_DATA, _END_STREAM, 1, bytes(5)),
        )
    )


async def test_who_has_no_token_is_refused_before_a_message_of_his_comes(tmp_path: Path) -> None:
    """X11: up to 16 MiB of each call would be kept otherwise."""
    token_of(tmp_path, "shop:read")
    unfinished = call(AUTHORIZATION, b"Bearer x").removesuffix(frame(_DATA, _END_STREAM, 1, bytes(5)))
    async with edge(access=Access(interceptor=Interceptor(Authenticator(tmp_path, Exposure.MACHINE)))) as serving:
        port = serving.server.address.port  # type: ignore[union-attr] # it is TCP
        assert await ended(port, unfinished) == "trailers"


async def ended(port: int, sent: bytes) -> str:
    """End of the call: with trailers, or its stream or connection closed."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(sent)
        while True:
            head = await reader.readexactly(9)
            await reader.readexactly(int.from_bytes(head[:3], "big"))
            kind, flags = head[3], head[4]
            if kind == _HEADERS and flags & _END_STREAM:
                return "trailers"
            if kind in (_RST_STREAM, _GOAWAY):
                return "refused"
    except (asyncio.IncompleteReadError, ConnectionResetError):
        return "closed"
    finally:
        writer.close()


@pytest.mark.parametrize("name", [AUTHORIZATION, OVER_HTTP, *TRACE_KEYS, "x-of-nobody"])
@pytest.mark.parametrize("has_token", [True, False])
async def test_metadata_with_a_byte_that_none_has_is_the_callers_fault(
    tmp_path: Path, name: str, has_token: bool
) -> None:
    """This holds for metadata that is read, and for what is not."""
    if has_token:
        token_of(tmp_path, "shop:read")
    meter = Ended()
    interceptor = Interceptor(Authenticator(tmp_path, Exposure.MACHINE), meters=(meter,))
    interceptor.reads_traces = True
    with structlog.testing.capture_logs() as events:
        async with edge(access=Access(interceptor=interceptor)) as serving:
            port = serving.server.address.port  # type: ignore[union-attr] # it is TCP
            assert await ended(port, call(name, b"plain")) == "trailers"
            for byte in ODD_BYTES:
                assert await ended(port, call(name, b"a%cb" % byte)) in ("trailers", "refused", "closed")
            assert await ended(port, call(name, b"plain")) == "trailers"
    assert events == []
    assert meter.outcomes <= {"OK", "UNAUTHENTICATED", "CANCELLED"}
