"""MemoryService: single memories, a watch of their changes, review, and the star map."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from hummock.core.errors import AlreadyExists, InvalidRequest, MemoryNotFound
from hummock.core.memory import EventPage
from hummock.memories.forget import Forget
from hummock.memories.garden import Garden, Review
from hummock.rpc import memory_messages, values
from hummock.rpc.call import CallContext, Require, inside, project_read, that_fits
from hummock.rpc.conversion import message_of
from hummock.rpc.memory_messages import memory_event
from hummock.rpc.status import MAX_REPLY_BYTES
from hummock.rpc.streams import UNTIL_WRITTEN, Steps
from hummock.rpc.tokens import page_number, page_position, page_token
from hummock_client.v1 import memory_service_pb2 as pb

MOST_STARS = 4096
"""Stars of one message, which has at most 2.5 MiB then: some tens of milliseconds of a worker."""

MOST_EVENTS = 512
"""Most events in one message."""

_FRAME_BYTES = 16
"""Upper bound on the bytes that a nested message takes in addition to its own."""

_READ_AT_ONCE = 32
"""Memories read at once: each may have 512 KiB, and a reply has room for only a few."""

_EVENTS_BYTES = MAX_REPLY_BYTES - 1024
_ROOM_FOR_IDS_BYTES = 512 * 1024
"""Bytes reserved for the ids of memories that did not fit into the reply."""

SEQ_EVERY = 256
"""Writes without an event after which the position is sent anyway, so that a watcher can resume from it."""


class MemoryServicer:
    """Reads, changes, forgets and watches memories, and decides on those held for review."""

    def __init__(self, garden: Garden, forget: Forget, review: Review, require: Require) -> None:
        self._garden = garden
        self._forget = forget
        self._review = review
        self._require = require

    def GetMemory(self, request: pb.GetMemoryRequest, call: CallContext) -> pb.GetMemoryResponse:
        """Returns one memory."""
        project = values.project_name("project", request.project)
        (found,) = self._garden.get(
            project,
            (values.identifier("id", request.id),),
            request.min_seq,
            full=values.wants_full(request.view, unset_means_full=True),
        )
        if found is None:
            with inside(project, self._require):
                raise MemoryNotFound(request.id)
        superseded_by = self._garden.superseded_by(project, [found])
        message = memory_messages.memory(
            found, superseded_by.get(found.id, ()), with_raw=values.wants_raw(request.view)
        )
        return pb.GetMemoryResponse(memory=message)

    def BatchGetMemories(self, request: pb.BatchGetMemoriesRequest, call: CallContext) -> pb.BatchGetMemoriesResponse:
        """Returns several memories, as many as a reply has room for."""
        ids = values.identifiers("ids", request.ids)
        project = project_read(request, self._require)
        full, with_raw = values.wants_full(request.view, unset_means_full=True), values.wants_raw(request.view)
        most_bytes = request.max_reply_bytes or MAX_REPLY_BYTES
        reply, left_bytes = pb.BatchGetMemoriesResponse(), most_bytes - _ROOM_FOR_IDS_BYTES
        # Read in one transaction, so that a batch written meanwhile is seen whole or not at all.
        there: Collection[str] = ids
        if len(ids) > _READ_AT_ONCE:
            there = {one.id for one in self._garden.get(project, ids, request.min_seq, full=False) if one is not None}
        for start in range(0, len(ids), _READ_AT_ONCE):
            call.deadline.check()
            some = ids[start : start + _READ_AT_ONCE]
            # Once the reply is full, only the existence of a memory matters.
            found = self._garden.get(project, some, request.min_seq, full=full and left_bytes > 0)
            superseded_by = self._garden.superseded_by(project, found)
            for memory_id, one in zip(some, found, strict=True):
                if one is None or memory_id not in there:
                    reply.missing_ids.append(memory_id)
                    continue
                if left_bytes > 0 or not reply.memories:
                    message = memory_messages.memory(one, superseded_by.get(one.id, ()), with_raw=with_raw)
                    left_bytes -= message.ByteSize() + _FRAME_BYTES
                    # The first is always sent, so that repeated requests make progress.
                    if left_bytes >= 0 or not reply.memories:
                        reply.memories.append(message)
                        continue
                reply.omitted_ids.append(one.id)
        return reply

    def ListMemories(self, request: pb.ListMemoriesRequest, call: CallContext) -> pb.ListMemoriesResponse:
        """Returns the memories of a project in pages, shorter ones where a page would not fit into a reply."""
        project = project_read(request, self._require)
        where = values.memory_filter("filter", request.filter)
        after = page_number(request, request.page_token) or 0
        full, with_raw = values.wants_full(request.view, unset_means_full=False), values.wants_raw(request.view)
        newest_first = request.order == pb.LIST_ORDER_NEWEST_FIRST

        def page_of(size: int) -> pb.ListMemoriesResponse:
            page = self._garden.page(
                project, where, after, size, full=full, newest_first=newest_first, contains=request.contains
            )
            superseded_by = self._garden.superseded_by(project, page.memories)
            return pb.ListMemoriesResponse(
                memories=(
                    memory_messages.memory(one, superseded_by.get(one.id, ()), with_raw=with_raw)
                    for one in page.memories
                ),
                next_page_token=page_token(request, page.next_after),
            )

        return that_fits(page_of, values.page_size(request.page_size))

    def UpdateMemory(self, request: pb.UpdateMemoryRequest, call: CallContext) -> pb.UpdateMemoryResponse:
        """Changes the named fields of a memory."""
        memory_id, changes = memory_messages.memory_changes(request, call.caller)
        write = values.write(request)
        try:
            with inside(write["project"], self._require):
                updated = self._garden.update(**write, memory_id=memory_id, changes=changes)
        except AlreadyExists:
            raise
        except InvalidRequest as error:
            # Only the garden knows the updated memory, so its errors lack the prefix.
            if not error.field.startswith("memory."):
                error.move_into("memory.")
            raise
        return pb.UpdateMemoryResponse(memory=memory_messages.memory(updated.memory), seq=updated.seq)

    def DeleteMemories(self, request: pb.DeleteMemoriesRequest, call: CallContext) -> pb.DeleteMemoriesResponse:
        """Removes memories by id, or a batch of those that match a filter."""
        ids, where = memory_messages.memories_to_delete(request)
        write = values.write(request)
        self._require(write["project"])
        if where is None:
            deleted = self._garden.delete(**write, ids=ids)
        else:
            deleted = self._garden.delete_where(
                **write, where=where, only_count=request.dry_run, deadline=call.deadline
            )
        return message_of(pb.DeleteMemoriesResponse, deleted)

    def Forget(self, request: pb.ForgetRequest, call: CallContext) -> pb.ForgetResponse:
        """Erases memories and sessions, or counts what would be erased."""
        command = memory_messages.to_forget(request)
        self._require(command.project)
        forget = self._forget.count if request.dry_run else self._forget
        receipt, seq = forget(command, call.deadline)
        return message_of(pb.ForgetResponse, receipt, seq=seq)

    def ListReview(self, request: pb.ListReviewRequest, call: CallContext) -> pb.ListReviewResponse:
        """Lists what waits for a decision; a page that would not fit into a reply is shortened."""
        project = values.project_name("project", request.project)
        self._require(project)
        if request.kind == pb.REVIEW_KIND_REPLACEMENT:
            return self._replacements(project, request, call)
        after = page_position(request, request.page_token)

        def page_of(size: int) -> pb.ListReviewResponse:
            page = self._review.page(project, after, size)
            return pb.ListReviewResponse(
                held=[
                    message_of(pb.HeldMemory, held, memory=memory_messages.memory(held.memory, with_raw=True))
                    for held in page.held
                ],
                next_page_token=page_token(request, page.next_after),
            )

        return that_fits(page_of, values.page_size(request.page_size))

    def _replacements(self, project: str, request: pb.ListReviewRequest, call: CallContext) -> pb.ListReviewResponse:
        after = page_number(request, request.page_token) or 0

        def page_of(size: int) -> pb.ListReviewResponse:
            page = self._review.replacements(project, after, size, call.deadline)
            return pb.ListReviewResponse(
                replacements=[
                    message_of(
                        pb.Replacement,
                        found,
                        newer=memory_messages.memory(found.newer),
                        older=memory_messages.memory(found.older),
                    )
                    for found in page.replacements
                ],
                next_page_token=page_token(request, page.next_after),
            )

        return that_fits(page_of, values.page_size(request.page_size))

    def ApproveReview(self, request: pb.ApproveReviewRequest, call: CallContext) -> pb.ApproveReviewResponse:
        """Stores held memories, and lets notes replace older ones."""
        command = memory_messages.review_command(request)
        self._require(command.project)
        written = self._review.approve(command)
        reply = written.reply
        return pb.ApproveReviewResponse(seq=written.seq, approved_count=reply.count, missing_ids=reply.missing_ids)

    def RejectReview(self, request: pb.RejectReviewRequest, call: CallContext) -> pb.RejectReviewResponse:
        """Removes held memories, and keeps older notes beside newer ones."""
        command = memory_messages.review_command(request)
        self._require(command.project)
        written = self._review.reject(command)
        reply = written.reply
        return pb.RejectReviewResponse(seq=written.seq, rejected_count=reply.count, missing_ids=reply.missing_ids)

    def WatchMemories(self, request: pb.WatchMemoriesRequest, call: CallContext) -> Steps:
        """Streams the events of a project's memories."""
        project_read(request, self._require)
        return watch_memories(self._garden, request, self._require)

    def MapMemories(self, request: pb.MapMemoriesRequest, call: CallContext) -> Steps:
        """Streams memories as points of a plane."""
        return map_memories(self._garden, project_read(request, self._require), values.identifiers("ids", request.ids))


def watch_memories(garden: Garden, request: pb.WatchMemoriesRequest, require: Require) -> Steps:
    """The messages of one stream, without end. Raises: ProjectNotFound: the project was deleted meanwhile."""
    project = values.project_name("project", request.project)
    where = values.memory_filter("filter", request.filter)
    full, with_raw = values.wants_full(request.view, unset_means_full=False), values.wants_raw(request.view)
    newest = garden.seq(project)
    told = seq = request.after_seq if request.HasField("after_seq") else newest
    # A position beyond the project's last write gets a reset, after which the stream has caught up.
    yield pb.WatchMemoriesResponse(seq=seq, start=pb.MemoryWatchStart(), caught_up=seq == newest)
    while True:
        page = garden.events(project, seq, where, full=full)
        if page.is_reset:
            project_read(request, require)
            yield pb.WatchMemoriesResponse(seq=page.seq, reset=pb.MemoryWatchReset(), caught_up=page.seq >= newest)
            told = page.seq
        elif page.events or page.seq - told >= SEQ_EVERY or told < newest <= page.seq:
            yield from _messages(page, told, newest, with_raw=with_raw)
            told = page.seq
        elif page.is_newest:
            yield UNTIL_WRITTEN
        seq = page.seq


def _messages(page: EventPage, told: int, newest: int, *, with_raw: bool) -> Iterator[pb.WatchMemoriesResponse]:
    """The events in messages of bounded size; only the last one carries the page's final position."""
    events: list[pb.MemoryEvent] = []
    events_bytes = 0
    for event in page.events:
        message = memory_event(event, with_raw=with_raw)
        message_bytes = message.ByteSize() + _FRAME_BYTES
        if events and (len(events) == MOST_EVENTS or events_bytes + message_bytes > _EVENTS_BYTES):
            yield _message(told, events, caught_up=told >= newest)
            events, events_bytes = [], 0
        events.append(message)
        events_bytes += message_bytes
    yield _message(page.seq, events, caught_up=page.seq >= newest)


def _message(seq: int, events: Sequence[pb.MemoryEvent], *, caught_up: bool) -> pb.WatchMemoriesResponse:
    return pb.WatchMemoriesResponse(seq=seq, events=pb.MemoryEvents(events=events), caught_up=caught_up)


def map_memories(garden: Garden, project: str, ids: Sequence[str]) -> Steps:
    """Yield the messages of a map of these memories, or of all if `ids` is empty; the project may be missing.

    Each part is read in its own transaction, so that a slow client holds nothing in memory.
    """
    # Read first: a watch from this position reports all later writes, whether or not the map has them.
    seq = garden.seq(project)
    yield pb.MapMemoriesResponse(seq=seq, memory_count=garden.memory_count(project))
    numbers, after = {"": 0}, 0
    while True:
        stars = garden.stars_of(project, ids) if ids else garden.stars(project, after, MOST_STARS)
        known = len(numbers)
        sessions = [numbers.setdefault(name, len(numbers)) for name in stars.sessions]
        if stars.ids:
            yield pb.MapMemoriesResponse(
                seq=seq,
                layout_id=stars.layout_id,
                ids=stars.ids,
                x=stars.x,
                y=stars.y,
                is_placed=stars.is_placed,
                kinds=stars.kinds,  # type: ignore[arg-type]  # the stubs want numbers of the enum's own type
                origins=stars.origins,  # type: ignore[arg-type]  # they want the enum's type here too
                update_unix_s=stars.update_times,
                sessions=sessions,
                session_ids=list(numbers)[known:],
            )
        if stars.next_after is None:
            return
        after = stars.next_after
