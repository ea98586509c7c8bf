"""A watch of a project's memories: what happened behind a position, then what happens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hummock.core.memory_events import EventPage, MemoryEvent
from hummock.rpc.parse import values
from hummock.rpc.present.memory import memory_event
from hummock.rpc.reply_stream import UNTIL_WRITTEN, Steps
from hummock.rpc.use_cases import Garden
from hummock.v1 import memory_service_pb2 as pb

MOST_EVENTS = 512
"""Of one message."""

SEQ_EVERY = 256
"""Writes that pass without an event before the position is told all the same, so that it stays within reach."""


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
