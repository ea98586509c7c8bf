"""The client for code that blocks."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, Unpack, cast

import grpc
from google.protobuf.message import Message

from hummock.v1 import admin_service_pb2 as admin_pb
from hummock.v1 import context_service_pb2 as context_pb
from hummock.v1 import explain_pb2, memory_pb2, recall_pb2, settings_pb2, transfer_pb2
from hummock.v1 import memory_service_pb2 as memories_pb
from hummock.v1 import project_service_pb2 as projects_pb
from hummock_client import requests
from hummock_client.channel import IMPORT, LEARN_STREAM, ROUTES, Deadlines, channel_options
from hummock_client.errors import FailedCall, HummockCallError, call_error, not_ready
from hummock_client.learning import Learning
from hummock_client.sending import Send
from hummock_client.sessions import Sessions
from hummock_client.streaming import exchange, replies
from hummock_client.target import resolve_target
from hummock_client.transfer import import_messages

_PAUSE_S = 0.1
_NOT_YET = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)


class Client:
    """A connection to the service; may be used by several threads. Every call raises HummockCallError when it fails.

    `send` takes any request message and returns its reply; the other methods make the request from arguments, those
    of `sessions` about conversations, those of `learning` about how projects learn.

        with Client() as client:
            client.note("loan", "先本后息：先还本金，后还利息", tags=["还款"])
            for hit in client.recall("loan", "增加先本后息的还款方式").hits:
                print(hit.score, hit.memory.index.title)
    """

    def __init__(self, target: str | None = None, *, deadlines: Deadlines | None = None) -> None:
        """Connects when the first call is made.

        Args:
            target: `host:port` or `unix:///path`; None means HUMMOCK_TARGET, and without it 127.0.0.1:7420.
            deadlines: Seconds after which calls are given up.
        """
        self.target = resolve_target(target)
        self.send: Send = cast(Send, self._send)
        self.sessions = Sessions(self.send, self._stream)
        self.learning = Learning(self.send, self._stream)
        self._deadlines = deadlines or Deadlines()
        self._channel = grpc.insecure_channel(self.target, options=channel_options(self.target))
        self._methods: dict[str, Any] = {
            name: self._channel.unary_unary(
                route.path,
                request_serializer=_to_bytes,
                response_deserializer=route.reply_type.FromString,
            )
            for name, route in ROUTES.items()
        }

    def recall(
        self, project: str, text: str, *, timeout_s: float | None = None, **options: Unpack[requests.RecallOptions]
    ) -> recall_pb2.RecallResponse:
        """Finds the memories that bear on a text."""
        return self.send(requests.recall(project, text, options), timeout_s=timeout_s)

    def render(
        self,
        project: str,
        source: str | Sequence[str] | recall_pb2.RecallRequest,
        *,
        timeout_s: float | None = None,
        **options: Unpack[requests.RenderOptions],
    ) -> context_pb.RenderResponse:
        """Writes the prompt section for what a text recalls, for a recall, or for the memories with these ids."""
        return self.send(requests.render(project, source, options), timeout_s=timeout_s)

    def learn(
        self,
        project: str,
        memories: Iterable[memory_pb2.MemoryInput],
        *,
        request_id: str | None = None,
        timeout_s: float | None = None,
    ) -> context_pb.LearnResponse:
        """Stores memories, all or none. Give a request_id of your own to be able to repeat the call."""
        return self.send(requests.learn(project, memories, request_id), timeout_s=timeout_s)

    def note(
        self, project: str, text: str, tags: Iterable[str] = (), *, timeout_s: float | None = None
    ) -> context_pb.LearnResponse:
        """Stores one sentence."""
        return self.learn(project, [requests.note(text, tags)], timeout_s=timeout_s)

    def learn_stream(
        self, batches: Iterable[context_pb.LearnRequest], *, timeout_s: float | None = None
    ) -> Iterator[context_pb.LearnStreamResponse]:
        """Stores batches and yields the answer to each in order; a batch that fails does not end the stream.

        `batches` is read on a thread of gRPC's; what it raises ends the stream and is raised here. No deadline
        unless `timeout_s` sets one.
        """
        messages = (context_pb.LearnStreamRequest(batch=batch) for batch in batches)
        return exchange(self._channel, LEARN_STREAM, context_pb.LearnStreamResponse, messages, timeout_s)

    def search(
        self, project: str, text: str, *, timeout_s: float | None = None, **options: Unpack[requests.SearchOptions]
    ) -> context_pb.SearchResponse:
        """Searches code and knowledge together."""
        return self.send(requests.search(project, text, options), timeout_s=timeout_s)

    def explain(
        self,
        project: str,
        text: str,
        memory_id: str,
        *,
        timeout_s: float | None = None,
        **options: Unpack[requests.RecallOptions],
    ) -> explain_pb2.ExplainResponse:
        """Says why recalling for a text brings back a memory, or loses it, and what would bring it back."""
        return self.send(requests.explain(project, text, memory_id, options), timeout_s=timeout_s)

    def feedback(
        self,
        project: str,
        verdicts: Mapping[str, context_pb.Judgement.ValueType],
        *,
        request_id: str | None = None,
        timeout_s: float | None = None,
        **options: Unpack[requests.FeedbackOptions],
    ) -> context_pb.FeedbackResponse:
        """Says by memory id what was of use for a query, for example {"m1": JUDGEMENT_HELPFUL}."""
        return self.send(requests.feedback(project, verdicts, options, request_id), timeout_s=timeout_s)

    def get(
        self, project: str, memory_id: str, *, timeout_s: float | None = None, **options: Unpack[requests.ReadOptions]
    ) -> memory_pb2.Memory:
        """One memory."""
        return self.send(requests.get(project, memory_id, options), timeout_s=timeout_s).memory

    def batch_get(
        self,
        project: str,
        ids: Iterable[str],
        *,
        timeout_s: float | None = None,
        **options: Unpack[requests.ReadOptions],
    ) -> memories_pb.MemoryServiceBatchGetResponse:
        """Several memories, and the ids that do not exist."""
        return self.send(requests.batch_get(project, ids, options), timeout_s=timeout_s)

    def list_memories(
        self,
        project: str,
        where: memory_pb2.Filter | None = None,
        *,
        view: memory_pb2.MemoryView.ValueType = memory_pb2.MEMORY_VIEW_INDEX,
        order: memories_pb.ListOrder.ValueType = memories_pb.LIST_ORDER_UNSPECIFIED,
        contains: str = "",
        page_size: int = 0,
        timeout_s: float | None = None,
    ) -> Iterator[memory_pb2.Memory]:
        """All memories that pass the filter and hold the string, oldest write first; pages are fetched when needed."""
        request = memories_pb.MemoryServiceListRequest(
            project=project, filter=where, view=view, page_size=page_size, order=order, contains=contains
        )
        while True:
            page = self.send(request, timeout_s=timeout_s)
            yield from page.memories
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token

    def watch_memories(
        self,
        project: str,
        where: memory_pb2.Filter | None = None,
        *,
        after_seq: int | None = None,
        view: memory_pb2.MemoryView.ValueType = memory_pb2.MEMORY_VIEW_INDEX,
        timeout_s: float | None = None,
    ) -> Generator[memories_pb.MemoryServiceWatchResponse, None, None]:
        """What becomes of a project's memories, without end: first a start, then events, or a reset.

        Close the iterator to hang up. When it raises, watch again with the seq of the last message as after_seq. No
        deadline unless `timeout_s` sets one.
        """
        return self._stream(requests.watch_memories(project, where, after_seq, view), timeout_s)

    def update(
        self,
        project: str,
        memory: memory_pb2.MemoryInput,
        paths: Iterable[str],
        *,
        request_id: str | None = None,
        timeout_s: float | None = None,
    ) -> memories_pb.MemoryServiceUpdateResponse:
        """Gives the named fields of the memory with this id the values in `memory`, for example "index.title"."""
        return self.send(requests.update(project, memory, paths, request_id), timeout_s=timeout_s)

    def delete(
        self, project: str, ids: Iterable[str], *, request_id: str | None = None, timeout_s: float | None = None
    ) -> memories_pb.MemoryServiceDeleteResponse:
        """Removes memories, all in one write."""
        return self.send(requests.delete(project, ids, request_id), timeout_s=timeout_s)

    def project(self, name: str, *, timeout_s: float | None = None) -> projects_pb.Project:
        """One project, with the number of memories of each kind."""
        return self.send(projects_pb.ProjectServiceGetRequest(project=name), timeout_s=timeout_s).project

    def projects(self, *, page_size: int = 0, timeout_s: float | None = None) -> Iterator[projects_pb.Project]:
        """All projects by name; pages are fetched as they are needed."""
        request = projects_pb.ProjectServiceListRequest(page_size=page_size)
        while True:
            page = self.send(request, timeout_s=timeout_s)
            yield from page.projects
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token

    def export_project(
        self, name: str, *, with_vectors: bool = False, timeout_s: float | None = None
    ) -> Iterator[transfer_pb2.TransferRecord]:
        """All of a project as records, in the order in which they make it again. No deadline unless one is given."""
        request = projects_pb.ProjectServiceExportRequest(project=name, with_vectors=with_vectors)
        for message in self._stream(request, timeout_s):
            yield from message.records

    def import_project(
        self, name: str, records: Iterable[transfer_pb2.TransferRecord], *, timeout_s: float | None = None
    ) -> Iterator[projects_pb.ProjectServiceImportResponse]:
        """Takes in records and yields what became of them, some at a time; failures name them by place, from 1.

        `records` is read on a thread of gRPC's; what it raises ends the import and is raised here. What is cut off may
        be done again. No deadline unless `timeout_s` sets one.
        """
        messages = import_messages(name, enumerate(records, start=1))
        return exchange(self._channel, IMPORT, projects_pb.ProjectServiceImportResponse, messages, timeout_s)

    def update_project(
        self,
        name: str,
        *,
        tech_stack: Sequence[str] | None = None,
        path: str | None = None,
        request_id: str | None = None,
        timeout_s: float | None = None,
    ) -> projects_pb.Project:
        """Changes what is not None of a project's information; creates the project."""
        return self.send(requests.update_project(name, tech_stack, path, request_id), timeout_s=timeout_s).project

    def settings(
        self, project: str, *, timeout_s: float | None = None
    ) -> projects_pb.ProjectServiceGetSettingsResponse:
        """What a project sets for itself, and every value that applies where a request says nothing."""
        return self.send(projects_pb.ProjectServiceGetSettingsRequest(project=project), timeout_s=timeout_s)

    def update_settings(
        self,
        project: str,
        settings: settings_pb2.ProjectSettings,
        paths: Iterable[str],
        *,
        request_id: str | None = None,
        timeout_s: float | None = None,
    ) -> projects_pb.ProjectServiceUpdateSettingsResponse:
        """Gives the named settings, for example "chat.top_k", the values in `settings`; unset ones their defaults."""
        return self.send(requests.update_settings(project, settings, paths, request_id), timeout_s=timeout_s)

    def status(self, *, timeout_s: float | None = None) -> admin_pb.StatusResponse:
        """What runs, on what, and how full it is."""
        return self.send(admin_pb.StatusRequest(), timeout_s=timeout_s)

    def wait_until_ready(self, timeout_s: float = 30.0) -> admin_pb.StatusResponse:
        """Waits until the service answers, and returns what it says. Raises: HummockCallError."""
        give_up_at = time.monotonic() + timeout_s
        while (left_s := give_up_at - time.monotonic()) > 0:
            try:
                status: admin_pb.StatusResponse = self._send(
                    admin_pb.StatusRequest(), timeout_s=left_s, wait_for_ready=True
                )
            except HummockCallError as error:
                if error.code not in _NOT_YET:
                    raise
                time.sleep(min(_PAUSE_S, max(give_up_at - time.monotonic(), 0)))
            else:
                return status
        raise not_ready(self.target, timeout_s)

    def close(self) -> None:
        """Ends the connection; calls that run fail."""
        self._channel.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _send(self, request: Message, *, timeout_s: float | None = None, wait_for_ready: bool = False) -> Any:
        name = request.DESCRIPTOR.full_name
        timeout_s = ROUTES[name].timeout_s(self._deadlines, timeout_s)
        try:
            return self._methods[name](request, timeout=timeout_s, wait_for_ready=wait_for_ready)
        except grpc.RpcError as failed:
            raise call_error(cast(FailedCall, failed)) from failed

    def _stream(self, request: Message, timeout_s: float | None) -> Generator[Any, None, None]:
        return replies(self._channel, request, timeout_s)


def _to_bytes(request: Message) -> bytes:
    return request.SerializeToString()
