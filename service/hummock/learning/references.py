"""The entries of projects, and which of them a text refers to, by names and keywords, as they are or with a slip."""

from __future__ import annotations

from array import array
from collections import OrderedDict, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Final
from weakref import WeakValueDictionary

import numpy as np
from msgspec import structs
from rapidfuzz.distance import OSA

from hummock.core.learning import Entry, Profile, Reference
from hummock.core.memory import Filter, Memory, MemoryKind
from hummock.learning.phrases import Phrase, Spoken, may_stand_for, phrases_of, short_forms, spoken, stands
from hummock.ports.store import Snapshot

MAX_PROJECTS = 64
"""Projects whose entries and names are cached. A thousand entries are about half a megabyte, their names one."""

ENTRIES = Filter(kinds=frozenset({MemoryKind.ENTRY}))
NO_PROFILE = Profile()
"""Profile of an entry without learnt words."""

_PAGE = 1000
_FULL_PAGE = 100
"""With their contents, which may be long: no more are read than somebody looks at."""


@dataclass(frozen=True, slots=True)
class _Key:
    entries_seq: int
    keywords_event: int
    expired_at: float


@dataclass(frozen=True, slots=True)
class _Kept:
    """A project's entries, and those of their memories that are decoded somewhere: the store keeps some."""

    key: _Key
    entries: tuple[Entry, ...]
    memories: WeakValueDictionary[str, Memory] = field(default_factory=WeakValueDictionary)


class Entries:
    """Reads entries with their keywords. Safe to call from several threads."""

    def __init__(self) -> None:
        self._cache: OrderedDict[str, _Kept] = OrderedDict()
        self._lock = Lock()

    def of(self, project: str, snapshot: Snapshot) -> tuple[Entry, ...]:
        """Return all entries in write order; the same tuple object until one of them changes.

        Unchanged entries stay the same objects; one with a new profile keeps its place.
        """
        key = _Key(*snapshot.entries_version, snapshot.expired_at)
        with self._lock:
            cached = self._cache.get(project)
            if cached is not None and cached.key == key:
                self._cache.move_to_end(project)
                return cached.entries
        profiles = dict(snapshot.learning().profiles())
        if cached is not None and replace(cached.key, keywords_event=key.keywords_event) == key:
            # Only keywords are other ones, as after nearly every turn: there is no need to read the memories again.
            entries = tuple(
                _with_keywords(entry, profiles.get(entry.memory_id, NO_PROFILE)) for entry in cached.entries
            )
            kept = _Kept(key, entries, cached.memories)
        else:
            entries = tuple(_entry(one, profiles.get(one.id, NO_PROFILE)) for one in memories(snapshot, full=False))
            kept = _Kept(key, entries)
        # A snapshot is without what was written since; it is not cached as if it were with it.
        if snapshot.seq >= key.entries_seq:
            with self._lock:
                self._cache[project] = kept
                self._cache.move_to_end(project)
                if len(self._cache) > MAX_PROJECTS:
                    self._cache.popitem(last=False)
        return entries

    def load(
        self, project: str, entries: Sequence[Entry], snapshot: Snapshot, memory_ids: Sequence[str]
    ) -> list[Memory | None]:
        """Return the memories as `Snapshot.get` does; entries that are decoded are not looked up again.

        `entries` are what `of` gave for this snapshot.
        """
        kept = self._cache.get(project)
        decoded = {} if kept is None or kept.entries is not entries else kept.memories
        found = [decoded.get(memory_id) for memory_id in memory_ids]
        unknown = [memory_id for memory_id, memory in zip(memory_ids, found, strict=True) if memory is None]
        if unknown:
            read = dict(zip(unknown, snapshot.get(unknown), strict=True))
            decoded.update({one.id: one for one in read.values() if one is not None and one.kind is MemoryKind.ENTRY})
            found = [memory or read[one] for one, memory in zip(memory_ids, found, strict=True)]
        return found

    def forget(self, project: str) -> None:
        """A project was deleted."""
        with self._lock:
            self._cache.pop(project, None)


def memories(snapshot: Snapshot, *, full: bool) -> Iterator[Memory]:
    """Yield all entries, in the order of their writes."""
    after: int | None = 0
    while after is not None:
        page = snapshot.page(ENTRIES, after, _FULL_PAGE if full else _PAGE, full=full)
        yield from page.memories
        after = page.next_after


def _entry(memory: Memory, profile: Profile) -> Entry:
    return Entry(memory_id=memory.id, title=memory.index.title, keywords=profile.keywords)


def _with_keywords(entry: Entry, profile: Profile) -> Entry:
    return entry if entry.keywords == profile.keywords else structs.replace(entry, keywords=profile.keywords)


_TOLERATED_DISTANCE: Final = 0.4
_ALMOST = 1e-9
_NEVER = np.iinfo(np.int32).max
_LEAST_DEAD = 256


@dataclass(frozen=True, slots=True, eq=False)
class _ProjectNames:
    index: NameIndex = field(default_factory=lambda: NameIndex())
    lock: Lock = field(default_factory=Lock)


@dataclass(frozen=True, slots=True, eq=False)
class _Match:
    """A stretch of the text that a phrase resembles; `memory_ids` are the entries that have it."""

    start: int
    end: int
    similarity: float
    phrase: str
    memory_ids: frozenset[str]


class ProjectReferences:
    """Finds references; caches the names of the projects that were asked about last. Safe to call from threads."""

    def __init__(self) -> None:
        self._cache: OrderedDict[str, _ProjectNames] = OrderedDict()
        self._lock = Lock()

    def __call__(self, project: str, text: str, entries: Sequence[Entry], min_similarity: float, /) -> list[Reference]:
        """Find the entries that a text refers to, each once, the most similar first, ties by id.

        Callers pass the same sequence object while a project's entries are unchanged.
        """
        with self._lock:
            names = self._cache.setdefault(project, _ProjectNames())
            self._cache.move_to_end(project)
            if len(self._cache) > MAX_PROJECTS:
                self._cache.popitem(last=False)
        with names.lock:
            names.index.follow(entries)
            return names.index.references(text, min_similarity)


def references(text: str, entries: Sequence[Entry], min_similarity: float) -> list[Reference]:
    """The entries that a text refers to, the most similar first, equal ones by id; each once.

    For repeated calls with the same entries keep a `NameIndex`.
    """
    index = NameIndex()
    index.follow(entries)
    return index.references(text, min_similarity)


class NameIndex:
    """The names of a project's entries, by the pairs and trigrams that they are made of. For one thread at a time.

    A text is compared only with phrases that share enough of them to be in it: of ten thousand entries, with a few.
    """

    def __init__(self) -> None:
        self._entries: Sequence[Entry] = ()
        self._known: dict[str, tuple[Entry, list[int]]] = {}
        self._phrases: list[tuple[Phrase, str]] = []
        self._postings: dict[str, array[int]] = {}
        self._gram_counts = array("i")
        self._edits = array("i")
        self._edited_grams = array("i")
        self._dead = 0

    def follow(self, entries: Sequence[Entry]) -> None:
        """Update the index to these entries; unchanged ones cost almost nothing."""
        if entries is self._entries:
            return
        wanted = {entry.memory_id: entry for entry in entries}
        for memory_id in [known for known in self._known if known not in wanted]:
            self._forget(memory_id)
        for memory_id, entry in wanted.items():
            known = self._known.get(memory_id)
            if known is None or (known[0] is not entry and known[0] != entry):
                self._forget(memory_id)
                self._remember(entry)
        self._entries = entries
        if self._dead > max(_LEAST_DEAD, len(self._phrases) // 2):
            self.__init__()  # type: ignore[misc] # as it was when it was made
            self.follow(entries)

    def references(self, text: str, min_similarity: float) -> list[Reference]:
        """The entries that a text refers to, the most similar first, equal ones by id; each once."""
        said = spoken(text)
        # Many entries may have one phrase, which is looked for once.
        owners: dict[tuple[str, str, float], list[str]] = {}
        looked_for: dict[tuple[str, str, float], tuple[Phrase, int]] = {}
        for number, edits in self._candidates(said, min_similarity):
            phrase, memory_id = self._phrases[number]
            key = phrase.text, phrase.written, phrase.similarity
            owners.setdefault(key, []).append(memory_id)
            looked_for[key] = phrase, edits
        owners_of_text: defaultdict[str, set[str]] = defaultdict(set)
        for (phrase_text, *_), memory_ids in owners.items():
            owners_of_text[phrase_text].update(memory_ids)
        matches = [
            match
            for key, (phrase, edits) in looked_for.items()
            # A part that several names have means none of them.
            if phrase.similarity == 1 or (phrase.similarity >= min_similarity and len(owners_of_text[phrase.text]) == 1)
            for match in _matches(phrase, frozenset(owners[key]), edits, said)
        ]
        best: dict[str, float] = {}
        for match in _undisputed(matches):
            for memory_id in match.memory_ids:
                best[memory_id] = max(best.get(memory_id, 0.0), match.similarity)
        found = [Reference(memory_id=memory_id, similarity=similarity) for memory_id, similarity in best.items()]
        return sorted(found, key=lambda one: (-one.similarity, one.memory_id))

    def _remember(self, entry: Entry) -> None:
        phrases = {phrase.text: phrase for phrase in short_forms(entry.title)}
        phrases |= {phrase.text: phrase for name in (entry.title, *entry.keywords) for phrase in phrases_of(name)}
        numbers = []
        for phrase in phrases.values():
            number = len(self._phrases)
            self._phrases.append((phrase, entry.memory_id))
            self._gram_counts.append(len(phrase.grams))
            self._edits.append(phrase.edits)
            self._edited_grams.append(phrase.edited_grams)
            for gram, _ in phrase.grams:
                self._postings.setdefault(gram, array("i")).append(number)
            numbers.append(number)
        self._known[entry.memory_id] = (entry, numbers)

    def _forget(self, memory_id: str) -> None:
        """Its phrases stay in the lists, where nothing finds them, until there are too many such."""
        _, numbers = self._known.pop(memory_id, (None, []))
        for number in numbers:
            self._gram_counts[number] = _NEVER
        self._dead += len(numbers)

    def _candidates(self, said: Spoken, min_similarity: float) -> list[tuple[int, int]]:
        """Phrases that share enough grams with the text, with the edits that each may have."""
        lists = [np.frombuffer(self._postings[gram], np.int32) for gram in said.grams if gram in self._postings]
        if not lists:
            return []
        shared = np.bincount(np.concatenate(lists), minlength=len(self._phrases))
        near = np.flatnonzero(shared)
        share = (1 - min_similarity) / _TOLERATED_DISTANCE + _ALMOST
        edits = (np.frombuffer(self._edits, np.int32)[near] * share).astype(np.int32)
        lost = edits * np.frombuffer(self._edited_grams, np.int32)[near]
        enough = shared[near] >= np.maximum(np.frombuffer(self._gram_counts, np.int32)[near] - lost, 1)
        # A dead one has more grams than any edit takes away.
        return list(zip(near[enough].tolist(), edits[enough].tolist(), strict=True))


def _matches(phrase: Phrase, memory_ids: frozenset[str], edits: int, said: Spoken) -> list[_Match]:
    found: list[_Match] = []
    least = edits
    for start, end in _stretches(phrase, edits, said):
        part = said.text[start:end]
        distance = OSA.distance(phrase.text, part, score_cutoff=least)
        if distance > least or not (
            may_stand_for(said.text[max(0, start - 1) : start], part, phrase)
            if distance
            else stands(phrase, start, said)
        ):
            continue
        if distance < least:
            found, least = [], distance
        similarity = 1 - _TOLERATED_DISTANCE * distance / phrase.edits if distance else phrase.similarity
        found.append(_Match(start, end, similarity, phrase.text, memory_ids))
    return found


def _stretches(phrase: Phrase, edits: int, said: Spoken) -> list[tuple[int, int]]:
    """Return spans of whole units, near a pair or trigram of the phrase and of about its length."""
    starts = {
        start
        for gram, offset in phrase.grams
        if len(gram) > 1
        for at in said.grams.get(gram, ())
        for start in range(at - offset - edits, at - offset + edits + 1)
        if start in said.starts
    }
    length = len(phrase.text)
    return [
        (start, end)
        for start in sorted(starts)
        for end in range(start + max(1, length - edits), start + length + edits + 1)
        if end in said.ends
    ]


def _undisputed(matches: Sequence[_Match]) -> list[_Match]:
    """Keep the best match of each span of text.

    A phrase inside a longer one is part of that name; an ambiguous misspelling matches none.
    """
    chosen: list[_Match] = []
    # Indexed by character, since a long text may have hundreds of matches and only overlapping ones compete.
    chosen_at: defaultdict[int, list[_Match]] = defaultdict(list)
    for match in sorted(_unambiguous(matches), key=lambda one: (-one.similarity, one.start - one.end, one.start)):
        near = (other for at in range(match.start, match.end) for other in chosen_at.get(at, ()))
        if not any(_yields_to(match, other) for other in near if other.phrase != match.phrase):
            chosen.append(match)
            for at in range(match.start, match.end):
                chosen_at[at].append(match)
    return chosen


def _unambiguous(matches: Sequence[_Match]) -> Iterator[_Match]:
    """Yield matches without the entries for which a misspelling is ambiguous."""
    alike: defaultdict[tuple[int, int, float], list[_Match]] = defaultdict(list)
    for match in matches:
        alike[match.start, match.end, match.similarity].append(match)
    for match in matches:
        rivals = [other for other in alike[match.start, match.end, match.similarity] if other.phrase != match.phrase]
        if match.similarity == 1 or not rivals:
            yield match
            continue
        others = frozenset[str]().union(*(other.memory_ids for other in rivals))
        # Other names of the entry itself are no rivals.
        if len(others) == 1 and others <= match.memory_ids:
            yield replace(match, memory_ids=others)


def _yields_to(match: _Match, other: _Match) -> bool:
    """Whether a match that is as good or better leaves nothing of this one."""
    length, overlap = match.end - match.start, min(match.end, other.end) - max(match.start, other.start)
    if overlap == length:
        return other.end - other.start > length or other.similarity > match.similarity
    return match.similarity < other.similarity and 2 * overlap > length
