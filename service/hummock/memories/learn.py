"""Learn: store memories so that the next recall finds them."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from hashlib import blake2b

import msgspec

from hummock.core.deadline import then
from hummock.core.embedding import Embedding, given_embedding
from hummock.core.errors import InvalidRequest
from hummock.core.memory import LearnCommand, Learned, LearnResult, LearnStatus, Lesson, Memory
from hummock.core.review import Quarantined
from hummock.core.settings import ProjectSettings
from hummock.core.time_zone import day_number, zone_of
from hummock.memories.preparation import Preparation, Prepared, lookups_of, make_memory, sought_key, to_hold
from hummock.memories.screening import families_of, require_room, unseen_in, without_unverified_pin
from hummock.ports.models import Clock, Embedder
from hummock.ports.store import Store
from hummock.ports.writes import TextKey, UnitOfWork, WriteRequest, Written
from hummock.text.told_days import event_time_of, event_time_read

_MOST_PROJECTS = 1024


class SettingsSeen:
    """Cache of the settings of the most recently written projects. Thread-safe.

    Another service may have changed them: if a write finds others, its drafts must be screened again.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._seen: OrderedDict[str, ProjectSettings] = OrderedDict()

    def last(self, project: str) -> ProjectSettings:
        """Return the cached settings of a project; read from the store if there are none."""
        return self._seen.get(project) or self.note(project, self._store.settings(project))

    def note(self, project: str, settings: ProjectSettings) -> ProjectSettings:
        """Cache these settings, and return them."""
        with self._lock:
            self._seen[project] = settings
            self._seen.move_to_end(project)
            if len(self._seen) > _MOST_PROJECTS:
                self._seen.popitem(last=False)
        return settings


_CLOCK_SKEW_S = 60.0
"""Greatest lead, in seconds, of a caller's times over our clock."""

MOST_INTERACTIVE = 8
"""Largest number of memories in an interactive write; more are bulk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """Reply of a Learn, kept for repeats of its request_id; `pending` of its memories wait for their vectors."""

    results: tuple[LearnResult, ...]
    pending: int = 0


class Learn:
    """Stores memories. Safe to call from several threads."""

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
        self._settings = SettingsSeen(store)

    def __call__(self, command: LearnCommand) -> Future[Learned]:
        """Store all lessons or none; they are durable and recallable once the future is done.

        If the command is deferred, memories without a vector are found by words until they are embedded. Blocks on the
        store only if a memory was not embedded because it seemed to be stored already. Drafts are screened by the
        project's policies at the time of the write.

        Raises: InvalidRequest, EmbSpaceMismatch; from the future RequestIdReused, StorageFull.
        """
        now = self._clock.now()
        given = [self._checked(place, lesson, now) for place, lesson in enumerate(command.lessons)]
        embeds = None in given and not command.is_deferred
        settings = self._settings.last(command.project)
        prepared = self._prepared(command, settings)
        if not embeds:
            waiting = [() if vector is None else vector for vector in given]
            return self._write(command, settings, prepared, waiting, now)
        found, known = self._known(command.project, prepared)
        if found != settings:
            settings = self._settings.note(command.project, found)
            prepared = self._prepared(command, settings)
            _, known = self._known(command.project, prepared)
        vectors = self._embedded(command, prepared, given, known)
        written = self._write(command, settings, prepared, vectors, now)
        if None not in vectors:
            return written
        try:
            written.result()
        except VectorsMissing:  # a memory that made embedding needless was removed meanwhile
            vectors = self._embedded(command, prepared, given, [False] * len(prepared))
            return self._write(command, settings, prepared, vectors, now)
        return written

    def _checked(self, place: int, lesson: Lesson, now: float) -> tuple[Embedding, ...] | None:
        """Check the vector sent with a lesson; None if there is none. Raises: InvalidRequest, EmbSpaceMismatch."""
        require_past(f"memories[{place}].create_time", lesson.draft.create_time, now)
        if lesson.vector is None:
            return None
        return (given_embedding(f"memories[{place}].vector", lesson.vector, self._embedder.space),)

    def _known(self, project: str, prepared: Sequence[Prepared]) -> tuple[ProjectSettings, list[bool]]:
        """The project's settings, and which memories are stored already and need no vectors, as far as can be seen now.

        A caller's id is looked for by itself, any other memory by its text.
        """
        # What earlier versions have stored is found by the write alone: that costs an inference, and this a look more.
        keys = [replace(key, earlier=()) for key in map(sought_key, prepared) if key is not None]
        found = self._store.look_up(project, [one.memory_id for one in prepared if one.draft.id], keys)
        memories, holders = iter(found.memories), iter(found.holders)
        known = []
        for one in prepared:
            if one.draft.id:
                memory = next(memories)
                is_stored = memory is not None and memory.fingerprint == one.fingerprint
            else:
                is_stored = one.key is not None and next(holders) is not None
            known.append(bool(one.held_for) or is_stored)
        return found.settings, known

    def _prepared(
        self, command: LearnCommand, settings: ProjectSettings, work: UnitOfWork | None = None
    ) -> list[Prepared]:
        """Prepare and screen the drafts; what is stored under their ids the write says, or the store before one."""
        drafts = [
            without_unverified_pin(lesson.draft) if lesson.draft.pinned else lesson.draft for lesson in command.lessons
        ]
        policy = settings.review_policy()
        prepared = self._preparation.prepare(command.project, drafts, settings, command.deadline)
        read_as = families_of([one.draft for one in prepared], policy, command.deadline)
        if not any(read_as):
            return prepared
        suspects = [
            to_hold(one, families) if families else one for one, families in zip(prepared, read_as, strict=True)
        ]
        ids = [one.memory_id for one in suspects]
        stored = [*map(work.get, ids)] if work else self._store.get(command.project, ids, 0, full=True)
        # A memory with that text was approved then.
        return [
            one if memory is not None and not unseen_in(one.complete, memory, policy)[0] else suspect
            for one, suspect, memory in zip(prepared, suspects, stored, strict=True)
        ]

    def _embedded(
        self,
        command: LearnCommand,
        prepared: Sequence[Prepared],
        given: Sequence[tuple[Embedding, ...] | None],
        known: Sequence[bool],
    ) -> list[tuple[Embedding, ...] | None]:
        vectors = list(given)
        missing = [place for place, vector in enumerate(given) if vector is None and not known[place]]
        wanted = [prepared[place] for place in missing]
        embedded = self._preparation.embed(wanted, command.deadline, is_bulk=command.is_bulk)
        for place, embeddings in zip(missing, embedded, strict=True):
            vectors[place] = embeddings
        return vectors

    def _write(
        self,
        command: LearnCommand,
        settings: ProjectSettings,
        prepared: Sequence[Prepared],
        vectors: Sequence[tuple[Embedding, ...] | None],
        now: float,
    ) -> Future[Learned]:
        def apply(work: UnitOfWork) -> Reply:
            ones, made = prepared, vectors
            found = work.settings()
            if found != settings:  # another service, or another call, has changed them meanwhile
                self._settings.note(command.project, found)
                ones = self._prepared(command, found, work)
                made = _still_true(command.lessons, vectors, prepared, ones)
            require_future("memories[{}].expire_time", [one.draft.expire_time for one in ones], now)
            for place, one in enumerate(ones):
                if one.draft.pinned:
                    require_room(f"memories[{place}].pinned", one, found)
            results = [store_one(work, *pair, now) for pair in zip(ones, made, strict=True)]
            for place, (lesson, one) in enumerate(zip(command.lessons, ones, strict=True)):
                if lesson.draft.pinned and not one.draft.pinned:
                    results[place] = msgspec.structs.replace(results[place], pin_ignored=True)
            written = (LearnStatus.CREATED, LearnStatus.UPDATED)
            pending = sum([vector == () and one.status in written for one, vector in zip(results, made, strict=True)])
            return Reply(results=tuple(results), pending=pending)

        def learned(written: Written[Reply]) -> Learned:
            if written.reply.pending:
                self._on_pending(command.project)
            return Learned(seq=written.seq, results=written.reply.results, pending=written.reply.pending)

        request = WriteRequest(
            request_id=command.request_id,
            fingerprint=command.fingerprint,
            reply_type=Reply,
            apply=apply,
            is_bulk=command.is_bulk or len(prepared) > MOST_INTERACTIVE,
            lookups=lookups_of(prepared),
        )
        return then(self._store.write(command.project, request), learned)


def _still_true(
    lessons: Sequence[Lesson],
    vectors: Sequence[tuple[Embedding, ...] | None],
    before: Sequence[Prepared],
    ones: Sequence[Prepared],
) -> list[tuple[Embedding, ...] | None]:
    """The vectors that were given or are of the text that is stored now; the others are made later."""
    return [
        vector if lesson.vector is not None or one.fingerprint == other.fingerprint else ()
        for lesson, vector, one, other in zip(lessons, vectors, before, ones, strict=True)
    ]


class VectorsMissing(Exception):
    """A memory must be stored but was not embedded."""


def store_one(work: UnitOfWork, one: Prepared, vectors: tuple[Embedding, ...] | None, now: float) -> LearnResult:
    """Store a memory unless it exists; with empty vectors it is queued for embedding. Raises: VectorsMissing for None.

    A draft marked to be held is stored for review, unless a memory has its text already.
    """
    existing = work.get(one.memory_id)
    if existing is not None and existing.fingerprint == one.fingerprint:
        return LearnResult(id=one.memory_id, status=LearnStatus.UNCHANGED, secrets=one.secrets)
    key, sought = one.key, sought_key(one)
    holder = None if sought is None else work.find_by_text(sought)
    if sought is not None and holder is not None and existing is None:
        key = _key_of_its_day(work, sought, holder, one, now)
        holder = holder if key is sought else work.find_by_text(key)
    if existing is None and holder is not None:
        return LearnResult(id=holder, status=LearnStatus.DUPLICATE, duplicate_of=holder, secrets=one.secrets)
    if one.held_for:
        hold(work, make_memory(one, None, chunk_count=0, now=now), one.held_for, now)
        return LearnResult(id=one.memory_id, status=LearnStatus.HELD, secrets=one.secrets, held_for=one.held_for)
    if vectors is None:
        raise VectorsMissing
    memory = make_memory(one, existing, chunk_count=len(vectors), now=now)
    work.put(memory, key, one.words.analysed().terms, vectors)
    status = LearnStatus.CREATED if existing is None else LearnStatus.UPDATED
    return LearnResult(id=one.memory_id, status=status, secrets=one.secrets)


def _key_of_its_day(work: UnitOfWork, key: TextKey, holder: str, one: Prepared, now: float) -> TextKey:
    """The key; another one if the text names another day than when it was told first: "yesterday I ran"."""
    zone = zone_of(one.time_zone)
    named = event_time_of(one.draft.payload.content, now, zone) if one.draft.create_time is None else None
    # The first one is read only where the text names a day: over PostgreSQL that takes a round trip.
    first = None if named is None else work.get(holder)
    before = None if first is None or first.event_time is not None else event_time_read(first)
    if named is None or before is None or day_number(before, zone) == day_number(named, zone):
        return key
    said = key.identity + str(day_number(named, zone)).encode()
    return replace(key, identity=blake2b(said, digest_size=16).digest(), earlier=())


def hold(work: UnitOfWork, memory: Memory, families: tuple[str, ...], now: float) -> None:
    """Holds a memory for review; nothing changes where the same is held already."""
    earlier = work.review.get(memory.id)
    if earlier is None or earlier.memory.fingerprint != memory.fingerprint:
        work.review.put(Quarantined(memory=memory, families=families, hold_time=now))


def require_past(field: str, time: float | None, now: float) -> None:
    """Checks that a caller's time has come, by a clock that may differ from ours. Raises: InvalidRequest."""
    if time is not None and time > now + _CLOCK_SKEW_S:
        raise InvalidRequest(field, f"is {time - now:.0f} s in the future; the limit is {_CLOCK_SKEW_S:.0f} s")


def require_future(field: str, times: Sequence[float | None], now: float) -> None:
    """Checks that no time has passed; `field` has a place for its number. Raises: InvalidRequest."""
    for place, time in enumerate(times):
        if time is not None and time <= now:
            raise InvalidRequest(field.format(place), f"has passed {now - time:.0f} s ago")
