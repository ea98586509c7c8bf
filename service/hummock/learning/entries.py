"""The entries of projects as they are looked for in what users say; kept from turn to turn."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from threading import Lock

from hummock.core.learning import Entry, Profile
from hummock.core.memory import Filter, Memory, MemoryKind
from hummock.ports.store import LearningReader, Store

MAX_PROJECTS = 64
"""Whose entries are kept. A thousand entries are about half a megabyte."""

_PAGE = 1000
_FULL_PAGE = 100
"""With their contents, which may be long: no more are read than somebody looks at."""
_NO_PROFILE = Profile()
ENTRIES = Filter(kinds=frozenset({MemoryKind.ENTRY}))


@dataclass(frozen=True, slots=True)
class _Key:
    """What entries depend on."""

    entries_seq: int
    keywords_event: int


class Entries:
    """Reads entries with their keywords. Safe to call from several threads."""

    def __init__(self, store: Store) -> None:
        """Args are where they are."""
        self._store = store
        self._kept: OrderedDict[str, tuple[_Key, tuple[Entry, ...]]] = OrderedDict()
        self._lock = Lock()

    def of(self, project: str) -> tuple[Entry, ...]:
        """All entries, in the order of their writes; the very same tuple until one of them changes.

        Those that stay what they are stay the same objects; one that was learnt of keeps its place.
        """
        key = self._store.read_learning(project, _key)
        with self._lock:
            kept = self._kept.get(project)
            if kept is not None and kept[0] == key:
                self._kept.move_to_end(project)
                return kept[1]
        # A write that is durable is seen by all reads a moment later; what was read in that moment is not kept.
        is_current = self._store.generation(project).seq >= key.entries_seq
        profiles = self._store.read_learning(project, lambda learning: dict(learning.profiles()))
        if kept is not None and kept[0].entries_seq == key.entries_seq:
            # Only keywords are other ones, as after nearly every turn: there is no need to read the memories again.
            entries = tuple(_with_keywords(entry, profiles.get(entry.memory_id, _NO_PROFILE)) for entry in kept[1])
        else:
            entries = self._read(project, profiles)
        if is_current:
            self._keep(project, key, entries)
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
            Entry(
                memory_id=memory.id,
                title=memory.index.title,
                keywords=profiles.get(memory.id, _NO_PROFILE).keywords,
            )
            for memory in self.memories(project, full=False)
        )

    def _keep(self, project: str, key: _Key, entries: tuple[Entry, ...]) -> None:
        with self._lock:
            self._kept[project] = (key, entries)
            self._kept.move_to_end(project)
            if len(self._kept) > MAX_PROJECTS:
                self._kept.popitem(last=False)


def _with_keywords(entry: Entry, profile: Profile) -> Entry:
    return entry if entry.keywords == profile.keywords else replace(entry, keywords=profile.keywords)


def _key(learning: LearningReader) -> _Key:
    return _Key(learning.entries_seq(), learning.state().keywords_event)
