"""Memories that were loaded lately are not decoded again, and never outlive a change of their records."""

from __future__ import annotations

import pytest

from hummock.core.memory import Memory
from hummock.store.tables import recent, record_codec
from hummock.store.tables.recent import DecodedMemories
from tests.ports.asking import ask
from tests.snapshots import at
from tests.strategies import Entry
from tests.workplace import Workplace, note

MEMORY = Entry(id="m").memory()


class Decodes:
    """Counts memories that are decoded."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self._decode = record_codec.memory_of
        monkeypatch.setattr(record_codec, "memory_of", self)

    def __call__(self, value: bytes, payload: bytes | None) -> Memory:
        self.count += 1
        return self._decode(value, payload)


def test_a_memory_that_is_loaded_again_is_not_decoded_again(work: Workplace, monkeypatch: pytest.MonkeyPatch) -> None:
    work.teach(note("the tide is low", "a"), note("the core is dry", "b"))
    docs = ask(work.store, seed=1).rows["doc"].tolist()
    decodes = Decodes(monkeypatch)
    first = at(work.store, "p").load(docs, full=True)
    assert decodes.count == 2
    assert at(work.store, "p").load(docs, full=True) == first
    assert decodes.count == 2
    assert [each and each.payload for each in at(work.store, "p").load(docs, full=False)] == [None, None]
    assert at(work.store, "p").load(docs, full=True) == first


def test_a_memory_whose_record_changed_is_loaded_anew(work: Workplace) -> None:
    work.teach(note("the tide is low", "a"), is_deferred=True)
    docs = ask(work.store, terms=("tide",)).rows["doc"].tolist()
    (waiting,) = at(work.store, "p").load(docs, full=True)
    work.embed_pending()
    (embedded,) = at(work.store, "p").load(docs, full=True)
    assert waiting is not None
    assert embedded is not None
    assert (waiting.chunk_count, embedded.chunk_count) == (0, 1)


def test_a_removed_memory_is_not_loaded(work: Workplace) -> None:
    work.teach(note("the tide is low", "a"), note("the core is dry", "b"))
    docs = ask(work.store, seed=1).rows["doc"].tolist()
    at(work.store, "p").load(docs, full=True)
    work.garden.delete("p", "", ["a"], b"f")
    assert at(work.store, "p").load(docs, full=True).count(None) == 1
    kept = work.store._projects._decoded
    assert [memory.id for _, memory, _ in (*kept._young.values(), *kept._old.values())] == ["b"]


def test_what_was_not_asked_for_is_dropped_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent, "DECODED_MEMORY_BYTES", 20 * recent._MEMORY_BYTES)
    memories = DecodedMemories()
    for doc in range(100):
        memories.keep(1, doc, b"sums", MEMORY, 0)
        assert memories.get(1, [0, doc], [b"sums", b"others"]) == [MEMORY, None]
    assert memories.get(2, [99], [b"sums"]) == [None]
    held = [doc for doc in range(100) if memories.get(1, [doc], [b"sums"]) != [None]]
    assert len(held) <= 21
    assert {0, 99} < set(held)
