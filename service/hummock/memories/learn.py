"""Learn: store memories so that the next recall finds them."""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from typing import NamedTuple

import msgspec
from msgspec.structs import asdict

from hummock.core.embedding import Embedding, given_embedding
from hummock.core.errors import InvalidRequest
from hummock.core.futures import then
from hummock.core.memory import (
    CodeFragment,
    Draft,
    LearnCommand,
    Learned,
    LearnResult,
    LearnStatus,
    Lesson,
    Memory,
    MemoryIndex,
    Origin,
    Terms,
)
from hummock.core.patience import ENDLESS, Patience
from hummock.core.review import Held
from hummock.core.secrets import SecretPolicy, SecretsFound
from hummock.memories.redaction import screened
from hummock.memories.screening import families_of
from hummock.ports.models import Clock, Embedder
from hummock.ports.store import Lookups, Store, TextKey, UnitOfWork, WriteRequest, Written
from hummock.text import template
from hummock.text.normalise import text_hash
from hummock.text.template import pieces_of
from hummock.text.terms import Piece, terms_of
from hummock.text.tokens import EstimatedTokens

_CLOCK_SKEW_S = 60.0
"""How far ahead of our clock a caller's times may be."""

MOST_INTERACTIVE = 8
"""Memories of a write for which others wait: more are bulk."""

_PREPARED_AT_ONCE = 32
"""What a caller's patience is asked between, with texts as long as they may be: some seconds of work."""

_WAITING_MEMORIES = 256
_SMALL_CHARACTERS = 4096
"""Of a request whose words may wait: what is analysed at once stays below some MiB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What is kept of a Learn for repeats of its request_id; `pending` of its memories wait for their vectors."""

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
        """`on_pending` is told of a project where memories wait for their vectors."""
        self._store = store
        self._embedder = embedder
        self._preparation = preparation
        self._clock = clock
        self._on_pending = on_pending

    def __call__(self, command: LearnCommand) -> Future[Learned]:
        """Store all lessons or none; when the future is done they are durable and recallable.

        Where the command is deferred, those without a vector are found by their words until they get theirs. Waits for
        the store only where something was not embedded, for the store might miss it.

        Raises: InvalidRequest, EmbSpaceMismatch; from the future RequestIdReused, StorageFull.
        """
        now = self._clock.now()
        given = [self._checked(place, lesson, now) for place, lesson in enumerate(command.lessons)]
        drafts = [lesson.draft for lesson in command.lessons]
        settings = self._store.settings(command.project)
        prepared = self._preparation.prepare(command.project, drafts, settings.secret_policy(), command.patience)
        read_as = families_of([one.draft for one in prepared], settings.review_policy(), command.patience)
        if any(read_as):
            prepared = self._held(command.project, prepared, read_as)
        if command.is_deferred:
            waiting: list[tuple[Embedding, ...] | None] = [() if one is None else one for one in given]
            written = self._write(command, prepared, waiting, now)
            written.add_done_callback(lambda _: self._on_pending(command.project))
            return written
        vectors = given
        if None in given:
            vectors = self._embedded(command, prepared, given, self._known(command.project, prepared))
        written = self._write(command, prepared, vectors, now)
        if None not in vectors:
            return written
        try:
            written.result()
        except VectorsMissing:  # a memory that made embedding needless was removed meanwhile
            vectors = self._embedded(command, prepared, given, [False] * len(prepared))
            return self._write(command, prepared, vectors, now)
        return written

    def _checked(self, place: int, lesson: Lesson, now: float) -> tuple[Embedding, ...] | None:
        """The vector that came with a lesson; None where it is to be made. Raises: InvalidRequest, EmbSpaceMismatch."""
        require_past(f"memories[{place}].create_time", lesson.draft.create_time, now)
        if lesson.vector is None:
            return None
        return (given_embedding(f"memories[{place}].vector", lesson.vector, self._embedder.space),)

    def _known(self, project: str, prepared: Sequence[Prepared]) -> list[bool]:
        """Which ones are stored already, as far as can be seen before the write, so that they are not embedded."""
        stored = self._store.get(project, [one.memory_id for one in prepared], 0, full=False)
        keys = [one.key for one in prepared if one.key is not None]
        holders = iter(self._store.find_by_text(project, keys))
        known = []
        for one, memory in zip(prepared, stored, strict=True):
            holder = next(holders) if one.key is not None else None
            if one.held_for:
                known.append(True)
                continue
            known.append(holder is not None if memory is None else memory.fingerprint == one.fingerprint)
        return known

    def _held(self, project: str, prepared: Sequence[Prepared], read_as: Sequence[tuple[str, ...]]) -> list[Prepared]:
        """With what each is to be held for; not where a memory has its text: whoever let that in has seen it."""
        suspects = [
            to_hold(one, families) if families else one for one, families in zip(prepared, read_as, strict=True)
        ]
        stored = self._store.get(project, [one.memory_id for one in suspects], 0, full=False)
        return [
            one
            if memory is not None and memory.content_hash == one.content_hash and memory.kind is one.draft.kind
            else suspect
            for one, suspect, memory in zip(prepared, suspects, stored, strict=True)
        ]

    def _embedded(
        self,
        command: LearnCommand,
        prepared: Sequence[Prepared],
        given: Sequence[tuple[Embedding, ...] | None],
        known: Sequence[bool],
    ) -> list[tuple[Embedding, ...] | None]:
        """The vectors that were given, and those of the other memories that are not known."""
        vectors = list(given)
        missing = [place for place, vector in enumerate(given) if vector is None and not known[place]]
        wanted = [prepared[place] for place in missing]
        embedded = self._preparation.embed(wanted, command.patience, is_bulk=command.is_bulk)
        for place, embeddings in zip(missing, embedded, strict=True):
            vectors[place] = embeddings
        return vectors

    def _write(
        self,
        command: LearnCommand,
        prepared: Sequence[Prepared],
        vectors: Sequence[tuple[Embedding, ...] | None],
        now: float,
    ) -> Future[Learned]:
        def apply(work: UnitOfWork) -> Reply:
            require_future("memories[{}].expire_time", [one.draft.expire_time for one in prepared], now)
            results = tuple(store_one(work, *pair, now) for pair in zip(prepared, vectors, strict=True))
            written = (LearnStatus.CREATED, LearnStatus.UPDATED)
            pending = sum(made == () and one.status in written for one, made in zip(results, vectors, strict=True))
            return Reply(results=results, pending=pending)

        request = WriteRequest(
            request_id=command.request_id,
            fingerprint=command.fingerprint,
            reply_type=Reply,
            apply=apply,
            is_bulk=command.is_bulk or len(prepared) > MOST_INTERACTIVE,
            lookups=lookups_of(prepared),
        )
        return then(self._store.write(command.project, request), _learned)


def lookups_of(prepared: Sequence[Prepared]) -> Lookups:
    """What storing these looks up."""
    return Lookups(
        ids=[one.memory_id for one in prepared],
        texts=[one.key for one in prepared if one.key is not None],
        session_ids=[one.draft.session_id for one in prepared if one.draft.session_id],
        terms=lambda: [one.words.analysed().terms for one in prepared],
    )


def _learned(written: Written[Reply]) -> Learned:
    return Learned(seq=written.seq, results=written.reply.results, pending=written.reply.pending)


class VectorsMissing(Exception):
    """A memory must be stored whose vectors were not made."""


def store_one(work: UnitOfWork, one: Prepared, vectors: tuple[Embedding, ...] | None, now: float) -> LearnResult:
    """Stores a memory unless it is there; with no vectors it waits for them. Raises: VectorsMissing for None.

    One that is to be held is no memory, but for one whose text a memory has already.
    """
    existing = work.get(one.memory_id)
    if existing is not None and existing.fingerprint == one.fingerprint:
        return LearnResult(id=one.memory_id, status=LearnStatus.UNCHANGED, secrets=one.secrets)
    holder = work.find_by_text(one.key) if one.key is not None else None
    if existing is None and holder is not None:
        return LearnResult(id=holder, status=LearnStatus.DUPLICATE, duplicate_of=holder, secrets=one.secrets)
    if one.held_for:
        hold(work, make_memory(one, None, chunk_count=0, now=now), one.held_for, now)
        return LearnResult(id=one.memory_id, status=LearnStatus.HELD, secrets=one.secrets, held_for=one.held_for)
    if vectors is None:
        raise VectorsMissing
    memory = make_memory(one, existing, chunk_count=len(vectors), now=now)
    work.put(memory, one.key, one.words.analysed().terms, vectors)
    status = LearnStatus.CREATED if existing is None else LearnStatus.UPDATED
    return LearnResult(id=one.memory_id, status=status, secrets=one.secrets)


def hold(work: UnitOfWork, memory: Memory, families: tuple[str, ...], now: float) -> None:
    """Holds a memory for review; nothing changes where the same is held already."""
    earlier = work.review.get(memory.id)
    if earlier is None or earlier.memory.fingerprint != memory.fingerprint:
        work.review.put(Held(memory=memory, families=families, hold_time=now))


def to_hold(one: Prepared, families: tuple[str, ...]) -> Prepared:
    """The same to be held for these families; without an id of the caller's, what is equal has one id."""
    own = one.draft.id or str(uuid.UUID(bytes=one.fingerprint))
    return msgspec.structs.replace(one, memory_id=own, held_for=families)


def require_past(field: str, time: float | None, now: float) -> None:
    """Checks that a caller's time has come, by a clock that may differ from ours. Raises: InvalidRequest."""
    if time is not None and time > now + _CLOCK_SKEW_S:
        raise InvalidRequest(field, f"is {time - now:.0f} s in the future; the limit is {_CLOCK_SKEW_S:.0f} s")


def require_future(field: str, times: Sequence[float | None], now: float) -> None:
    """Checks that no time has passed; `field` has a place for its number. Raises: InvalidRequest."""
    for place, time in enumerate(times):
        if time is not None and time <= now:
            raise InvalidRequest(field.format(place), f"has passed {now - time:.0f} s ago")


class Prepared(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A draft with all that storing it needs but its vectors; `index` is complete.

    `secrets` are those that were found in it as it was given; the draft is what is stored. `held_for` says what it is
    held for, where it is.
    """

    draft: Draft
    secrets: tuple[SecretsFound, ...]
    index: MemoryIndex
    memory_id: str
    key: TextKey | None
    content_hash: bytes
    fingerprint: bytes
    words: Words
    held_for: tuple[str, ...] = ()


class Preparation:
    """Turns drafts into what is stored: hashes, terms, chunks, vectors."""

    def __init__(self, embedder: Embedder, counter: EstimatedTokens, make_id: Callable[[], str]) -> None:
        self._embedder = embedder
        self._analysis = Analysis(counter)
        self._make_id = make_id

    def prepare(
        self, project: str, given: Sequence[Draft], policy: SecretPolicy, patience: Patience = ENDLESS
    ) -> list[Prepared]:
        """Everything but the vectors, of each as the policy has it; they are to be stored in this project.

        Raises: what the patience raises, which is asked now and then.
        """
        prepared: list[Prepared] = []
        for start in range(0, len(given), _PREPARED_AT_ONCE):
            patience.check()
            some = [screened(draft, policy) for draft in given[start : start + _PREPARED_AT_ONCE]]
            prepared += self._prepare(project, some)
        return prepared

    def _prepare(self, project: str, screened: Sequence[tuple[Draft, tuple[SecretsFound, ...]]]) -> list[Prepared]:
        given = [draft for draft, _ in screened]
        indexes = [template.derived_index(draft) for draft in given]
        texts = [template.compared(draft, index.title) for draft, index in zip(given, indexes, strict=True)]
        # What a prompt shows of each in full.
        shown = ["\n".join((index.title, *index.tags, text)) for index, text in zip(indexes, texts, strict=True)]
        words = self._analysis.begin(project, zip(map(pieces_of, given), shown, strict=True))
        secrets = [found for _, found in screened]
        return [self._prepared(*parts) for parts in zip(given, secrets, indexes, texts, words, strict=True)]

    def embed(
        self, prepared: Sequence[Prepared], patience: Patience = ENDLESS, *, is_bulk: bool = False
    ) -> list[tuple[Embedding, ...]]:
        """The vectors of each, a chunk each, in order; see `Embedder.embed_documents`."""
        chunks: list[list[str]] = []
        for one in prepared:
            patience.check()
            chunks.append(chunks_of(self._embedder, one.draft))
        return self._embedder.embed_documents(chunks, patience, is_bulk=is_bulk)

    def _prepared(
        self, draft: Draft, secrets: tuple[SecretsFound, ...], index: MemoryIndex, text: str, words: Words
    ) -> Prepared:
        content_hash = text_hash(text, is_code=template.is_code(draft))
        return Prepared(
            draft=draft,
            secrets=secrets,
            index=index,
            memory_id=draft.id or self._make_id(),
            key=_text_key(draft, text, content_hash),
            content_hash=content_hash,
            fingerprint=_fingerprint(draft),
            words=words,
        )


def chunks_of(embedder: Embedder, draft: Draft) -> list[str]:
    """What is embedded of a draft: the texts of its chunks, in order."""
    return embedder.split(*template.embedded(draft.index, draft.payload))


def make_memory(one: Prepared, existing: Memory | None, *, chunk_count: int, now: float) -> Memory:
    """The memory to store; one that is overwritten keeps the time at which it was first learnt."""
    draft = one.draft
    first = existing.create_time if existing is not None else now
    return Memory(
        id=one.memory_id,
        kind=draft.kind,
        origin=draft.origin,
        index=one.index,
        payload=draft.payload,
        session_id=draft.session_id,
        speaker=draft.speaker,
        event_time=draft.event_time,
        emotion_label=draft.emotion_label,
        trust=draft.trust,
        supersedes=draft.supersedes,
        source_hash=draft.source_hash,
        metadata=draft.metadata,
        expire_time=draft.expire_time,
        writer=draft.writer,
        create_time=draft.create_time if draft.create_time is not None else first,
        update_time=now,
        content_hash=one.content_hash,
        fingerprint=one.fingerprint,
        token_count=one.words.analysed().token_count,
        chunk_count=chunk_count,
    )


def _text_key(draft: Draft, text: str, content_hash: bytes) -> TextKey | None:
    """The key under which an equal memory is found. Code is asked for by its path, so its path is part of it."""
    if not _merges(draft):
        return None
    detail = draft.payload.detail
    known = text_hash(f"{detail.path}\n{text}", is_code=True) if isinstance(detail, CodeFragment) else content_hash
    return TextKey(kind=draft.kind, origin=draft.origin, content_hash=known)


def _merges(draft: Draft) -> bool:
    """Whether an equal text makes it a duplicate: turns of a session and pieces of a repository stay what they are."""
    is_turn = bool(draft.session_id) and draft.origin in (Origin.USER_INPUT, Origin.AI_OUTPUT)
    return not is_turn and draft.origin is not Origin.INDEXER


_LATER_FIELDS = ("metadata", "expire_time")


def _fingerprint(draft: Draft) -> bytes:
    """Hash of all fields and their parts by name. It is stored: how a payload lies on disk has no say in it."""
    payload, detail = draft.payload, draft.payload.detail
    body = asdict(payload) | {"detail": None if detail is None else asdict(detail)}
    said = asdict(draft) | {"index": asdict(draft.index), "payload": body}
    # What is the same is the same whoever sends it.
    del said["writer"]
    # What is not said was no field when memories were stored that have the same fingerprint.
    for later in _LATER_FIELDS:
        if not said[later]:
            del said[later]
    return blake2b(msgspec.msgpack.encode(said), digest_size=16).digest()


class Analysed(NamedTuple):
    """The terms and facets of a memory, and the estimate of its tokens when it is rendered in full."""

    terms: Terms
    token_count: int


class Words:
    """What a memory is searched by, and what a prompt shows of it in full."""

    __slots__ = ("_analysis", "found", "pieces", "project", "shown")

    def __init__(self, analysis: Analysis, project: str, pieces: Sequence[Piece], shown: str) -> None:
        self._analysis = analysis
        self.project = project
        self.pieces = pieces
        self.shown = shown
        self.found: Analysed | None = None

    def analysed(self) -> Analysed:
        """What analysing them gives. Unless that has happened, it happens now, to all that wait with them."""
        return self.found or self._analysis.analyse_with_waiting(self)


class Analysis:
    """Analyses the words of a large request at once, and those of small ones when the first of them is needed.

    It is needed by the writer, so that all small requests that wait for it share what NumPy and compiled code take for
    a call. Safe to call from several threads.
    """

    def __init__(self, counter: EstimatedTokens) -> None:
        self._counter = counter
        # Those that are never asked for, since their request was answered before, fall out.
        self._waiting: deque[Words] = deque(maxlen=_WAITING_MEMORIES)

    def begin(self, project: str, memories: Iterable[tuple[Sequence[Piece], str]]) -> list[Words]:
        """The words of the memories of one request, each by its pieces and by what of it is shown."""
        words = [Words(self, project, pieces, shown) for pieces, shown in memories]
        if sum(len(text) for one in words for text, _ in one.pieces) > _SMALL_CHARACTERS:
            self._analyse(words)
        else:
            self._waiting.extend(words)
        return words

    def analyse_with_waiting(self, wanted: Words) -> Analysed:
        """Analyses these words, and with them all that wait, whosever they are."""
        several = {wanted: None}
        with suppress(IndexError):
            while True:
                several[self._waiting.popleft()] = None
        try:
            # What is stored together lies together.
            return self._analyse(sorted(several, key=lambda one: one.project))[wanted]
        except Exception:
            # The others are analysed when they are needed, so that the one at fault fails alone.
            return self._analyse([wanted])[wanted]

    def _analyse(self, words: Sequence[Words]) -> dict[Words, Analysed]:
        terms = terms_of([one.pieces for one in words])
        counts = self._counter.counts([one.shown for one in words])
        several = dict(zip(words, map(Analysed, terms, counts), strict=True))
        for one, found in several.items():
            one.found = found
        return several
