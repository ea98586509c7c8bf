"""The two Python clients under one face, for the runner."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import closing
from itertools import islice
from typing import Any, Self

from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message

from hummock_client import Client, Deadlines
from hummock_client.streaming import Batch
from hummock_client.v1 import context_service_pb2 as context_pb
from hummock_client.v1 import project_service_pb2 as projects_pb
from hummock_client.v1.memory_pb2 import MemoryFilter
from hummock_client.v1.transfer_pb2 import TransferRecord
from tests.client.waiting import WaitingClient

Messages = Sequence[Mapping[str, Any]]


class Cancelled(Exception):
    """The caller has cancelled, and was told in asyncio's own way."""


class Facade:
    """Calls that a case makes to a client."""

    def __init__(
        self,
        make: type[Client | WaitingClient],
        target: str,
        *,
        token: str | None,
        root_certificates: bytes | None,
        deadline_ms: int | None,
    ) -> None:
        self._client: Any = make(
            target, token=token, root_certificates=root_certificates, deadlines=_deadlines(deadline_ms)
        )
        # A blocking call is cancelled by who closes the client on another thread.
        self._cancel = self._client.cancel if isinstance(self._client, WaitingClient) else self._client.close

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._client.__exit__(None, None, None)

    def send(self, request: Message, timeout_s: float | None, cancel_after_s: float | None) -> Message:
        """The reply to a request, unless its caller cancels before."""
        timer = threading.Timer(cancel_after_s or 0, self._cancel)
        if cancel_after_s is not None:
            timer.start()
        try:
            reply: Message = self._client.send(request, timeout_s=timeout_s)
        except CancelledError:
            raise Cancelled from None
        return reply

    def stream(
        self,
        method: MethodDescriptor,
        requests: Sequence[Message],
        timeout_s: float | None,
        most: int | None,
        meanwhile: Message | None,
    ) -> list[Message]:
        """The replies of a call with a stream; all, or so many before it is hung up.

        What is to be sent meanwhile is sent after the first reply.
        """
        client = self._client
        if method.name == "LearnStream":
            replies = client.learn_stream(_batches(requests), timeout_s=timeout_s)
        elif method.name == "ImportProject":
            replies = client.import_project(*_import(requests), timeout_s=timeout_s)
        else:
            replies = client.stream(requests[0], timeout_s=timeout_s)
        with closing(replies) as coming:
            got = list(islice(coming, 1))
            if meanwhile is not None:
                self.send(meanwhile, None, None)
            return got + list(islice(coming, None if most is None else most - 1))

    def with_memory(self, project: str, messages: Messages, budget_s: float) -> Messages:
        """The messages with memory, as far as there is any."""
        added: Messages = self._client.with_memory(project, messages, budget_s=budget_s)
        return added

    def delete_where(self, project: str, where: MemoryFilter) -> int:
        """Removes what passes the filter, and says how many memories that were."""
        return int(self._client.delete_where(project, where))


def _deadlines(deadline_ms: int | None) -> Deadlines:
    if deadline_ms is None:
        return Deadlines()
    return Deadlines(read_s=deadline_ms / 1000, write_s=deadline_ms / 1000)


def _batches(requests: Iterable[Message]) -> Iterator[Batch]:
    for request in requests:
        assert isinstance(request, context_pb.LearnStreamRequest)
        yield request.learn_turn if request.HasField("learn_turn") else request.learn


def _import(requests: Sequence[Message]) -> tuple[str, list[TransferRecord]]:
    of_import = [request for request in requests if isinstance(request, projects_pb.ImportProjectRequest)]
    return of_import[0].project, [line.record for request in of_import for line in request.lines]
