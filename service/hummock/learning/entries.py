"""The entries of projects as they are looked for in what users say; cached from turn to turn."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from threading import Lock

from msgspec.structs import replace

from hummock.core.learning import Entry, Profile
from hummock.core.memory import Filter, Memory, MemoryKind
from hummock.ports.store import LearningReader, Store

MAX_PROJECTS = 64
"""Whose entries are cached. A thousand entries are about half a megabyte."""

ENTRIES = Filter(kinds=frozenset({MemoryKind.ENTRY}))
NO_PROFILE = Profile()
"""Of an entry of which nothing was learnt."""

_PAGE = 1000
_FULL_PAGE = 100
"""With their contents, which may be long: no more are read than somebody looks at."""


@dataclass(frozen=True, slots=True)
class _Key:
    """What entries depend on."""

    entries_seq: int
    keywords_event: int


class Entries:
    """Reads entries with their keywords. Safe to call from several threads."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._cache: OrderedDict[str, tuple[_Key, tuple[Entry, ...]]] = OrderedDict()
        self._lock = Lock()

    def of(self, project: str) -> tuple[Entry, ...]:
        """All entries, in the order of their writes; the very same tuple until one of them changes.

        Those that stay what they are stay the same objects; one that was learnt of keeps its place.
        """
        key = self._store.read_learning(project, _key)
        with self._lock:
            cached = self._cache.get(project)
            if cached is not None and cached[0] == key:
                self._cache.move_to_end(project)
                return cached[1]
        # A write that is durable is seen by all reads a moment later; what was read in that moment is not cached.
        is_current = self._store.generation(project).seq >= key.entries_seq
        profiles = self._store.read_learning(project, lambda learning: dict(learning.profiles()))
        if cached is not None and cached[0].entries_seq == key.entries_seq:
            # Only keywords are other ones, as after nearly every turn: there is no need to read the memories again.
            entries = tuple(_with_keywords(entry, profiles.get(entry.memory_id, NO_PROFILE)) for entry in cached[1])
        else:
            entries = self._read(project, profiles)
        if is_current:
            self._remember(project, key, entries)
        return entries

    def memories(self, project: str, *, full: bool) -> Iterator[Memory]:
        """All entries, in the order of their writes."""
        after: int | None = 0
        while after is not None:
            page = self._store.page(project, ENTRIES, after, _FULL_PAGE if full else _PAGE, full=full)
            yield from page.memories
            after = page.next_after

    def _read(self, project: str, profiles: Mapping[str, Profile]) -> tuple[Entry, ...]:
        return tuple(
            Entry(memory_id=one.id, title=one.index.title, keywords=profiles.get(one.id, NO_PROFILE).keywords)
            for one in self.memories(project, full=False)
        )

    def _remember(self, project: str, key: _Key, entries: tuple[Entry, ...]) -> None:
        with self._lock:
            self._cache[project] = (key, entries)
            self._cache.move_to_end(project)
            if len(self._cache) > MAX_PROJECTS:
                self._cache.popitem(last=False)


def _with_keywords(entry: Entry, profile: Profile) -> Entry:
    return entry if entry.keywords == profile.keywords else replace(entry, keywords=profile.keywords)


def _key(learning: LearningReader) -> _Key:
    return _Key(learning.entries_seq(), learning.state().keywords_event)
