"""Server of a process that answers recalls and forwards all other calls to the service, byte for byte."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager, suppress
from typing import Any, NoReturn, TypeVar

import grpc
from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from grpc import aio
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2

from hummock.core.errors import Unavailable
from hummock.recall.cache import CachedRecall
from hummock.rpc.context_service import RecallServicer
from hummock.rpc.dispatch import Context, Handler, InFlight, Methods, method
from hummock.rpc.interceptor import PEER, Interceptor
from hummock.rpc.lanes import Lanes
from hummock.rpc.listening import CORE_RECEIVE_BYTES, DRAIN_S, Address, bind, drain, server_options
from hummock.rpc.policy import SERVICES, name_of
from hummock.rpc.status import LARGEST_REPLY_BYTES, to_grpc
from hummock.rpc.tls import Tls
from hummock.rpc.validation import compile_rules
from hummock_client.v1 import context_service_pb2, recall_pb2

Value = TypeVar("Value")

_RECALL: MethodDescriptor = context_service_pb2.DESCRIPTOR.services_by_name["ContextService"].methods_by_name["Recall"]

_CHANNEL_OPTIONS = (
    ("grpc.max_send_message_length", CORE_RECEIVE_BYTES),
    ("grpc.max_receive_message_length", LARGEST_REPLY_BYTES),
    # The service may be gone for a moment, never for long: it ends this process when it ends.
    ("grpc.max_reconnect_backoff_ms", 1000),
)

_SERVICES_OF_GRPC: tuple[ServiceDescriptor, ...] = (
    health_pb2.DESCRIPTOR.services_by_name["Health"],
    reflection_pb2.DESCRIPTOR.services_by_name["ServerReflection"],
)

_DETAILS = "grpc-status-details-bin"
"""A trailer that the service puts on every error of its own."""

_COULD_NOT_SEND = (grpc.StatusCode.INTERNAL, "Internal error from Core")
_STATUS_S = 1.0

_TRANSPORT_PREFIXES = ("grpc-", ":")
_TRANSPORT_KEYS = frozenset({"user-agent", "content-type", "te"})


async def serve_recalls(
    recall: CachedRecall,
    lanes: Lanes,
    address: Address,
    service: str,
    *,
    interceptor: Interceptor,
    tls: Tls | None,
    until: asyncio.Event,
    on_listening: Callable[[Address], None],
) -> None:
    """Serves until the event is set, then drains and returns.

    Args:
        recall: Answers recalls.
        lanes: The queues on which they run; this process writes nothing.
        address: To listen on, shared with other processes.
        service: The target that answers all other calls.
        interceptor: Authenticates callers of recalls; other calls are authenticated by the service.
        tls: The service's certificate and key; None means plaintext.
        until: Stops the server when set.
        on_listening: Gets the address, with the chosen port, once calls are accepted.

    Raises:
        StartError: The address cannot be used.
    """
    compile_rules((recall_pb2.RecallRequest,))
    in_flight, servicer = InFlight(), RecallServicer(recall)
    async with aio.insecure_channel(service, options=_CHANNEL_OPTIONS) as channel:
        forward = Forward(channel, in_flight)
        there = [each for service in (*SERVICES, *_SERVICES_OF_GRPC) for each in service.methods]
        handlers = Methods(
            (method(_RECALL, servicer.Recall, lanes, in_flight, interceptor),),
            {name_of(each): forward.handler(each) for each in there},
        )
        server = aio.server(handlers=[handlers], options=server_options(shares_port=True, has_inside=False))
        bound = bind(server, address, tls)
        await server.start()
        in_flight.open()
        on_listening(bound)
        await until.wait()
        in_flight.close()
        await drain(server, in_flight, DRAIN_S)


class Forward:
    """Forwards calls with their deadline and metadata; a caller that hangs up cancels the forwarded call too."""

    def __init__(self, channel: aio.Channel, in_flight: InFlight) -> None:
        self._channel = channel
        self._in_flight = in_flight

    def handler(self, method: MethodDescriptor) -> Handler:
        """The handler that forwards one method."""
        name = name_of(method)
        return self._stream(name) if method.client_streaming or method.server_streaming else self._unary(name)

    def _unary(self, name: str) -> Handler:
        call_there: aio.UnaryUnaryMultiCallable[bytes, bytes] = self._channel.unary_unary(name)

        async def answer(data: bytes, context: Context) -> bytes:
            try:
                with self._in_flight.counted():
                    return await call_there(data, timeout=context.time_remaining(), metadata=_metadata(context))
            except (aio.AioRpcError, Unavailable) as error:
                # The error keeps this frame alive until garbage collection; the request must not be kept.
                del data
                await _abort(context, error)

        return grpc.unary_unary_rpc_method_handler(answer)

    def _stream(self, name: str) -> Handler:
        """On the wire one message is a stream of one, so it does for a single request or reply as well."""
        call_there: aio.StreamStreamMultiCallable[bytes, bytes] = self._channel.stream_stream(name)

        async def answer(requests: AsyncIterator[bytes], context: Context) -> AsyncIterator[bytes]:
            try:
                with self._in_flight.counted():
                    call = call_there(requests, timeout=context.time_remaining(), metadata=_metadata(context))
                    async with _until_left(call):
                        async for reply in _Ending(call).replies():
                            yield reply
            except (aio.AioRpcError, Unavailable) as error:
                await _abort(context, error)

        return grpc.stream_stream_rpc_method_handler(answer)


@asynccontextmanager
async def _until_left(call: aio.Call) -> AsyncIterator[None]:
    """Ends the call when its reader stops reading."""
    try:
        yield
    finally:
        call.cancel()


class _Ending:
    """The status with which the service ended a call.

    If a message can no longer be sent, gRPC's client ends the call with a status of its own, before the service's
    status arrives or in place of it.
    """

    def __init__(self, call: aio.StreamStreamCall[bytes, bytes]) -> None:
        self._call = call
        self._status: tuple[grpc.StatusCode, aio.Metadata, aio.Metadata, str | None] | None = None
        self._is_known = asyncio.Event()
        # Called at each status that the call is given.
        call.add_done_callback(self._note)

    async def replies(self) -> AsyncIterator[bytes]:
        """All replies. Raises: AioRpcError, with the status of the service."""
        try:
            async for reply in self._call:
                yield reply
        except aio.AioRpcError as error:
            with suppress(TimeoutError):
                async with asyncio.timeout(_STATUS_S):
                    await self._is_known.wait()
            if self._status is None:
                raise
            raise aio.AioRpcError(*self._status) from error

    def _note(self, _: object) -> None:
        call = self._call
        code, details = _known(call.code()), _known(call.details())
        if (code, details) != _COULD_NOT_SEND:
            self._status = (code, aio.Metadata(), _known(call.trailing_metadata()), details)
            self._is_known.set()


def _known(value: Coroutine[Any, Any, Value]) -> Value:
    """The result of a coroutine that need not wait any more, such as the status of an ended call."""
    try:
        value.send(None)
    except StopIteration as done:
        known: Value = done.value
        return known
    raise RuntimeError("a call that has ended does not know its status")


def _metadata(context: Context) -> aio.Metadata:
    """Return the caller's metadata without transport headers, with the peer of its connection added."""
    sent: Iterable[tuple[str, str | bytes]] = context.invocation_metadata() or ()
    return aio.Metadata(
        *(
            (key, value)
            for key, value in sent
            if key not in _TRANSPORT_KEYS and key != PEER and not key.startswith(_TRANSPORT_PREFIXES)
        ),
        (PEER, context.peer()),
    )


async def _abort(context: Context, error: aio.AioRpcError | Unavailable) -> NoReturn:
    if isinstance(error, aio.AioRpcError):
        trailers = error.trailing_metadata()
        if error.code() is not grpc.StatusCode.UNAVAILABLE or _DETAILS in trailers:
            await context.abort(error.code(), error.details() or "", tuple(trailers))
        # gRPC's message describes a connection between our processes, which means nothing to the caller.
        error = Unavailable("the process that answers this is starting or stopping; try again")
    await context.abort_with_status(to_grpc(error))
