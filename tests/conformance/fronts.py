"""Servers before the real one, each of which does one thing wrong. Messages pass as bytes, whatever they are."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass, field

import grpc
import grpc.aio
from google.protobuf.any_pb2 import Any
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.rpc import error_details_pb2, status_pb2
from grpc_status import rpc_status

from hummock_client.v1 import context_service_pb2, recall_pb2

RECALL = "/hummock.v1.ContextService/Recall"
RENDER = "/hummock.v1.ContextService/Render"
SLOW_S = 2.0
_REFUSED = 2
_UNKNOWN_VALUE = 99
"""Enum value that no client knows, as a later version may add."""
_UNKNOWN_FIELD = b"\xba\xbb\x01\x05later"
"""Field 2999, a string."""
_UNKNOWN_REASON = "OF_A_LATER_VERSION"
_UNKNOWN_DETAIL = Any(type_url="type.googleapis.com/hummock.v2.Later", value=_UNKNOWN_FIELD)
_DETAILS_KEY = "grpc-status-details-bin"
_LARGEST = 16 << 20

Context = grpc.aio.ServicerContext[bytes, bytes]
Change = Callable[[str, bytes], bytes]


def as_before(method: str, reply: bytes) -> bytes:
    """A reply as a version would give it that knows no receipts, and writes sections without the prompt around them."""
    if method == RECALL:
        recalled = recall_pb2.RecallResponse.FromString(reply)
        recalled.ClearField("receipt")
        return recalled.SerializeToString()
    if method == RENDER:
        rendered = context_service_pb2.RenderResponse.FromString(reply)
        rendered.ClearField("receipt")
        rendered.ClearField("messages")
        return rendered.SerializeToString()
    return reply


def with_news(method: str, reply: bytes) -> bytes:
    """A reply as a later version might give it: fields and values that nobody knows."""
    # An open enum takes any number; the stubs say otherwise.
    if method == RECALL:
        recalled = recall_pb2.RecallResponse.FromString(reply)
        for hit in recalled.hits[:1]:
            hit.memory.kind = _UNKNOWN_VALUE  # type: ignore[assignment] # as said above
        return recalled.SerializeToString() + _UNKNOWN_FIELD
    if method == RENDER:
        rendered = context_service_pb2.RenderResponse.FromString(reply)
        for memory in rendered.memories:
            memory.kind = memory.tier = _UNKNOWN_VALUE  # type: ignore[assignment] # as said above
        for message in rendered.messages:
            message.role = _UNKNOWN_VALUE  # type: ignore[assignment] # as said above
        return rendered.SerializeToString() + _UNKNOWN_FIELD
    return reply


def with_news_of_failure(details: bytes) -> bytes:
    """Why a call failed as a later version might say it: a reason that is not listed, and a detail of another type."""
    status = status_pb2.Status.FromString(details)
    for detail in status.details:
        info = error_details_pb2.ErrorInfo()
        if detail.Unpack(info):
            info.reason = _UNKNOWN_REASON
            detail.Pack(info)
    status.details.insert(0, _UNKNOWN_DETAIL)
    return bytes(status.SerializeToString())


@dataclass(slots=True, kw_only=True)
class Front(grpc.GenericRpcHandler):
    """Hands every call on, and does one thing wrong.

    Attributes:
        channel: To the real service.
        delay_s: Before each reply.
        refused: Calls of a method that fail before they reach the service, in a row; then one goes through.
        lost: Calls whose reply is lost, likewise.
        busy: Whether every call is refused as by a service that has too many.
        change: What is done to replies.
        change_details: What is done to the details of failures.
    """

    channel: grpc.aio.Channel
    delay_s: float = 0.0
    refused: int = 0
    lost: int = 0
    busy: bool = False
    change: Change = lambda method, reply: reply
    change_details: Callable[[bytes], bytes] = lambda details: details
    _calls: Counter[str] = field(default_factory=Counter)

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[bytes, bytes]:
        """One handler for every shape of call: on the wire a single message is a stream of one."""
        method = str(details.method)

        async def handed_on(requests: AsyncIterator[bytes], context: Context) -> AsyncIterator[bytes]:
            if self.busy:
                await _abort(context, _OVERLOADED)
            failing = self._calls[method] % (self.refused + self.lost + 1)
            self._calls[method] += 1
            if failing < self.refused:
                await context.abort(grpc.StatusCode.UNAVAILABLE, "refused on purpose")
            to_service: grpc.aio.StreamStreamMultiCallable[bytes, bytes] = self.channel.stream_stream(method)
            call = to_service(requests, timeout=context.time_remaining(), metadata=_kept(context.invocation_metadata()))
            try:
                async for reply in call:
                    await asyncio.sleep(self.delay_s)
                    if failing < self.refused + self.lost:
                        await context.abort(grpc.StatusCode.UNAVAILABLE, "lost on purpose")
                    yield self.change(method, reply)
            except grpc.aio.AioRpcError as error:
                context.set_trailing_metadata(self._told(error))
                await context.abort(error.code(), error.details() or "")
            finally:
                call.cancel()

        return grpc.stream_stream_rpc_method_handler(handed_on)

    def _told(self, error: grpc.aio.AioRpcError) -> tuple[tuple[str, str | bytes], ...]:
        """Trailing metadata of a failure, with changed details."""
        return tuple(
            (key, self.change_details(value) if key == _DETAILS_KEY and isinstance(value, bytes) else value)
            for key, value in error.trailing_metadata() or ()
        )


def _status(code: grpc.StatusCode, message: str, *details: Message) -> grpc.Status:
    status = status_pb2.Status(code=code.value[0], message=message)
    for detail in details:
        status.details.add().Pack(detail)
    rich: grpc.Status = rpc_status.to_status(status)
    return rich


_OVERLOADED = _status(
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    "9 calls are waiting; the limit is 8",
    error_details_pb2.ErrorInfo(reason="OVERLOADED", domain="hummock.dev", metadata={"waiting": "9", "limit": "8"}),
    error_details_pb2.RetryInfo(retry_delay=Duration(nanos=250_000_000)),
)


async def _abort(context: Context, status: grpc.Status) -> None:
    context.set_trailing_metadata(status.trailing_metadata)
    await context.abort(status.code, status.details)


def _kept(metadata: Iterable[tuple[str, str | bytes]] | None) -> tuple[tuple[str, str | bytes], ...]:
    """Metadata that the caller sent, without what the transport adds."""
    return tuple((key, value) for key, value in metadata or () if key not in {"user-agent", "authorization"})


def fronts(channel: grpc.aio.Channel) -> Mapping[str, Front]:
    """Fronts by the names of their targets; `tls` speaks TLS, the others do not."""
    return {
        "slow": Front(channel=channel, delay_s=SLOW_S),
        "flaky": Front(channel=channel, refused=_REFUSED),
        "lossy": Front(channel=channel, lost=1),
        "busy": Front(channel=channel, busy=True),
        "old": Front(channel=channel, change=as_before),
        "new": Front(channel=channel, change=with_news, change_details=with_news_of_failure),
        "tls": Front(channel=channel),
    }


async def listening(front: Front, credentials: grpc.ServerCredentials | None) -> tuple[grpc.aio.Server, int]:
    """A server with a free port of loopback."""
    server = grpc.aio.server(options=[("grpc.max_receive_message_length", _LARGEST)])
    server.add_generic_rpc_handlers((front,))
    port = (
        server.add_insecure_port("127.0.0.1:0")
        if credentials is None
        else server.add_secure_port("127.0.0.1:0", credentials)
    )
    await server.start()
    return server, port
