"""Memories that get the vectors of another model in the background."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from hummock.core.embedding import Embedding, EmbeddingSpace
from hummock.core.errors import StorageFull
from hummock.memories.reembed import Reembedding
from hummock.store import WritableStore
from tests.ports.asking import put
from tests.store.opening import opened
from tests.strategies import SPACE, Entry, unit_vector
from tests.workplace import WordEmbedder, Workplace, note, workplace

NEXT = replace(SPACE, id="6e" * 16, model="next-model")


class NextEmbedder(WordEmbedder):
    """Notes when it was opened and closed, and fails for a text that says so."""

    def __init__(self, log: list[str]) -> None:
        super().__init__()
        self._log = log
        log.append("opened")

    @property
    def space(self) -> EmbeddingSpace:
        """The next space."""
        return NEXT

    def embed_in_turn(self, chunks: Sequence[str]) -> Iterator[Embedding]:
        if any("fails" in chunk for chunk in chunks):
            raise ValueError("of this model")
        self._log.extend(chunks)
        yield from super().embed_in_turn(chunks)

    def close(self) -> None:
        self._log.append("closed")


def reembedding(store: WritableStore, log: list[str]) -> Reembedding:
    return Reembedding(store, NEXT, store.space_beside(NEXT), lambda: NextEmbedder(log))


def test_all_memories_of_all_projects_get_vectors_once(work: Workplace) -> None:
    """A later process goes on where this one ended; what is learnt meanwhile comes with the next pass."""
    work.teach(note("red kites", "a"), note("harbour lamp", "b"))
    work.teach(note("whale oil", "c"), project="q")
    log: list[str] = []
    first = reembedding(work.store, log)
    assert "about to be" in first.advice()
    first.embed_missing()
    assert log == ["opened", "red kites", "harbour lamp", "whale oil", "closed"]
    assert "restart" in first.advice()

    log.clear()
    work.teach(note("blue tide", "d"))
    first.embed_missing()
    assert log == ["opened", "blue tide", "closed"]

    log.clear()
    reembedding(work.store, log).embed_missing()
    assert log == []


def test_a_memory_that_fails_waits_for_its_vectors_after_the_switch(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its content is not in the log."""
    with workplace(tmp_path) as work:
        work.teach(note("red kites", "a"), note("this fails", "b"))
        reembedding(work.store, []).embed_missing()
    assert "could not be embedded" in caplog.text
    assert "fails" not in caplog.text
    with opened(tmp_path, space=NEXT) as store:
        (waiting,) = store.load("p", store.pending("p", 10), full=False)
        assert waiting is not None
        assert waiting.id == "b"


def test_it_ends_between_two_memories(work: Workplace) -> None:
    work.teach(*(note(f"word{number}", f"m{number}") for number in range(100)))
    log: list[str] = []
    ending = reembedding(work.store, log)
    ending.start()
    ending.close()
    assert log[:1] in ([], ["opened"])
    assert log[-1:] in ([], ["closed"])


def test_a_full_store_takes_no_vectors(tmp_path: Path) -> None:
    with opened(tmp_path, quota_bytes=1 << 20) as store:
        beside = store.space_beside(NEXT)
        put(store, "p", Entry(id="a"))
        vectors = [Embedding(vector=unit_vector(1), tokens=NEXT.no_tokens())] * 20_000
        with pytest.raises(StorageFull):
            beside.put("p", [(1, tuple(vectors))])
        assert beside.missing("p", 0).docs == (1,)
