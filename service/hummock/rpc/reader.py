"""The server of a process that answers recalls and hands all else to the service beside it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

import grpc
from google.protobuf.descriptor import ServiceDescriptor
from grpc import aio
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2

from hummock.rpc.address import Address
from hummock.rpc.door import Door
from hummock.rpc.forward import Forward, Handler
from hummock.rpc.gate import Gate
from hummock.rpc.listening import CORE_RECEIVE_BYTES, DRAIN_S, bind, drain, server_options
from hummock.rpc.parse.request import compile_rules
from hummock.rpc.recall_call import RECALL, recall_handler
from hummock.rpc.servicers.recall import recall_response
from hummock.rpc.services import SERVICES
from hummock.rpc.status import MAX_REPLY_BYTES
from hummock.rpc.use_cases import Recall
from hummock.v1 import recall_pb2

_CHANNEL_OPTIONS = (
    ("grpc.max_send_message_length", CORE_RECEIVE_BYTES),
    ("grpc.max_receive_message_length", MAX_REPLY_BYTES),
    # The service may be gone for a moment, never for long: it ends this process when it ends.
    ("grpc.max_reconnect_backoff_ms", 1000),
)

_SERVICES_OF_GRPC: tuple[ServiceDescriptor, ...] = (
    health_pb2.DESCRIPTOR.services_by_name["Health"],
    reflection_pb2.DESCRIPTOR.services_by_name["ServerReflection"],
)


async def serve_recalls(
    recall: Recall,
    at_once: Gate,
    reads: Gate,
    address: Address,
    service: str,
    *,
    until: asyncio.Event,
    on_listening: Callable[[Address], None],
) -> None:
    """Serves until the event is set, then drains and returns.

    Args:
        recall: Answers recalls.
        at_once: Where those run that take a moment.
        reads: Where the others run.
        address: To listen on, shared with other processes.
        service: The target that answers all other calls.
        until: Ends it.
        on_listening: Told the address, with the port that was chosen, once calls are let in.

    Raises:
        StartError: The address cannot be used.
    """
    compile_rules((recall_pb2.RecallRequest,))
    door = Door()
    async with aio.insecure_channel(service, options=_CHANNEL_OPTIONS) as channel:
        answered_here = recall_handler(partial(recall_response, recall), at_once, reads, door)
        handlers = _Handlers(answered_here, Forward(channel, door))
        server = aio.server(handlers=[handlers], options=server_options(shares_port=True))
        bound = bind(server, address)
        await server.start()
        door.open()
        on_listening(bound)
        await until.wait()
        door.close()
        await drain(server, door, DRAIN_S)


class _Handlers(grpc.GenericRpcHandler):
    """Who answers a method: recalls are answered here, all else by the service."""

    def __init__(self, recall: Handler, forward: Forward) -> None:
        self._of_method = {
            f"/{service.full_name}/{method.name}": forward.handler(method)
            for service in (*SERVICES, *_SERVICES_OF_GRPC)
            for method in service.methods
        }
        self._of_method[RECALL] = recall

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Handler | None:
        """None for a method that nobody knows."""
        return self._of_method.get(handler_call_details.method)
