"""The two Python clients under one face, for the runner."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, closing
from itertools import islice
from typing import Any, Protocol, Self, TypeVar

from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message

from hummock_client import AsyncClient, Client, Deadlines
from hummock_client.streaming import Batch
from hummock_client.v1 import context_service_pb2 as context_pb
from hummock_client.v1 import project_service_pb2 as projects_pb
from hummock_client.v1.memory_pb2 import MemoryFilter
from hummock_client.v1.transfer_pb2 import TransferRecord

Messages = Sequence[Mapping[str, Any]]
T = TypeVar("T")


class Cancelled(Exception):
    """The caller has cancelled, and was told in asyncio's own way."""


class Facade(Protocol):
    """Calls that a case makes to a client."""

    def __init__(
        self, target: str, *, token: str | None, root_certificates: bytes | None, deadline_ms: int | None
    ) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> None: ...

    def send(self, request: Message, timeout_s: float | None, cancel_after_s: float | None) -> Message:
        """The reply to a request, unless its caller cancels before."""

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

    def with_memory(self, project: str, messages: Messages, budget_s: float) -> Messages:
        """The messages with memory, as far as there is any."""

    def delete_where(self, project: str, where: MemoryFilter) -> int:
        """Removes what passes the filter, and says how many memories that were."""


class BlockingFacade:
    """`Client`."""

    def __init__(
        self, target: str, *, token: str | None, root_certificates: bytes | None, deadline_ms: int | None
    ) -> None:
        self._client = Client(
            target, token=token, root_certificates=root_certificates, deadlines=_deadlines(deadline_ms)
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._client.close()

    def send(self, request: Message, timeout_s: float | None, cancel_after_s: float | None) -> Message:
        # A blocking call is cancelled by who closes the client on another thread.
        timer = threading.Timer(cancel_after_s or 0, self._client.close)
        if cancel_after_s is not None:
            timer.start()
        reply: Message = self._client.send(request, timeout_s=timeout_s)  # type: ignore[call-overload] # any of them
        return reply

    def stream(
        self,
        method: MethodDescriptor,
        requests: Sequence[Message],
        timeout_s: float | None,
        most: int | None,
        meanwhile: Message | None,
    ) -> list[Message]:
        client = self._client
        if method.name == "LearnStream":
            replies: Iterator[Message] = client.learn_stream(_batches(requests), timeout_s=timeout_s)
        elif method.name == "ImportProject":
            replies = client.import_project(*_import(requests), timeout_s=timeout_s)
        else:
            replies = client.stream(requests[0], timeout_s=timeout_s)
        with closing(replies) as coming:  # type: ignore[type-var] # all of them are generators
            got = list(islice(coming, 1))
            if meanwhile is not None:
                self.send(meanwhile, None, None)
            return got + list(islice(coming, None if most is None else most - 1))

    def with_memory(self, project: str, messages: Messages, budget_s: float) -> Messages:
        return self._client.with_memory(project, messages, budget_s=budget_s)

    def delete_where(self, project: str, where: MemoryFilter) -> int:
        return self._client.delete_where(project, where)


class AioFacade:
    """`AsyncClient`, in an event loop on a thread of its own."""

    def __init__(
        self, target: str, *, token: str | None, root_certificates: bytes | None, deadline_ms: int | None
    ) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="client")
        self._thread.start()

        async def connect() -> AsyncClient:
            return AsyncClient(
                target, token=token, root_certificates=root_certificates, deadlines=_deadlines(deadline_ms)
            )

        self._client = self._run(connect())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._run(self._client.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def send(self, request: Message, timeout_s: float | None, cancel_after_s: float | None) -> Message:
        async def reply() -> Message:
            call = self._client.send(request, timeout_s=timeout_s)  # type: ignore[call-overload] # any of them
            task: asyncio.Future[Message] = asyncio.ensure_future(call)
            if cancel_after_s is not None:
                asyncio.get_running_loop().call_later(cancel_after_s, task.cancel)
            try:
                return await task
            except asyncio.CancelledError:
                raise Cancelled from None

        return self._run(reply())

    def stream(
        self,
        method: MethodDescriptor,
        requests: Sequence[Message],
        timeout_s: float | None,
        most: int | None,
        meanwhile: Message | None,
    ) -> list[Message]:
        client = self._client

        async def read() -> list[Message]:
            if method.name == "LearnStream":
                replies: AsyncIterator[Message] = client.learn_stream(_async(_batches(requests)), timeout_s=timeout_s)
            elif method.name == "ImportProject":
                replies = client.import_project(*_import(requests), timeout_s=timeout_s)
            else:
                replies = client.stream(requests[0], timeout_s=timeout_s)
            got: list[Message] = []
            async with aclosing(replies) as coming:  # type: ignore[type-var] # all of them are generators
                while most is None or len(got) < most:
                    try:
                        got.append(await anext(coming))
                    except StopAsyncIteration:
                        break
                    if meanwhile is not None and len(got) == 1:
                        await client.send(meanwhile)  # type: ignore[call-overload] # any of them
            return got

        return self._run(read())

    def with_memory(self, project: str, messages: Messages, budget_s: float) -> Messages:
        return self._run(self._client.with_memory(project, messages, budget_s=budget_s))

    def delete_where(self, project: str, where: MemoryFilter) -> int:
        return self._run(self._client.delete_where(project, where))

    def _run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()


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


async def _async(batches: Iterable[Batch]) -> AsyncIterator[Batch]:
    for batch in batches:
        yield batch
