"""MemoryService: memories one by one, and a watch of what becomes of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hummock.core.errors import InvalidRequest, MemoryNotFound
from hummock.core.memory import EventPage, MemoryEvent
from hummock.memories.garden import Garden
from hummock.rpc import memory_messages, values
from hummock.rpc.memory_messages import memory_event
from hummock.rpc.status import MAX_REPLY_BYTES
from hummock.rpc.streams import UNTIL_WRITTEN, Steps
from hummock.rpc.tokens import page_number, page_token
from hummock.v1 import memory_service_pb2 as pb

MOST_EVENTS = 512
"""Of one message."""

SEQ_EVERY = 256
"""Writes that pass without an event before the position is told all the same, so that it stays within reach."""

_DEFAULT_PAGE_SIZE = 100


class MemoryServicer:
    """Each method is a call of the garden."""

    def __init__(self, garden: Garden) -> None:
        self._garden = garden

    def Get(self, request: pb.MemoryServiceGetRequest) -> pb.MemoryServiceGetResponse:
        """Returns one memory."""
        project = values.project_name("project", request.project)
        (found,) = self._garden.get(
            project,
            (values.identifier("id", request.id),),
            request.min_seq,
            full=values.wants_full(request.view, unset_means_full=True),
        )
        if found is None:
            raise MemoryNotFound(request.id)
        superseded_by = self._garden.superseded_by(project, [found])
        return pb.MemoryServiceGetResponse(memory=memory_messages.memory(found, superseded_by.get(found.id, ())))

    def BatchGet(self, request: pb.MemoryServiceBatchGetRequest) -> pb.MemoryServiceBatchGetResponse:
        """Returns several memories."""
        ids = values.identifiers("ids", request.ids)
        project = values.project_name("project", request.project)
        found = self._garden.get(
            project,
            ids,
            request.min_seq,
            full=values.wants_full(request.view, unset_means_full=True),
        )
        return memory_messages.batch_get_response(ids, found, self._garden.superseded_by(project, found))

    def List(self, request: pb.MemoryServiceListRequest) -> pb.MemoryServiceListResponse:
        """Returns the memories of a project in pages, shorter ones where a page would not fit into a reply."""
        project = values.project_name("project", request.project)
        where = values.memory_filter("filter", request.filter)
        after = page_number(request, request.page_token) or 0
        full = values.wants_full(request.view, unset_means_full=False)
        newest_first = request.order == pb.LIST_ORDER_NEWEST_FIRST
        size = request.page_size or _DEFAULT_PAGE_SIZE
        while True:
            page = self._garden.page(
                project, where, after, size, full=full, newest_first=newest_first, contains=request.contains
            )
            superseded_by = self._garden.superseded_by(project, page.memories)
            reply = pb.MemoryServiceListResponse(
                memories=(memory_messages.memory(one, superseded_by.get(one.id, ())) for one in page.memories),
                next_page_token="" if page.next_after is None else page_token(request, str(page.next_after)),
            )
            if reply.ByteSize() <= MAX_REPLY_BYTES or size == 1:
                return reply
            size = min(size, len(page.memories)) // 2 or 1

    def Update(self, request: pb.MemoryServiceUpdateRequest) -> pb.MemoryServiceUpdateResponse:
        """Changes the named fields of a memory."""
        memory_id, changes = memory_messages.memory_changes(request)
        project = values.project_name("project", request.project)
        request_id, fingerprint = values.request_id(request.request_id), values.fingerprint(request)
        try:
            updated = self._garden.update(project, request_id, memory_id, changes, fingerprint)
        except InvalidRequest as error:
            # What the memory would become is known to the garden alone.
            if error.field.startswith("payload"):
                error.move_into("memory.")
            raise
        return memory_messages.update_response(updated)

    def Delete(self, request: pb.MemoryServiceDeleteRequest) -> pb.MemoryServiceDeleteResponse:
        """Removes memories."""
        deleted = self._garden.delete(
            values.project_name("project", request.project),
            values.request_id(request.request_id),
            values.identifiers("ids", request.ids),
            values.fingerprint(request),
        )
        return memory_messages.delete_response(deleted)

    def Watch(self, request: pb.MemoryServiceWatchRequest) -> Steps:
        """Tells what becomes of a project's memories."""
        return watch_memories(self._garden, request)


def watch_memories(garden: Garden, request: pb.MemoryServiceWatchRequest) -> Steps:
    """The messages of one stream, without end."""
    project = values.project_name("project", request.project)
    where = values.memory_filter("filter", request.filter)
    full = values.wants_full(request.view, unset_means_full=False)
    told = seq = request.after_seq if request.HasField("after_seq") else garden.seq(project)
    yield pb.MemoryServiceWatchResponse(seq=seq, start=pb.MemoryWatchStart())
    while True:
        page = garden.events(project, seq, where, full=full)
        if page.is_reset:
            yield pb.MemoryServiceWatchResponse(seq=page.seq, reset=pb.MemoryWatchReset())
            told = page.seq
        elif page.events or page.seq - told >= SEQ_EVERY:
            yield from _messages(page, told)
            told = page.seq
        elif page.is_newest:
            yield UNTIL_WRITTEN
        seq = page.seq


def _messages(page: EventPage, told: int) -> Iterator[pb.MemoryServiceWatchResponse]:
    """The events in messages of bounded size; only the last one has told all of its writes."""
    events = page.events
    while len(events) > MOST_EVENTS:
        yield _message(told, events[:MOST_EVENTS])
        events = events[MOST_EVENTS:]
    yield _message(page.seq, events)


def _message(seq: int, events: Sequence[MemoryEvent]) -> pb.MemoryServiceWatchResponse:
    return pb.MemoryServiceWatchResponse(seq=seq, events=pb.MemoryEvents(events=map(memory_event, events)))
