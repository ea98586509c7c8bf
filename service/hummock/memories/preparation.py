"""Prepares drafts for the store, everything that can be computed before the write: secrets taken out, and words."""

from __future__ import annotations

import uuid
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from typing import NamedTuple

import msgspec
from msgspec.structs import asdict, replace

from hummock.core.deadline import NO_DEADLINE, Deadline
from hummock.core.embedding import Calibration, Embedding
from hummock.core.memory import (
    CodeFragment,
    Detail,
    DomainKnowledge,
    Draft,
    LearningRecord,
    Memory,
    MemoryIndex,
    MemoryKind,
    Origin,
    SecretPolicy,
    SecretsFound,
    Terms,
)
from hummock.core.settings import ProjectSettings
from hummock.core.time_zone import UTC_NAME
from hummock.ports.models import Embedder
from hummock.ports.writes import Lookups, TextKey
from hummock.text import template
from hummock.text.credentials import may_hold_secret, redacted
from hummock.text.likeness import identity
from hummock.text.normalise import text_hash
from hummock.text.template import pieces_of
from hummock.text.terms import Piece, terms_of
from hummock.text.tokens import EstimatedTokens


def screened(draft: Draft, policy: SecretPolicy) -> tuple[Draft, tuple[SecretsFound, ...]]:
    """Screen a draft for secrets. Returns the draft to store and the secrets found in the given one.

    If secrets are redacted, each is replaced by a mark in every text that reaches the disk or the model. Ids, paths and
    file names are kept, since they are looked up as they are. One look over all texts, joined, passes most drafts.
    """
    if policy is SecretPolicy.OFF or not may_hold_secret("\n".join(_searched(draft))):
        return draft, ()
    search = _Search()
    without = search.draft(draft)
    return (without if policy is SecretPolicy.REDACT else draft), _said(search.found, policy)


def screened_texts(texts: Sequence[str], policy: SecretPolicy) -> tuple[list[str], tuple[SecretsFound, ...]]:
    """The texts to store, in their order, and the secrets found in them; redacted as by `screened`."""
    if policy is SecretPolicy.OFF:
        return list(texts), ()
    search = _Search()
    without = [search.text(text) for text in texts]
    return (without if policy is SecretPolicy.REDACT else list(texts)), _said(search.found, policy)


def _searched(draft: Draft) -> Iterator[str]:
    """All texts in which `_Search` looks for secrets."""
    index, payload, detail = draft.index, draft.payload, draft.payload.detail
    yield from (index.title, index.summary, *index.tags, payload.content, payload.raw)
    yield from (f"{name}={value}" for name, value in draft.metadata)
    match detail:
        case LearningRecord():
            yield from (detail.question, detail.answer)
        case DomainKnowledge():
            yield detail.summary
        case CodeFragment():
            yield detail.symbol


class _Search:
    """Redacts the secrets in texts, and counts them by kind."""

    def __init__(self) -> None:
        self.found: Counter[str] = Counter()

    def draft(self, draft: Draft) -> Draft:
        index, payload = draft.index, draft.payload
        return replace(
            draft,
            index=replace(
                index,
                title=self.text(index.title),
                summary=self.text(index.summary),
                tags=tuple(map(self.text, index.tags)),
            ),
            payload=replace(
                payload,
                content=self.text(payload.content),
                raw=self.text(payload.raw),
                detail=self._detail(payload.detail),
            ),
            metadata=tuple((name, self._value(name, value)) for name, value in draft.metadata),
        )

    def text(self, text: str) -> str:
        without = redacted(text)
        self.found.update(without.kinds)
        return without.text

    def _value(self, name: str, value: str) -> str:
        """Redact a value, both by itself and as part of "name=value"."""
        before = f"{name}="
        return self.text(before + self.text(value)).removeprefix(before)

    def _detail(self, detail: Detail) -> Detail:
        match detail:
            case LearningRecord():
                return replace(detail, question=self.text(detail.question), answer=self.text(detail.answer))
            case DomainKnowledge():
                return replace(detail, summary=self.text(detail.summary))
            case CodeFragment():
                return replace(detail, symbol=self.text(detail.symbol))
        return detail


def _said(found: Mapping[str, int], policy: SecretPolicy) -> tuple[SecretsFound, ...]:
    is_redacted = policy is SecretPolicy.REDACT
    return tuple(SecretsFound(kind=kind, count=count, redacted=is_redacted) for kind, count in sorted(found.items()))


_WAITING_MEMORIES = 256
_SMALL_CHARACTERS = 4096
"""Largest request, in characters, that is analysed at once: its terms take a few MiB."""


class Analysed(NamedTuple):
    """The terms and facets of a memory, and the estimate of its tokens when it is rendered in full."""

    terms: Terms
    token_count: int


class Words:
    """The words by which a memory is searched, and the token count of its full text."""

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
    """Analyses words: of a large request at once, of small requests together when the first of them is needed.

    The writer needs them, so all small requests that wait for it share the fixed cost of NumPy and compiled calls. Safe
    to call from several threads.
    """

    def __init__(self, counter: EstimatedTokens) -> None:
        self._counter = counter
        # Words that are never needed, as of repeated requests, are dropped from the front.
        self._waiting: deque[Words] = deque(maxlen=_WAITING_MEMORIES)

    def begin(self, project: str, memories: Iterable[tuple[Sequence[Piece], str]]) -> list[Words]:
        """Return the words of the memories of one request, given their pieces and shown texts."""
        words = [Words(self, project, pieces, shown) for pieces, shown in memories]
        if sum([len(text) for one in words for text, _ in one.pieces]) > _SMALL_CHARACTERS:
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
            # Sorted, so that memories of one project are analysed together.
            return self._analyse(sorted(several, key=lambda one: one.project))[wanted]
        except Exception:
            # The others are analysed when needed, so that only the faulty one fails.
            return self._analyse([wanted])[wanted]

    def _analyse(self, words: Sequence[Words]) -> dict[Words, Analysed]:
        terms = terms_of([one.pieces for one in words])
        counts = self._counter.counts([one.shown for one in words])
        several = dict(zip(words, map(Analysed, terms, counts), strict=True))
        for one, found in several.items():
            one.found = found
        return several


_PREPARED_AT_ONCE = 32
"""Memories prepared between two checks of the deadline: some seconds of work for the longest texts."""


class Prepared(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A draft with all that is needed to store it, except vectors; `index` is complete.

    `secrets` are those found in the given text; `draft` is the one to store. `held_for` has the families of
    instructions for which it is held, if any; `time_zone` is the draft's, or else the project's.
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
    time_zone: str = ""

    @property
    def complete(self) -> Draft:
        """The draft with the complete index."""
        return msgspec.structs.replace(self.draft, index=self.index)


class Preparation:
    """Computes what is stored for a draft: hashes, terms, chunks, vectors."""

    def __init__(self, embedder: Embedder, counter: EstimatedTokens, make_id: Callable[[], str]) -> None:
        self._embedder = embedder
        self._analysis = Analysis(counter)
        self._make_id = make_id

    @property
    def calibration(self) -> Calibration:
        """The calibration of the embedder's cosines."""
        return self._embedder.space.calibration

    def prepare(
        self, project: str, given: Sequence[Draft], settings: ProjectSettings, deadline: Deadline = NO_DEADLINE
    ) -> list[Prepared]:
        """Prepare drafts for this project, screened by its policy for secrets; everything except vectors.

        Raises: what the deadline raises, which is checked now and then.
        """
        policy, zone = settings.secret_policy(), settings.times.zone or ""
        prepared: list[Prepared] = []
        for start in range(0, len(given), _PREPARED_AT_ONCE):
            deadline.check()
            some = [screened(draft, policy) for draft in given[start : start + _PREPARED_AT_ONCE]]
            prepared += self._prepare(project, zone, some)
        return prepared

    def _prepare(
        self, project: str, zone: str, screened: Sequence[tuple[Draft, tuple[SecretsFound, ...]]]
    ) -> list[Prepared]:
        given = [draft for draft, _ in screened]
        indexes = [template.derived_index(draft) for draft in given]
        texts = [
            template.compared(draft.kind, index.title, draft.payload)
            for draft, index in zip(given, indexes, strict=True)
        ]
        # The full text of each in a prompt.
        shown = ["\n".join((index.title, *index.tags, text)) for index, text in zip(indexes, texts, strict=True)]
        words = self._analysis.begin(project, zip(map(pieces_of, given), shown, strict=True))
        secrets = [found for _, found in screened]
        return [self._prepared(*parts, zone) for parts in zip(given, secrets, indexes, texts, words, strict=True)]

    def embed(
        self, prepared: Sequence[Prepared], deadline: Deadline = NO_DEADLINE, *, is_bulk: bool = False
    ) -> list[tuple[Embedding, ...]]:
        """The vectors of each, a chunk each, in order; see `Embedder.embed_documents`."""
        chunks: list[list[str]] = []
        for one in prepared:
            deadline.check()
            chunks.append(chunks_of(self._embedder, one.draft))
        return self._embedder.embed_documents(chunks, deadline, is_bulk=is_bulk)

    def _prepared(
        self, draft: Draft, secrets: tuple[SecretsFound, ...], index: MemoryIndex, text: str, words: Words, zone: str
    ) -> Prepared:
        content_hash = text_hash(text, is_code=template.is_code(draft.kind))
        zone = draft.time_zone or zone
        return Prepared(
            draft=draft,
            secrets=secrets,
            index=index,
            memory_id=draft.id or self._make_id(),
            key=_text_key(draft, index, text, content_hash),
            content_hash=content_hash,
            fingerprint=_fingerprint(draft),
            words=words,
            time_zone="" if zone == UTC_NAME else zone,
        )


def to_hold(one: Prepared, families: tuple[str, ...], message_id: str = "") -> Prepared:
    """Mark a draft to be held for these families, at least one; without a caller's id, equal drafts share one id.

    `message_id` is the session message that it comes from, if any: equal messages are held separately.
    """
    # Equal drafts of two writers are held separately.
    parts = [one.draft.writer, message_id] if message_id else [one.draft.writer]
    said = blake2b(one.fingerprint + "\0".join(parts).encode(), digest_size=16).digest()
    own = one.draft.id or str(uuid.UUID(bytes=said))
    return msgspec.structs.replace(one, memory_id=own, held_for=families)


def sought_key(one: Prepared) -> TextKey | None:
    """Return the key to find an equal memory; None if the caller's id identifies the memory."""
    return None if one.draft.id else one.key


def lookups_of(prepared: Sequence[Prepared]) -> Lookups:
    """Look-ups for storing these memories."""
    return Lookups(
        ids=[one.memory_id for one in prepared],
        texts=[key for key in map(sought_key, prepared) if key is not None],
        session_ids=[one.draft.session_id for one in prepared if one.draft.session_id],
        terms=lambda: [one.words.analysed().terms for one in prepared],
    )


def chunks_of(embedder: Embedder, draft: Draft) -> list[str]:
    """Texts of a draft's chunks to embed, in order."""
    return embedder.split(*template.embedded(draft.index, draft.payload))


def make_memory(one: Prepared, existing: Memory | None, *, chunk_count: int, now: float) -> Memory:
    """Build the memory to store; an overwritten one keeps the time at which it was first learnt.

    Unless its text is another one, it also keeps what it was told apart from, and its time zone if the draft has none.
    A new memory with a given create time has it as its update time too, so that old knowledge counts as old.
    """
    draft = one.draft
    first = existing.create_time if existing is not None else now
    told = draft.create_time if draft.create_time is not None else first
    same = existing if existing is not None and existing.content_hash == one.content_hash else None
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
        pinned=draft.pinned,
        distinct_from=draft.distinct_from or (() if same is None else same.distinct_from),
        files=draft.files,
        time_zone=one.time_zone if same is None or draft.time_zone else same.time_zone,
        create_time=told,
        update_time=told if existing is None else now,
        content_hash=one.content_hash,
        fingerprint=one.fingerprint,
        token_count=one.words.analysed().token_count,
        chunk_count=chunk_count,
    )


def _text_key(draft: Draft, index: MemoryIndex, text: str, content_hash: bytes) -> TextKey | None:
    """Return the key to find an equal memory; None for turns of a session and fragments of a repository.

    These never count as equal to another.
    """
    is_turn = bool(draft.session_id) and draft.origin in (Origin.USER_INPUT, Origin.AI_OUTPUT)
    if is_turn or draft.origin is Origin.INDEXER:
        return None
    return TextKey(
        kind=draft.kind,
        origin=draft.origin,
        identity=identity(draft, index),
        earlier=_earlier_hashes(draft, text, content_hash),
        create_time=draft.create_time,
    )


def _earlier_hashes(draft: Draft, text: str, content_hash: bytes) -> tuple[bytes, ...]:
    """What texts were known by when folded texts were one: of code the path too, of entries at first no title."""
    match draft.payload.detail:
        case CodeFragment(path=path):
            return (text_hash(f"{path}\n{text}", is_code=True),)
        case None if draft.kind is MemoryKind.ENTRY:
            return content_hash, text_hash(template.told(draft.payload), is_code=False)
    return (content_hash,)


def _fingerprint(draft: Draft) -> bytes:
    """Hash all fields and their parts by name. It is stored, so it must not depend on the disk format."""
    payload, detail = draft.payload, draft.payload.detail
    body = asdict(payload) | {"detail": None if detail is None else asdict(detail)}
    said = asdict(draft) | {"index": asdict(draft.index), "payload": body}
    # Independent of the writer, and of what was decided about its text.
    del said["writer"], said["distinct_from"]
    # Unset later fields are left out, so that fingerprints stored before these fields existed stay valid.
    for later in ("metadata", "expire_time", "pinned", "files", "time_zone"):
        if not said[later]:
            del said[later]
    return blake2b(msgspec.msgpack.encode(said), digest_size=16).digest()
