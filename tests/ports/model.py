"""A store as a dictionary: slow, obvious, and the judge of the others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from hummock.core.memory import MemoryKind
from tests.strategies import Entry, embedding, unit_vector

K1, B = 1.2, 0.75


@dataclass(slots=True)
class ModelProject:
    """One project's memories in the order of their writes."""

    entries: dict[str, Entry] = field(default_factory=dict)
    learned: dict[str, tuple[str, ...]] = field(default_factory=dict)
    seq: int = 0
    content_seq: int = 0

    def put(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            self.entries.pop(entry.id, None)
            self.entries[entry.id] = entry
        self._accept(changed=bool(entries))

    def delete(self, memory_ids: Sequence[str]) -> None:
        before = len(self.entries)
        for memory_id in memory_ids:
            self.entries.pop(memory_id, None)
            self.learned.pop(memory_id, None)
        self._accept(changed=len(self.entries) < before)

    def learn(self, memory_id: str, words: tuple[str, ...]) -> None:
        has_changed = set(self.learned.get(memory_id, ())) != set(words)
        if has_changed:
            self.entries[memory_id] = self.entries.pop(memory_id)
            self.learned[memory_id] = words
        self._accept(changed=has_changed)

    def embed(self, entry: Entry) -> None:
        """Adds the vectors of an entry that waits for them; it keeps its place."""
        waits = entry.id in self.entries and not self.entries[entry.id].seeds
        if waits:
            self.entries[entry.id] = entry
        self._accept(changed=waits)

    def foreign(self, kind: MemoryKind, mark: int) -> int:
        """Number of memories of a kind whose first chunk's token vectors end as the mark says, or that lack vectors.

        Code is never in Chinese (a mark above 0), and all of it is in the other language where marks do not tell.
        """
        is_code = kind is MemoryKind.CODE_FRAGMENT
        if is_code and mark >= 0:
            return sum(entry.kind is kind for entry in self.entries.values()) * (not mark)
        if not mark:
            return 0
        of_kind = [entry for entry in self.entries.values() if entry.kind is kind]
        return sum(not entry.seeds or (embedding(entry.seeds[0]).tokens[-1, -1] < 0) == (mark < 0) for entry in of_kind)

    def cosine(self, entry: Entry, seed: int) -> float:
        chunks = [unit_vector(chunk).astype(np.float16).astype(np.float32) for chunk in entry.seeds]
        best = max((float(chunk @ unit_vector(seed)) for chunk in chunks), default=math.nan)
        # Rounded to float16, a unit vector may be a little longer than 1.
        return best if math.isnan(best) else min(max(best, -1.0), 1.0)

    def keyword(self, entry: Entry, terms: Sequence[str]) -> float:
        everyone = list(self.entries.values())
        mean_length = sum(map(_length, everyone)) / len(everyone)
        total = 0.0
        for term in terms:
            count = self._weighted_count(entry, term)
            df = sum(self._weighted_count(other, term) > 0 for other in everyone)
            if count:
                idf = math.log(1 + (len(everyone) - df + 0.5) / (df + 0.5))
                total += idf * count * (K1 + 1) / (count + K1 * (1 - B + B * _length(entry) / mean_length))
        return total

    def _weighted_count(self, entry: Entry, term: str) -> float:
        own = 2.0 * entry.title.count(term) + 1.5 * entry.tags.count(term) + entry.words.count(term)
        return own + 0.5 * self.learned.get(entry.id, ()).count(term)

    def _accept(self, *, changed: bool) -> None:
        self.seq += 1
        self.content_seq += changed


def _length(entry: Entry) -> int:
    return len(entry.title) + len(entry.tags) + len(entry.words)
