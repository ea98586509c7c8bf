"""Export and import: all of a project page by page, and parts of one taken in as they were."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import IntEnum
from functools import partial

import numpy as np
from msgspec.structs import replace

from hummock.core.embedding import Embedding, EmbeddingSpace
from hummock.core.errors import InvalidRequest, SessionNotFound, Unavailable
from hummock.core.learning import FeedbackGiven, LoggedEvent, TurnObserved
from hummock.core.memory import Memory, SecretPolicy
from hummock.core.project import Project
from hummock.core.session import Session
from hummock.core.settings import ProjectSettings
from hummock.core.transfer import (
    ExportPage,
    Given,
    GivenChunk,
    GivenEvent,
    GivenMemory,
    GivenMessage,
    GivenProject,
    GivenRemoval,
    Imported,
)
from hummock.learning.log import record
from hummock.memories.learn import require_past
from hummock.memories.preparation import Preparation, Prepared, make_memory
from hummock.ports.learning import LearningReader, LearningUnit
from hummock.ports.models import Clock, Embedder
from hummock.ports.store import Store
from hummock.ports.writes import UnitOfWork, WriteRequest
from hummock.text.credentials import as_stored
from hummock.text.template import left_open

_MESSAGE_BYTES = 256 * 1024
"""Most bytes of messages that are read at once."""

_EVENTS_AT_ONCE = 256
_HELD_AT_ONCE = 1000

_MAX_TOKENS = 128
"""Token vectors of a chunk."""

_UNIT_TOLERANCE = 1e-3
"""Largest deviation from length 1 of stored vectors, which have float16 precision and are kept bit for bit."""


class Export:
    """Gives out projects. Safe to call from several threads."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __call__(self, project: Project, *, with_vectors: bool) -> Iterator[ExportPage]:
        """Yield the memories of a project in write order, then the ids of those removed meanwhile.

        Each page is read separately, so that a slow reader holds no transaction. Later writes follow earlier ones, and
        of a memory that comes twice the later one counts: all pages together are the project at the time of the last
        page.

        Raises: Unavailable if more was written between two pages than the store remembers.
        """
        after, seq = 0, project.seq
        gone: dict[str, None] = {}
        while True:
            page = self._store.export(project.name, after, seq, with_vectors=with_vectors)
            if page.is_reset:
                raise Unavailable(f"project {project.name} changes faster than it is read; export it again")
            gone.update(dict.fromkeys(page.removed_ids))
            for exported in page.memories:
                gone.pop(exported.memory.id, None)
            is_last = page.next_after is None
            yield ExportPage(
                memories=page.memories,
                removed_ids=tuple(gone) if is_last else (),
                next_after=page.next_after,
                seq=page.seq,
            )
            if page.next_after is None:
                return
            after, seq = page.next_after, page.seq

    def events(self, project: str) -> Iterator[GivenEvent]:
        """Yield the learning log as of the start, renumbered without gaps; damaged events are left out."""
        count = self._store.read_learning(project, lambda learning: learning.state().events)
        number, previous = 0, None
        for after in range(0, count, _EVENTS_AT_ONCE):
            limit = min(_EVENTS_AT_ONCE, count - after)
            for logged in self._store.read_learning(project, partial(_events, after=after, limit=limit)):
                number += 1
                yield GivenEvent(logged=replace(logged, number=number), previous_time=previous)
                previous = logged.time

    def held_count(self, project: str) -> int:
        """Memories that are held for review, which are not given out."""
        count, after = 0, ""
        while True:
            page = self._store.review.page(project, after, _HELD_AT_ONCE)
            count, after = count + len(page.held), page.next_after
            if not after:
                return count

    def conversations(self, project: str) -> Iterator[Session | GivenMessage]:
        """The sessions that a project has when this begins, each before its messages.

        Archived ones come first, and what moved last at the end.
        """
        for session in self._store.sessions.all(project):
            yield session
            yield from self._messages(project, session)

    def _messages(self, project: str, session: Session) -> Iterator[GivenMessage]:
        position = 0
        # One that is removed meanwhile ends there.
        with suppress(SessionNotFound):
            while messages := self._store.sessions.behind(
                project, session.id, position, _MESSAGE_BYTES, session.number
            ):
                said = (message for message in messages if not message.is_deleted)
                yield from (GivenMessage(session_id=session.id, message=message) for message in said)
                position = messages[-1].position


def _events(learning: LearningReader, *, after: int, limit: int) -> list[LoggedEvent]:
    return learning.events(after, limit)


class _Outcome(IntEnum):
    """What became of a part."""

    NOTHING = 0
    CREATED = 1
    UPDATED = 2
    UNCHANGED = 3
    REMOVED = 4
    SESSION = 5
    MESSAGE = 6
    NO_SESSION = 7
    EXPIRED = 8
    EVENT = 9
    LEFT_EVENT = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportReply:
    """Outcomes of the parts."""

    outcomes: tuple[_Outcome, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Arrival:
    """A memory on its way in; without embeddings it waits for them."""

    given: GivenMemory
    prepared: Prepared
    embeddings: tuple[Embedding, ...]


class Import:
    """Takes in parts of projects. Safe to call from several threads."""

    def __init__(
        self,
        store: Store,
        embedder: Embedder,
        preparation: Preparation,
        clock: Clock,
        on_pending: Callable[[str], None],
    ) -> None:
        """`on_pending` gets a project with memories that wait for vectors."""
        self._store = store
        self._embedder = embedder
        self._preparation = preparation
        self._clock = clock
        self._on_pending = on_pending

    def __call__(self, project: str, parts: Sequence[Given]) -> Imported:
        """Import parts in order, in one write; invalid ones are left out and reported.

        A memory replaces the one with its id, and is queued for embedding if it has no vectors of this space. Nothing
        is merged, and unchanged memories are not written.

        Raises: StorageFull.
        """
        now = self._clock.now()
        failures: list[tuple[int, InvalidRequest]] = []
        accepted: dict[int, Given] = {}
        memories: list[tuple[GivenMemory, tuple[Embedding, ...]]] = []
        # Imported settings apply to the other parts.
        brought = [part.settings for part in parts if isinstance(part, GivenProject)]
        settings = brought[-1] if brought else self._store.settings(project)
        for place, part in enumerate(parts):
            try:
                _check_times(part, now)
                if isinstance(part, GivenMemory):
                    memories.append((part, _checked(part, self._embedder.space)))
                accepted[place] = _screened(part, settings.secret_policy())
            except InvalidRequest as error:
                failures.append((place, error))
        arrivals = self._arrivals(project, memories, settings)
        seq, outcomes = self._write(project, accepted.values(), arrivals, now)
        embedded = _without_vectors(outcomes, accepted.values(), arrivals)
        if embedded:
            self._on_pending(project)
        counts = Counter(outcomes)
        return Imported(
            seq=seq,
            created=counts[_Outcome.CREATED],
            updated=counts[_Outcome.UPDATED],
            unchanged=counts[_Outcome.UNCHANGED],
            removed=counts[_Outcome.REMOVED],
            embedded=embedded,
            sessions=counts[_Outcome.SESSION],
            messages=counts[_Outcome.MESSAGE],
            expired=counts[_Outcome.EXPIRED],
            events=counts[_Outcome.EVENT],
            left_events=counts[_Outcome.LEFT_EVENT],
            failures=(*failures, *_without_session(outcomes, accepted)),
        )

    def _arrivals(
        self, project: str, memories: Sequence[tuple[GivenMemory, tuple[Embedding, ...]]], settings: ProjectSettings
    ) -> list[_Arrival]:
        prepared = self._preparation.prepare(project, [left_open(given.draft) for given, _ in memories], settings)
        return [
            _Arrival(given=given, prepared=one, embeddings=embeddings)
            for (given, embeddings), one in zip(memories, prepared, strict=True)
        ]

    def _write(
        self, project: str, parts: Collection[Given], arrivals: Sequence[_Arrival], now: float
    ) -> tuple[int, tuple[_Outcome, ...]]:
        def apply(work: UnitOfWork) -> ImportReply:
            waiting = iter(arrivals)
            return ImportReply(outcomes=tuple(_take_in(work, part, waiting, now) for part in parts))

        request = WriteRequest(request_id="", fingerprint=b"", reply_type=ImportReply, apply=apply)
        written = self._store.write(project, request).result()
        return written.seq, written.reply.outcomes


def _check_times(part: Given, now: float) -> None:
    """Raises: InvalidRequest."""
    match part:
        case GivenMemory():
            require_past("memory.memory.create_time", part.draft.create_time, now)
            require_past("memory.update_time", part.update_time, now)
        case Session():
            require_past("session.create_time", part.create_time, now)
        case GivenMessage():
            require_past("message.send_time", part.message.send_time, now)
        case GivenEvent():
            require_past("event.event.event_time", part.logged.time, now)


def _screened(part: Given, policy: SecretPolicy) -> Given:
    """Screen a part of a conversation or of the log; memories are screened when they are prepared."""
    match part:
        case Session():
            return replace(part, title=as_stored(part.title, policy))
        case GivenMessage(message=message):
            content, raw = as_stored(message.content, policy), as_stored(message.raw, policy)
            return replace(part, message=replace(message, content=content, raw=raw))
        case GivenEvent(logged=LoggedEvent(event=TurnObserved() as event) as logged):
            event = replace(event, user_text=as_stored(event.user_text, policy))
            return replace(part, logged=replace(logged, event=event))
        case GivenEvent(logged=LoggedEvent(event=FeedbackGiven() as said) as logged):
            said = replace(said, query_text=as_stored(said.query_text, policy), note=as_stored(said.note, policy))
            return replace(part, logged=replace(logged, event=said))
    return part


def _checked(given: GivenMemory, space: EmbeddingSpace) -> tuple[Embedding, ...]:
    """Return the imported embeddings, if they are of this space. Raises: InvalidRequest."""
    if not given.draft.id:
        raise InvalidRequest("memory.memory.id", "is empty; it is required")
    if given.emb_space != space.id:
        return ()
    return tuple(_embedding(f"memory.chunks[{at}]", chunk, space) for at, chunk in enumerate(given.chunks))


def _embedding(field: str, chunk: GivenChunk, space: EmbeddingSpace) -> Embedding:
    if len(chunk.values) != space.dim:
        raise InvalidRequest(f"{field}.values", f"has {len(chunk.values)} components; the space has {space.dim}")
    length = float(np.linalg.norm(chunk.values.astype(np.float64)))
    if not (np.isfinite(length) and length > 0):
        raise InvalidRequest(f"{field}.values", "is all zero, or not finite")
    if len(chunk.tokens) % space.token_dim or len(chunk.tokens) > _MAX_TOKENS * space.token_dim:
        raise InvalidRequest(
            f"{field}.tokens",
            f"has {len(chunk.tokens)} bytes; a token vector has {space.token_dim}, and there are at most {_MAX_TOKENS}",
        )
    values = chunk.values
    if abs(length - 1) > _UNIT_TOLERANCE:
        values = (values.astype(np.float64) / length).astype(np.float32)
    tokens = np.frombuffer(chunk.tokens, np.int8).reshape(-1, space.token_dim)
    return Embedding(vector=values, tokens=tokens)


def _take_in(work: UnitOfWork, part: Given, arrivals: Iterator[_Arrival], now: float) -> _Outcome:
    match part:
        case GivenProject():
            work.set_info(part.info)
            work.set_settings(part.settings)
            return _Outcome.NOTHING
        case GivenRemoval(memory_id=memory_id):
            return _Outcome.REMOVED if work.delete(memory_id) else _Outcome.NOTHING
        case GivenMemory():
            return _put(work, next(arrivals), now)
        case Session():
            return _begin(work, part)
        case GivenMessage():
            return _append(work, part)
        case GivenEvent():
            return _log(work, part)


def _put(work: UnitOfWork, arrival: _Arrival, now: float) -> _Outcome:
    one, given = arrival.prepared, arrival.given
    if given.draft.expire_time is not None and given.draft.expire_time <= now:
        return _Outcome.EXPIRED
    existing = work.get(one.memory_id)
    if existing is not None and _is_as_given(existing, given, one):
        return _Outcome.UNCHANGED
    memory = make_memory(one, existing, chunk_count=len(arrival.embeddings), now=now)
    if given.update_time is not None:
        memory = replace(memory, update_time=given.update_time)
    # The log was imported before, so the profile of a new memory is known already.
    profile = work.learning.profile(memory.id) if existing is None else None
    work.put(memory, one.key, one.words.analysed().terms, arrival.embeddings, given.session_position, profile)
    return _Outcome.CREATED if existing is None else _Outcome.UPDATED


def _is_as_given(existing: Memory, given: GivenMemory, one: Prepared) -> bool:
    """Whether an equal memory is stored already; without a given update time, at any time."""
    update_time = existing.update_time if given.update_time is None else given.update_time
    wanted = make_memory(one, existing, chunk_count=existing.chunk_count, now=update_time)
    return _as_told(wanted) == _as_told(existing)


def _as_told(memory: Memory) -> Memory:
    """A memory in the precision of the wire: microseconds, and a trust of float32; without its fingerprint."""
    return replace(
        memory,
        fingerprint=b"",
        trust=float(np.float32(memory.trust)),
        create_time=round(memory.create_time * 1e6),
        update_time=round(memory.update_time * 1e6),
        event_time=None if memory.event_time is None else round(memory.event_time * 1e6),
        expire_time=None if memory.expire_time is None else round(memory.expire_time * 1e6),
    )


def _begin(work: UnitOfWork, session: Session) -> _Outcome:
    if work.sessions.get(session.id) is not None:
        return _Outcome.NOTHING
    work.sessions.create(session)
    return _Outcome.SESSION


def _append(work: UnitOfWork, given: GivenMessage) -> _Outcome:
    session = work.sessions.get(given.session_id)
    if session is None:
        return _Outcome.NO_SESSION
    if work.sessions.message(session.id, given.message.id) is not None:
        return _Outcome.NOTHING
    send_time = max(given.message.send_time, session.update_time)
    work.sessions.append(replace(session, update_time=send_time), replace(given.message, send_time=send_time))
    return _Outcome.MESSAGE


def _log(work: UnitOfWork, given: GivenEvent) -> _Outcome:
    """Append an event if all earlier ones are stored; a stored one is not changed."""
    learning, logged = work.learning, given.logged
    known = learning.state().events
    if logged.number <= known:
        is_there = _is_at(learning, logged.number, logged.time)
        return _Outcome.NOTHING if is_there else _Outcome.LEFT_EVENT
    follows = logged.number == known + 1 and (not known or _is_at(learning, known, given.previous_time))
    if not follows:
        return _Outcome.LEFT_EVENT
    record(learning, logged.event, logged.time)
    return _Outcome.EVENT


def _is_at(learning: LearningUnit, number: int, time: float | None) -> bool:
    """Whether the event of this number happened at this time, in the precision of the wire."""
    found = learning.events(number - 1, 1)
    return time is not None and bool(found) and round(found[0].time * 1e6) == round(time * 1e6)


def _without_vectors(outcomes: Iterable[_Outcome], parts: Iterable[Given], arrivals: Iterable[_Arrival]) -> int:
    """Number of written memories that wait for their vectors."""
    written = (outcome for outcome, part in zip(outcomes, parts, strict=True) if isinstance(part, GivenMemory))
    return sum(
        not arrival.embeddings and outcome in (_Outcome.CREATED, _Outcome.UPDATED)
        for outcome, arrival in zip(written, arrivals, strict=True)
    )


def _without_session(outcomes: Iterable[_Outcome], places: Iterable[int]) -> Iterator[tuple[int, InvalidRequest]]:
    for outcome, place in zip(outcomes, places, strict=True):
        if outcome is _Outcome.NO_SESSION:
            yield place, InvalidRequest("message.session_id", "names no session of the project; its record comes first")
