"""A cache in front of recall: answers of the last minutes, for equal queries."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from operator import methodcaller
from threading import Lock
from typing import Any, Generic, NamedTuple, TypeVar

from msgspec.msgpack import Encoder
from msgspec.structs import astuple, replace

from hummock.core.recall import SECONDS_A_DAY, DecayMode, Hit, Recalled, RecallQuery, Receipt, StageTime, ages_days
from hummock.ports.models import Clock
from hummock.ports.store import Reads, Snapshot
from hummock.recall.plan import PRESETS, apply_settings, decay_of
from hummock.recall.stage_budget import DEADLINE
from hummock.text.question import question_of
from hummock.text.time_words import time_intervals

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

TTL_S = 300.0
"""Five minutes, as the first plug-in had it. A write makes another key, so no answer is outdated for a moment."""

MAX_ENTRIES = 512
"""More than people repeat within five minutes. Each entry is some hundred objects that the garbage collector visits."""

MAX_BYTES = 32 * 1024 * 1024
"""Room for all entries at some 60 KB; typical answers take 30 to 75 KB."""

DECAY_TOLERANCE = 1e-4
"""Greatest relative difference between the decay factors of a cached answer and the current ones: two minutes for a
half-life of 14 days, which no displayed score shows."""

_PATIENCE = 0.5
"""Share of the remaining time spent waiting for an equal recall under way; the rest is for computing the answer."""

_LARGEST_SHARE = 8
"""An answer above this part of the room is not cached: a few of them would push everybody else's out."""

_INLINE_BYTES = 128 * 1024
"""Largest cached answer that is given on the event loop whatever its recall would take."""

_FORMS = 2
"""Copies of an answer in memory: the objects, and the bytes of the reply."""

_HIT_BYTES = 1024
"""Estimate for a hit and its neighbour without their texts: their objects, ids, tags and facts."""

_encoder = Encoder(enc_hook=methodcaller("tobytes"), order="deterministic")
"""Encodes queries, of which equal ones have equal bytes, and weighs payloads."""


@dataclass(slots=True, eq=False)
class Cached:
    """An answer in the cache, and its `replies`, with and without raw texts, each made at the first request for it."""

    recalled: Recalled
    nbytes: int = 0
    replies: dict[bool, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Answer:
    """The answer to one caller, computed or cached, with the values that differ between callers.

    Attributes:
        of: The answer as it was computed.
        is_cached: Whether another caller's recall computed it.
        project_settings: Paths of the fields of the request that the project's settings filled in.
        seq: The newest seq at which it is valid.
        elapsed_s: Duration of the look-up of a cached answer.
        as_of: Unix seconds from which its ages count; None keeps those of the recall.
    """

    of: Cached
    is_cached: bool
    project_settings: tuple[str, ...]
    seq: int
    elapsed_s: float = 0.0
    as_of: float | None = None

    def receipt(self) -> Receipt:
        """The receipt of this caller."""
        receipt = self.of.recalled.receipt
        if not self.is_cached:
            return replace(receipt, project_settings=self.project_settings) if self.project_settings else receipt
        return replace(
            receipt,
            project_settings=self.project_settings,
            cached=True,
            stages=(StageTime(stage="cache", elapsed_s=self.elapsed_s),),
            elapsed_s=self.elapsed_s,
            as_of=receipt.as_of if self.as_of is None else self.as_of,
        )

    def recalled(self) -> Recalled:
        """The whole answer."""
        recalled = replace(self.of.recalled, receipt=self.receipt(), seq=self.seq)
        if self.as_of is None:
            return recalled
        return replace(
            recalled,
            hits=_aged(recalled.hits, self.as_of),
            code_fragments=_aged(recalled.code_fragments, self.as_of),
            domains=_aged(recalled.domains, self.as_of),
        )


def _aged(hits: Sequence[Hit], now: float) -> tuple[Hit, ...]:
    ages = ages_days([hit.memory.create_time for hit in hits], now)
    return tuple([replace(hit, age_days=age) for hit, age in zip(hits, ages, strict=True)])


class CachedRecall:
    """Answers like the recall inside, from a cache where possible. Safe to call from several threads.

    The key holds the project's content_seq, the time its last memory expired, and all of the request, so a recall after
    a write or an expiry never sees an older answer. If the request leaves `as_of` to the clock, ages are recomputed for
    each caller. With decay, scores would have to follow, so an answer is reused only for a short while and states its
    `as_of`; with words such as "yesterday" it is reused for as long as they mean the same days. Degraded answers are
    not cached.
    """

    def __init__(
        self,
        recall: Callable[[RecallQuery, Snapshot], Recalled],
        store: Reads,
        emb_space: str,
        clock: Clock,
        is_inline: Callable[[RecallQuery, Snapshot], bool] = lambda query, project: False,
    ) -> None:
        """Cache the answers of a recall.

        Args:
            recall: Computes answers.
            store: The store that it reads.
            emb_space: The id of its embedder's space.
            clock: The clock.
            is_inline: Whether it answers a query within a few milliseconds and without blocking.
        """
        self._is_inline = is_inline
        self._recall = recall
        self._store = store
        self._emb_space = emb_space
        self._clock = clock
        self._answers: AnswerCache[tuple[bytes, int, float, str], Cached] = AnswerCache(
            monotonic=clock.monotonic, ttl_s=TTL_S, max_entries=MAX_ENTRIES, max_bytes=MAX_BYTES
        )

    def __call__(self, query: RecallQuery) -> Recalled:
        """The best memories of each group of the query's preset, and why.

        Raises: EmbSpaceMismatch, InvalidRequest, SeqNotReached.
        """
        return self.answer(query).recalled()

    def within(self, query: RecallQuery, project: Snapshot) -> Recalled:
        """The answer from a snapshot that the caller has taken; raises as a call does."""
        return self._answer(query, project).recalled()

    def usage(self) -> tuple[int, int]:
        """Answers that are kept, and their bytes."""
        return self._answers.usage()

    def answer(self, query: RecallQuery) -> Answer:
        """Return the answer, cached or computed, from which a reply can be made; raises what a recall raises."""
        return self._store.read(
            query.project, partial(self._answer, query), min_seq=query.min_seq, allow_stale=query.allow_stale
        )

    def inline(self, query: RecallQuery) -> Answer | None:
        """Answer on the event loop, or None if that needs a load, an embedding, a language model or a wait.

        Raises: EmbSpaceMismatch, InvalidRequest, SeqNotReached.
        """
        return self._store.read_at_once(query.project, partial(self._inline, query))

    def _inline(self, query: RecallQuery, project: Snapshot) -> Answer | None:
        question = self._question(query, project)
        cached = self._answers.find(question.key)
        if cached is not None and cached.nbytes <= _INLINE_BYTES and self._is_usable(question, cached):
            return self._reused(question, cached)
        return self._of_all(question, 0.0) if self._is_inline(question.query, project) else None

    def _question(self, query: RecallQuery, project: Snapshot) -> _Question:
        started = self._clock.monotonic()
        if query.min_seq:
            project.require(query.min_seq)
        asked, from_project = apply_settings(query, project.settings)
        if query.min_seq or query.allow_stale:
            # Both are dealt with; in the key they would separate otherwise equal requests.
            asked = replace(asked, min_seq=0, allow_stale=False)
        # Without the deadline, the last field. Bytes keep their hash, which a query would compute at each look-up.
        key = (_encoder.encode(astuple(asked)[:-1]), project.content_seq, project.expired_at, self._emb_space)
        mode = asked.decay_mode or PRESETS[asked.preset].decay_mode
        decays = asked.as_of is None and mode is not DecayMode.OFF
        return _Question(asked, key, project, from_project, started, decays)

    def _answer(self, query: RecallQuery, project: Snapshot) -> Answer:
        question = self._question(query, project)
        if project.stale_s is not None:
            return _own(question, Cached(self._recall(question.query, project)))
        patience_s = None if query.until_s is None else max(0.0, _PATIENCE * (query.until_s - question.started))
        return self._of_all(question, patience_s)

    def _of_all(self, question: _Question, patience_s: float | None) -> Answer:
        """An answer that others have computed, or are about to, or else of its own."""
        cached, is_shared = self._answers.answer(
            question.key,
            partial(self._fresh, question),
            is_usable=partial(self._is_usable, question),
            patience_s=patience_s,
        )
        return self._reused(question, cached) if is_shared else _own(question, cached)

    def _fresh(self, question: _Question) -> tuple[Cached, int | None]:
        """The answer computed, and its bytes; None if it must not be cached."""
        recalled = self._recall(question.query, question.project)
        nbytes = None if recalled.degraded else len(question.key[0]) + _FORMS * size_of(recalled)
        return Cached(recalled, nbytes or 0), nbytes

    def _is_usable(self, question: _Question, cached: Cached) -> bool:
        query, recalled = question.query, cached.recalled
        if recalled.degraded and any(left_out.reason == DEADLINE for left_out in recalled.degraded):
            # Another caller's deadline is none of this one's.
            return False
        if query.echo_window_s is not None and query.as_of is None and any(one.echo for one in recalled.receipt.groups):
            # Echoes that were left out may be old enough by now.
            return False
        if recalled.receipt.times and self._are_times_others(query, recalled):
            return False
        if not question.decays:
            return True
        half_life_s = decay_of(query).half_life_days * SECONDS_A_DAY
        return abs(self._clock.now() - recalled.receipt.as_of) <= DECAY_TOLERANCE * half_life_s

    def _are_times_others(self, query: RecallQuery, cached: Recalled) -> bool:
        """Whether the query's words mean other times now: from midnight on, or at once ("the last two weeks").

        Times relative to an event do not change until something is written.
        """
        is_given = query.as_of is not None or (query.intent is not None and bool(query.intent.times))
        times = () if is_given else time_intervals(question_of(query.text), self._clock.now(), query.zone)
        return bool(times) and times != cached.receipt.times

    def _reused(self, question: _Question, cached: Cached) -> Answer:
        """Adapt a cached answer to this caller: the time of its ages, and the newest seq at which it is valid."""
        is_dated = question.query.as_of is None and not question.decays
        return Answer(
            of=cached,
            is_cached=True,
            project_settings=question.from_project,
            seq=max(cached.recalled.seq, question.project.seq),
            elapsed_s=self._clock.monotonic() - question.started,
            as_of=self._clock.now() if is_dated else None,
        )


class _Question(NamedTuple):
    """A query with its defaults filled in, and its cache key: all that the answer depends on.

    The key contains the whole request, including project and vector: two projects never share an answer, and new fields
    of the request are part of the key automatically.
    """

    query: RecallQuery
    key: tuple[bytes, int, float, str]
    project: Snapshot
    from_project: tuple[str, ...]
    started: float
    decays: bool  # With the clock.


def size_of(recalled: Recalled) -> int:
    """Estimated bytes of an answer in memory: its payloads as they are encoded, all else by the number of memories."""
    hits = (*recalled.hits, *recalled.code_fragments, *recalled.domains)
    memories = [memory for hit in hits for memory in (hit.memory, *hit.before, *hit.after)]
    return _HIT_BYTES * len(memories) + len(_encoder.encode([memory.payload for memory in memories]))


def _own(question: _Question, computed: Cached) -> Answer:
    """The answer that was computed for this very caller."""
    return Answer(of=computed, is_cached=False, project_settings=question.from_project, seq=computed.recalled.seq)


class AnswerCache(Generic[Key, Value]):
    """Answers by key, the least recently used evicted first, each for a fixed time. Safe to call from several threads.

    An expired answer is removed when it is looked up; one that is not looked up any more is removed when a later one is
    added, so that deleted memories do not stay in memory for as long as there is room.
    """

    def __init__(self, *, monotonic: Callable[[], float], ttl_s: float, max_entries: int, max_bytes: int) -> None:
        """Opens an empty cache; `monotonic` gives seconds from some start."""
        self._monotonic = monotonic
        self._ttl_s = ttl_s
        self._max_entries = max_entries
        self._max_bytes = max_bytes
        self._lock = Lock()
        self._entries: OrderedDict[Key, _Entry[Value]] = OrderedDict()
        self._under_way: dict[Key, Future[Value]] = {}
        self._nbytes = 0
        self._sweep_at = monotonic() + ttl_s

    def answer(
        self,
        key: Key,
        compute: Callable[[], tuple[Value, int | None]],
        *,
        is_usable: Callable[[Value], bool],
        patience_s: float | None = None,
    ) -> tuple[Value, bool]:
        """Return the answer, and whether it came from the cache or from a computation already under way.

        An error of `compute` is raised in all waiting callers, as a separate exception for each, and is not cached. Nor
        is an answer that a caller computes because the one under way was not usable.

        Args:
            key: Equal for equal questions.
            compute: Called when there is no answer and none is under way; returns one, and its bytes, None if it must
                not be cached. Must not ask for the same key.
            is_usable: Whether another caller's answer serves this one; if not, it is computed again.
            patience_s: How long to wait for an answer that is under way; None means as long as it takes.
        """
        with self._lock:
            cached = self._find(key)
            if cached is not None and is_usable(cached):
                return cached, True
            waiting = self._under_way.get(key)
            if waiting is None:
                promised = self._under_way[key] = Future[Value]()
        if waiting is not None:
            shared = _result_of(waiting, patience_s)
            return (shared, True) if shared is not None and is_usable(shared) else (compute()[0], False)
        try:
            value, nbytes = compute()
        except BaseException as error:
            self._end(key)
            promised.set_exception(error)
            # The error keeps this frame alive, and would keep itself alive through it.
            del promised
            raise
        self._end(key, value, nbytes)
        promised.set_result(value)
        return value, False

    def find(self, key: Key) -> Value | None:
        """The cached answer, which need not serve the caller; None where there is none."""
        with self._lock:
            return self._find(key)

    def usage(self) -> tuple[int, int]:
        """Answers in the cache, and their bytes."""
        with self._lock:
            return len(self._entries), self._nbytes

    def _find(self, key: Key) -> Value | None:
        entry = self._entries.get(key)
        if entry is None:
            return None
        if self._monotonic() >= entry.expires_at:
            self._drop(key)
            return None
        self._entries.move_to_end(key)
        return entry.value

    def _end(self, key: Key, value: Value | None = None, nbytes: int | None = None) -> None:
        """End a computation in one step, so that the answer is always either under way or cached."""
        with self._lock:
            del self._under_way[key]
            if value is not None and nbytes is not None and nbytes <= self._max_bytes // _LARGEST_SHARE:
                self._put(key, value, nbytes)

    def _put(self, key: Key, value: Value, nbytes: int) -> None:
        now = self._monotonic()
        if now >= self._sweep_at:
            self._sweep(now)
        if key in self._entries:
            self._drop(key)
        self._entries[key] = _Entry(value=value, nbytes=nbytes, expires_at=now + self._ttl_s)
        self._nbytes += nbytes
        while len(self._entries) > self._max_entries or self._nbytes > self._max_bytes:
            self._drop(next(iter(self._entries)))

    def _sweep(self, now: float) -> None:
        for key in [key for key, entry in self._entries.items() if now >= entry.expires_at]:
            self._drop(key)
        self._sweep_at = now + self._ttl_s

    def _drop(self, key: Key) -> None:
        self._nbytes -= self._entries.pop(key).nbytes


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry(Generic[Value]):
    value: Value
    nbytes: int
    expires_at: float


def _result_of(waiting: Future[Value], patience_s: float | None) -> Value | None:
    """Wait for a result; None after `patience_s` seconds.

    Raises a copy of its exception: a caller may change what it catches, as `move_into` does.
    """
    try:
        error = waiting.exception(patience_s)
    except TimeoutError:
        return None
    if error is None:
        return waiting.result()
    kind = type(error)
    # Not copy.copy: it would call __init__ with the message instead of the original arguments.
    own = kind.__new__(kind, *error.args)
    own.__dict__.update(error.__dict__)
    raise own from error
