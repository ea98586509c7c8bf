"""A store as a dictionary: slow, obvious, and the judge of the others."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from hummock.core.candidates import Candidates
from hummock.core.memory import Filter, Memory, MemoryEventType, MemoryKind
from hummock.ports.store import Generation, Store
from tests.ports.asking import ask
from tests.snapshots import at
from tests.store.opening import opened
from tests.strategies import (
    IDS,
    WORDS,
    Entry,
    delete_request,
    embedded_request,
    embedding,
    entries,
    learned_request,
    put_request,
    unit_vector,
)

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


PROJECTS = ("p", "项目")
LEARNED = ("tide", "core", "loan", "潮汐", "还款")
"""Words of which each is a term as it stands."""


def with_chunks(memory: Memory, chunk_count: int) -> Memory:
    return msgspec.structs.replace(memory, chunk_count=chunk_count)


class StoreMachine(RuleBasedStateMachine):
    """Random writes to two projects; after each, the store must answer like a dictionary, also after reopening."""

    @initialize(budget=st.sampled_from([0, 1 << 26]))
    def open(self, budget: int) -> None:
        self.budget = budget
        self.cleanup = ExitStack()
        self.directory = Path(self.cleanup.enter_context(tempfile.TemporaryDirectory()))
        self.model = {name: ModelProject() for name in PROJECTS}
        self.watched: dict[str, dict[str, Memory]] = {name: {} for name in PROJECTS}
        self.position = dict.fromkeys(PROJECTS, 0)
        self.seeds: set[int] = set()
        self.opening = ExitStack()
        self.store: Store = self._opened()

    @rule(project=st.sampled_from(PROJECTS))
    def watch(self, project: str) -> None:
        """A watcher that applies every event, and lists again after a gap, has all memories."""
        page = self.store.memory_events(project, self.position[project], full=True)
        mirror = self.watched[project]
        if page.is_reset:
            mirror.clear()
            mirror.update({one.id: one for one in self.store.page(project, Filter(), 0, 100, full=True).memories})
        for event in page.events:
            if event.memory is None:
                assert mirror.pop(event.memory_id)
            else:
                assert (event.memory_id in mirror) == (event.type is MemoryEventType.UPDATED)
                mirror[event.memory_id] = event.memory
        self.position[project] = page.seq
        # That vectors came is no event.
        assert {one: with_chunks(memory, 0) for one, memory in mirror.items()} == {
            entry.id: with_chunks(entry.memory(), 0) for entry in self.model[project].entries.values()
        }

    @rule(project=st.sampled_from(PROJECTS), batch=st.lists(entries(), max_size=4))
    def put(self, project: str, batch: list[Entry]) -> None:
        self.model[project].put(batch)
        written = self.store.write(project, put_request(batch)).result(timeout=30)
        assert written.seq == self.model[project].seq

    @rule(project=st.sampled_from(PROJECTS), memory_ids=st.lists(st.sampled_from(IDS), max_size=3))
    def delete(self, project: str, memory_ids: list[str]) -> None:
        self.model[project].delete(memory_ids)
        self.store.write(project, delete_request(memory_ids)).result(timeout=30)

    @rule(
        project=st.sampled_from(PROJECTS),
        memory_id=st.sampled_from(IDS),
        words=st.lists(st.sampled_from(LEARNED), max_size=3, unique=True).map(tuple),
    )
    def learn(self, project: str, memory_id: str, words: tuple[str, ...]) -> None:
        if memory_id in self.model[project].entries:
            self.model[project].learn(memory_id, words)
            self.store.write(project, learned_request(memory_id, *words)).result(timeout=30)

    @rule(
        project=st.sampled_from(PROJECTS),
        memory_id=st.sampled_from(IDS),
        seeds=st.lists(st.integers(0, 9), min_size=1, max_size=3).map(tuple),
    )
    def embed(self, project: str, memory_id: str, seeds: tuple[int, ...]) -> None:
        entry = self.model[project].entries.get(memory_id)
        if entry is not None:
            embedded = replace(entry, seeds=seeds)
            self.model[project].embed(embedded)
            self.store.write(project, embedded_request(embedded)).result(timeout=30)

    @rule()
    def reopen(self) -> None:
        self.opening.close()
        self.store = self._opened()

    @rule(
        project=st.sampled_from(PROJECTS),
        seed=st.integers(0, 9),
        terms=st.lists(st.sampled_from([*WORDS, "unknown"]), max_size=4, unique=True),
    )
    def search(self, project: str, seed: int, terms: list[str]) -> None:
        model = self.model[project]
        found = ask(self.store, project, seed=seed, terms=terms, min_seq=model.seq)
        self._is_as_in_the_model(found, model, seed, terms)

    @invariant()
    def knows_how_much_is_in_another_language(self) -> None:
        for project, model in self.model.items():
            for mark in (-1, 0, 1):
                each = {kind: model.foreign(kind, mark) for kind in MemoryKind}
                assert {kind: at(self.store, project).foreign({kind}, mark) for kind in MemoryKind} == each
                assert at(self.store, project).foreign(tuple(MemoryKind), mark) == sum(each.values())

    @invariant()
    def finds_vectors_by_their_texts(self) -> None:
        """Vectors are found for every text that is stored, and for every one that was removed."""
        self.seeds |= {
            seed for model in self.model.values() for entry in model.entries.values() for seed in entry.seeds
        }
        seeds = sorted(self.seeds)
        for seed, found in zip(seeds, self.store.vectors([embedding(seed).digest for seed in seeds]), strict=True):
            assert found is not None
            assert found.digest == embedding(seed).digest
            np.testing.assert_array_equal(found.vector, unit_vector(seed).astype(np.float16).astype(np.float32))
            np.testing.assert_array_equal(found.tokens, embedding(seed).tokens)
        assert self.store.vectors([b"nobody has this."]) == [None]

    @invariant()
    def holds_the_same_memories(self) -> None:
        for name, model in self.model.items():
            expected = [entry.memory() for entry in model.entries.values()]
            assert list(self.store.page(name, Filter(), 0, 100, full=True).memories) == expected
            known = self.store.get(name, IDS, model.seq, full=True)
            assert [memory for memory in known if memory is not None] == [
                model.entries[memory_id].memory() for memory_id in IDS if memory_id in model.entries
            ]
            project = self.store.project(name)
            counts = (project.seq, project.content_seq, project.pending_count) if project else (0, 0, 0)
            pending = [entry for entry in model.entries.values() if not entry.seeds]
            assert counts == (model.seq, model.content_seq, len(pending))
            waiting = self.store.load(name, self.store.pending(name, 100), full=True)
            assert waiting == [entry.memory() for entry in pending]
            assert self.store.generation(name) == Generation(seq=model.seq, content_seq=model.content_seq)

    def teardown(self) -> None:
        if hasattr(self, "opening"):
            self.opening.close()
            self.cleanup.close()

    def _opened(self) -> Store:
        return self.opening.enter_context(opened(self.directory, memory_budget_bytes=self.budget))

    def _is_as_in_the_model(self, found: Candidates, model: ModelProject, seed: int, terms: list[str]) -> None:
        cosine = {entry.id: model.cosine(entry, seed) for entry in model.entries.values()}
        keyword = {entry.id: model.keyword(entry, terms) for entry in model.entries.values()}
        expected = {name for name in model.entries if not np.isnan(cosine[name]) or keyword[name] > 0}
        assert (set(found.memory_id), found.searched) == (expected, len(model.entries))
        for place, name in enumerate(found.memory_id):
            assert found.cosine[place] == pytest.approx(cosine[name], abs=1e-5, nan_ok=True)
            assert found.keyword[place] == pytest.approx(keyword[name], rel=1e-5)
            held = {position for position, term in enumerate(terms) if found.matched[place] >> position & 1 and term}
            entry = model.entries[name]
            assert held == {
                position
                for position, term in enumerate(terms)
                if term in (*entry.words, *entry.title, *entry.tags, *model.learned.get(name, ()))
            }


TestStoreMachine = pytest.mark.long(StoreMachine.TestCase)
TestStoreMachine.settings = settings(max_examples=25, stateful_step_count=20, deadline=None, derandomize=True)
