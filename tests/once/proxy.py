"""A network that loses, doubles and reorders calls, between a real client and a real server."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from enum import Enum
from hashlib import blake2b
from threading import Lock
from typing import Any, NamedTuple

import grpc

_LATEST_CALLS = 40
"""A message that is late arrives within so many calls."""


class Fate(Enum):
    """Fate of a call in the network."""

    STRAIGHT = "straight"
    LOST = "lost"
    """The call is lost before it reaches the server."""
    LATE = "late"
    """The caller gets an error; the call reaches the server some calls later, after the caller's next ones."""
    UNANSWERED = "unanswered"
    """The server has answered it, and the answer is lost."""
    DOUBLED = "doubled"
    """The call reaches the server twice at once."""
    ECHOED = "echoed"
    """The call reaches the server now, and once more some calls later."""


# In 100 calls, 20 are lost, half of them before the server and half after it; 20 come twice.
_FATES = (
    *[Fate.STRAIGHT] * 60,
    *[Fate.LOST] * 5,
    *[Fate.LATE] * 5,
    *[Fate.UNANSWERED] * 10,
    *[Fate.DOUBLED] * 10,
    *[Fate.ECHOED] * 10,
)


class _Waiting(NamedTuple):
    """A message that is late; `due` counts calls."""

    due: int
    method: str
    request: bytes


class BadNetwork(grpc.GenericRpcHandler):
    """Forwards unary calls as bytes, each as its fate wants.

    A fate follows from the seed, the call's bytes and how often they came before: it is the same in every run, however
    the threads of several callers take turns.

    Attributes:
        fates: How many calls had each.
    """

    def __init__(self, channel: grpc.Channel, seed: int) -> None:
        self._channel = channel
        self._seed = seed
        self._lock = Lock()
        self._seen: Counter[bytes] = Counter()
        self._late: list[_Waiting] = []
        self._calls = 0
        self.fates: Counter[Fate] = Counter()

    def service(self, handler_call_details: Any) -> grpc.RpcMethodHandler[bytes, bytes]:
        method = handler_call_details.method

        def answer(request: bytes, context: grpc.ServicerContext) -> bytes:
            return self._answer(method, request, context)

        return grpc.unary_unary_rpc_method_handler(answer)

    def deliver_all(self) -> None:
        """Delivers what is still late."""
        with self._lock:
            late, self._late = self._late, []
        for waiting in late:
            self._forward_unheard(waiting.method, waiting.request)

    def _answer(self, method: str, request: bytes, context: grpc.ServicerContext) -> bytes:
        with self._lock:
            fate, due = self._draw(method, request)
            arriving = [one for one in self._late if one.due <= self._calls]
            self._late = [one for one in self._late if one.due > self._calls]
            if fate in (Fate.LATE, Fate.ECHOED):
                self._late.append(_Waiting(due, method, request))
        for waiting in arriving:
            self._forward_unheard(waiting.method, waiting.request)
        if fate in (Fate.LOST, Fate.LATE):
            context.abort(grpc.StatusCode.UNAVAILABLE, "the network lost the call")
        twin = self._send(method, request) if fate is Fate.DOUBLED else None
        try:
            reply: bytes = self._send(method, request).result()
        except grpc.RpcError as error:
            context.abort(error.code(), error.details() or "")
        finally:
            if twin is not None:
                twin.exception()
        if fate is Fate.UNANSWERED:
            context.abort(grpc.StatusCode.UNAVAILABLE, "the network lost the answer")
        return reply

    def _draw(self, method: str, request: bytes) -> tuple[Fate, int]:
        key = blake2b(method.encode() + b"\0" + request, digest_size=16).digest()
        self._seen[key] += 1
        self._calls += 1
        drawn = blake2b(b"%d/%d/" % (self._seed, self._seen[key]) + key, digest_size=8).digest()
        fate = _FATES[int.from_bytes(drawn[:4], "big") % len(_FATES)]
        self.fates[fate] += 1
        return fate, self._calls + 1 + int.from_bytes(drawn[4:], "big") % _LATEST_CALLS

    def _send(self, method: str, request: bytes) -> Any:
        forward: grpc.UnaryUnaryMultiCallable[bytes, bytes] = self._channel.unary_unary(method)
        return forward.future(request)

    def _forward_unheard(self, method: str, request: bytes) -> None:
        # What the server says to it nobody hears: by now it may have to refuse it.
        self._send(method, request).exception()


@contextmanager
def bad_network(target: str, seed: int) -> Iterator[tuple[BadNetwork, str]]:
    """A network in front of the target, and where a client finds it."""
    with grpc.insecure_channel(target) as channel, ThreadPoolExecutor(16) as workers:
        network = BadNetwork(channel, seed)
        server = grpc.server(workers, handlers=[network])
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        try:
            yield network, f"127.0.0.1:{port}"
        finally:
            server.stop(None).wait()
