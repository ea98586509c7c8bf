"""The garden: single memories read, changed and removed, and those held for review listed and decided on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

from msgspec.structs import replace

from hummock.core.deadline import NO_DEADLINE, Deadline
from hummock.core.errors import InvalidRequest, MemoryNotFound, Unavailable
from hummock.core.facets import needs_payload, passes
from hummock.core.memory import (
    Changes,
    Deleted,
    Draft,
    EventPage,
    Filter,
    Memory,
    MemoryEvent,
    MemoryEventType,
    MemoryIndex,
    Origin,
    Payload,
    Updated,
    WriteCommand,
)
from hummock.core.project import Stars
from hummock.core.review import UNPROVEN_TRUST, ReviewPolicy
from hummock.core.time_zone import UTC_NAME
from hummock.memories.learn import require_future, store_one
from hummock.memories.preparation import Preparation, make_memory
from hummock.memories.replacements import Replacements
from hummock.memories.screening import passages_of, require_may_be_pinned, require_room, unseen_in
from hummock.memories.sessions import written
from hummock.ports.models import Clock
from hummock.ports.store import Store
from hummock.ports.writes import UnitOfWork, Written
from hummock.text.template import as_draft
from hummock.text.told_days import told_time

Value = TypeVar("Value", Draft, MemoryIndex, Payload)

_PLAIN_FIELDS = (
    "origin", "session_id", "speaker", "emotion_label", "trust", "supersedes", "source_hash", "metadata", "pinned",
    "files", "time_zone",
)  # fmt: skip
DELETED_AT_ONCE = 512
"""Memories of one write, when a filter names them: others wait for some tens of milliseconds."""

_ATTEMPTS = 8
"""Times that an update starts again because another write changed the memory in between."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateReply:
    """Reply of an update, kept for repeats of its request_id."""

    memory_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteReply:
    """Reply of a delete, kept for repeats of its request_id."""

    deleted_count: int
    missing_ids: tuple[str, ...] = ()
    remaining_count: int = 0


class Garden:
    """Reads and tends memories by id. Safe to call from several threads."""

    def __init__(self, store: Store, preparation: Preparation, clock: Clock) -> None:
        self._store = store
        self._preparation = preparation
        self._clock = clock
        # Reads are the store's own, without a step between; see `ports.Store`.
        self.get, self.page = store.get, store.page

    def superseded_by(self, project: str, memories: Iterable[Memory | None]) -> Mapping[str, tuple[str, ...]]:
        """Ids of the memories that replace each of these, by id, where there are any."""
        return self._store.superseded_by(project, [memory.id for memory in memories if memory is not None])

    def seq(self, project: str) -> int:
        """Writes that the project has accepted; 0 for an unknown one."""
        return self._store.generation(project).seq

    def memory_count(self, project: str) -> int:
        """Number of memories of the project; 0 for an unknown one."""
        found = self._store.project(project)
        return 0 if found is None else found.memory_count

    def stars(self, project: str, after: int, limit: int) -> Stars:
        """At most `limit` memories after position `after` (0: the first) in the star map, by their writes."""
        return self._store.read(project, lambda found: found.stars(after, limit))

    def stars_of(self, project: str, ids: Sequence[str]) -> Stars:
        """These memories in the star map; what does not exist is left out."""
        return self._store.read(project, lambda found: found.stars_of(ids))

    def events(self, project: str, after: int, where: Filter, *, full: bool) -> EventPage:
        """Return the events after the write `after`: of memories that pass the filter, and all removals."""
        page = self._store.memory_events(project, after, full=full or needs_payload(where))
        told = (_told(event, where, full=full) for event in page.events)
        return replace(page, events=tuple(event for event in told if event is not None))

    def update(self, project: str, request_id: str, memory_id: str, changes: Changes, fingerprint: bytes) -> Updated:
        """Change some fields of a memory and embed it again. A repeated request gets the memory as it is then.

        Raises: MemoryNotFound, InvalidRequest, RequestIdReused, StorageFull; Unavailable when others kept changing it.
        """
        command = WriteCommand(project=project, request_id=request_id, fingerprint=fingerprint)
        for _ in range(_ATTEMPTS):
            with suppress(_Changed):
                return self._update(command, memory_id, changes)
        raise Unavailable(f"memory {memory_id} is being changed by others all the time; try again")

    def delete(self, project: str, request_id: str, ids: Sequence[str], fingerprint: bytes) -> Deleted:
        """Remove memories in one write; ids that do not exist are reported, not an error."""
        unique = tuple(dict.fromkeys(ids))
        if self._store.project(project) is None:
            return Deleted(seq=0, deleted_count=0, missing_ids=unique)

        def apply(work: UnitOfWork) -> DeleteReply:
            missing = tuple(memory_id for memory_id in unique if not work.delete(memory_id))
            return DeleteReply(deleted_count=len(unique) - len(missing), missing_ids=missing)

        command = WriteCommand(project=project, request_id=request_id, fingerprint=fingerprint)
        done = written(self._store, command, DeleteReply, apply)
        return Deleted(seq=done.seq, deleted_count=done.reply.deleted_count, missing_ids=done.reply.missing_ids)

    def delete_where(
        self,
        project: str,
        request_id: str,
        where: Filter,
        fingerprint: bytes,
        *,
        only_count: bool,
        deadline: Deadline = NO_DEADLINE,
    ) -> Deleted:
        """Remove the first memories that pass a filter, DELETED_AT_ONCE at most, or count all of them.

        Raises: ProjectNotFound, RequestIdReused; DeadlinePassed, after which nothing was removed.
        """
        deadline.check()
        ids, count = self._store.read(project, lambda found: found.first_passing(where, DELETED_AT_ONCE))
        # Again, since the project may have had to be loaded; the write itself is not cancelled.
        deadline.check()
        if only_count:
            return Deleted(seq=self.seq(project), deleted_count=count)

        def apply(work: UnitOfWork) -> DeleteReply:
            # A memory changed since may no longer pass.
            there = ((one, work.get(one)) for one in ids)
            deleted = sum(
                memory is not None and passes(memory, where, told_time) and work.delete(one) for one, memory in there
            )
            return DeleteReply(deleted_count=deleted, remaining_count=count - len(ids))

        command = WriteCommand(project=project, request_id=request_id, fingerprint=fingerprint)
        done = written(self._store, command, DeleteReply, apply)
        left = done.reply.remaining_count
        return Deleted(seq=done.seq, deleted_count=done.reply.deleted_count, remaining_count=left)

    def _update(self, command: WriteCommand, memory_id: str, changes: Changes) -> Updated:
        project = command.project
        before = self._existing(project, memory_id)
        settings = self._store.settings(project)
        draft = changed(as_draft(before), changes)
        if changes.time_zone == "":
            draft = replace(draft, time_zone=settings.times.zone or UTC_NAME)
        if changes.is_unproven:
            draft = _believed(draft, as_draft(before))
        (prepared,) = self._preparation.prepare(project, [draft], settings)
        _require_seen(prepared.draft, as_draft(before), settings.review_policy())
        require_may_be_pinned(prepared.draft, as_draft(before), is_admin=not changes.lacks_admin)
        require_room("pinned", prepared, settings, as_draft(before))
        (embeddings,) = self._preparation.embed([prepared])
        stored: Memory | None = None

        def apply(work: UnitOfWork) -> UpdateReply:
            nonlocal stored
            existing = work.get(memory_id)
            if existing is None:
                raise MemoryNotFound(memory_id)
            if existing.fingerprint != before.fingerprint:
                raise _Changed
            require_future("expire_time", [prepared.draft.expire_time], self._clock.now())
            stored = make_memory(prepared, existing, chunk_count=len(embeddings), now=self._clock.now())
            work.put(stored, prepared.key, prepared.words.analysed().terms, embeddings)
            return UpdateReply(memory_id=memory_id)

        done = written(self._store, command, UpdateReply, apply)
        # Another call may have removed it by now; this update still took effect.
        return Updated(memory=stored or self._existing(project, done.reply.memory_id), seq=done.seq)

    def _existing(self, project: str, memory_id: str) -> Memory:
        (memory,) = self._store.get(project, [memory_id], 0, full=True)
        if memory is None:
            raise MemoryNotFound(memory_id)
        return memory


def _believed(draft: Draft, before: Draft) -> Draft:
    """Lower the trust of an INDEXER draft from a caller without the index scope if it raises trust or changes text."""
    is_proven = draft.trust <= before.trust and passages_of(draft) == passages_of(before)
    if draft.origin is not Origin.INDEXER or is_proven:
        return draft
    return replace(draft, trust=min(draft.trust, UNPROVEN_TRUST))


def _require_seen(draft: Draft, before: Draft, policy: ReviewPolicy) -> None:
    """Raises: InvalidRequest: it would be held for review if it was learnt, and was not seen before."""
    new, field = unseen_in(draft, before, policy)
    if new:
        raise InvalidRequest(
            field,
            f"reads like an instruction to a model ({', '.join(new)}), and nobody vouches for it: learn it, so that it "
            "is held for review, or say that a person wrote it (origin MANUAL, trust 0.5 or more)",
        )


class _Changed(Exception):
    """The memory was changed between its read and its write."""


def _told(event: MemoryEvent, where: Filter, *, full: bool) -> MemoryEvent | None:
    """Convert an event for a filter: a memory that no longer passes is reported as deleted."""
    memory = event.memory
    if event.memory_id in where.excluded_ids:
        return None
    if memory is None:
        return event
    if passes(memory, where, told_time):
        return event if full else replace(event, memory=replace(memory, payload=None))
    if event.type is MemoryEventType.CREATED:
        return None
    return replace(event, type=MemoryEventType.DELETED, memory=None)


def changed(draft: Draft, changes: Changes) -> Draft:
    """Apply the changes to the draft; a change of its texts sets its writer.

    Raises InvalidRequest when payload and kind do not fit.
    """
    index = _replaced(draft.index, changes, ("title", "summary", "tags"))
    payload = _replaced(draft.payload, changes, ("content", "raw"))
    if changes.detail_set:
        payload = replace(payload, detail=changes.detail)
    is_rewritten = (index, payload) != (draft.index, draft.payload)
    return replace(
        _replaced(draft, changes, _PLAIN_FIELDS),
        index=index,
        payload=payload,
        event_time=changes.event_time if changes.event_time_set else draft.event_time,
        expire_time=changes.expire_time if changes.expire_time_set else draft.expire_time,
        writer=changes.writer if is_rewritten else draft.writer,
    )


def _replaced(value: Value, changes: Changes, names: Sequence[str]) -> Value:
    given = {name: getattr(changes, name) for name in names}
    return replace(value, **{name: new for name, new in given.items() if new is not None})


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewCommand(WriteCommand):
    """A decision on ids of held memories, and on pairs of a newer and an older id."""

    ids: tuple[str, ...]
    pairs: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """Number of decisions, and ids of what was not there; stored to answer repeated requests."""

    count: int
    missing_ids: tuple[str, ...]


class Review:
    """Lists held memories and probable replacements, and decides on them. Safe to call from several threads."""

    def __init__(self, store: Store, preparation: Preparation, clock: Clock) -> None:
        self._store = store
        self._preparation = preparation
        self._clock = clock
        self._replacements = Replacements(store, preparation)
        # Lists are read without a step between; see `ports.Review` and `Replacements`.
        self.page, self.replacements = store.review.page, self._replacements.page

    def approve(self, command: ReviewCommand) -> Written[Decided]:
        """Store held memories as they are at the start; one that is sent again meanwhile is held again.

        Newer notes of the pairs supersede the older ones. Raises: ProjectNotFound, RequestIdReused, StorageFull;
        InvalidRequest: a note would supersede too many.
        """
        found = self._store.review.get(command.project, list(dict.fromkeys(command.ids)))
        held = [one for one in found if one is not None]
        drafts = [replace(as_draft(one.memory), time_zone=one.memory.time_zone) for one in held]
        prepared = self._preparation.prepare(command.project, drafts, self._store.settings(command.project))
        ready = list(zip(held, prepared, self._preparation.embed(prepared), strict=True))
        decision = self._replacements.decision(command.project, command.pairs, replaces=True)
        now = self._clock.now()

        def apply(work: UnitOfWork) -> Decided:
            approved = set()
            for one, made, vectors in ready:
                if work.review.get(one.memory.id) == one:
                    store_one(work, made, vectors, now)
                    work.review.delete(one.memory.id)
                    approved.add(one.memory.id)
            return _decided(command.ids, approved, decision.apply(work, now))

        return written(self._store, command, Decided, apply)

    def reject(self, command: ReviewCommand) -> Written[Decided]:
        """Delete held memories, and note that the older ones of the pairs hold on.

        Raises: ProjectNotFound, RequestIdReused, StorageFull; InvalidRequest: a note would have too many of them.
        """
        decision = self._replacements.decision(command.project, command.pairs, replaces=False)
        now = self._clock.now()

        def apply(work: UnitOfWork) -> Decided:
            gone = {one for one in command.ids if work.review.delete(one)}
            return _decided(command.ids, gone, decision.apply(work, now))

        return written(self._store, command, Decided, apply)


def _decided(ids: Sequence[str], done: set[str], pairs: tuple[int, tuple[str, ...]]) -> Decided:
    count, missing_pairs = pairs
    missing = tuple(one for one in dict.fromkeys(ids) if one not in done)
    return Decided(count=len(done) + count, missing_ids=missing + missing_pairs)
