"""The calls of Recall: answered on the event loop where that takes a moment, on a worker elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import grpc

from hummock.rpc.calls import UnaryCall, reply_or_rest
from hummock.rpc.door import Door
from hummock.rpc.gate import Gate
from hummock.rpc.rest import Rest
from hummock.v1 import recall_pb2

RECALL = "/hummock.v1.ContextService/Recall"

_MOST_BYTES = 64 * 1024
"""Larger requests are not read on the event loop."""


def recall_handler(
    answer: Callable[[Any], recall_pb2.RecallResponse | Rest],
    at_once: Gate,
    reads: Gate,
    door: Door,
) -> grpc.RpcMethodHandler[bytes, bytes]:
    """What answers the method; `answer` takes a RecallRequest, and leaves one that takes longer to a worker."""
    work = partial(reply_or_rest, recall_pb2.RecallRequest, answer)
    call = UnaryCall(RECALL, work, at_once, door, rest=reads, most_bytes=_MOST_BYTES)
    return grpc.unary_unary_rpc_method_handler(call.answer)
