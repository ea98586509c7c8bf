"""Learn and the garden over a real store, with an embedder that knows words and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from itertools import count
from pathlib import Path

import numpy as np

from hummock.core.deadline import NO_DEADLINE, Deadline
from hummock.core.embedding import Embedding, EmbeddingSpace
from hummock.core.memory import Draft, LearnCommand, Learned, Lesson, Memory, MemoryKind, Origin, Payload
from hummock.memories.backfill import Backfill
from hummock.memories.garden import Garden
from hummock.memories.learn import Learn
from hummock.memories.preparation import Preparation
from hummock.store import WritableStore
from hummock.text.tokens import EstimatedTokens
from tests.fakes import FakeClock
from tests.store.opening import opened
from tests.strategies import SPACE, unit_vector

WINDOW_WORDS = 20


class WordEmbedder:
    """A text is the sum of its words' random vectors; `embedded` keeps every text that it was asked for."""

    def __init__(self) -> None:
        self.embedded: list[str] = []
        self.before: Callable[[], None] = lambda: None

    @property
    def space(self) -> EmbeddingSpace:
        """The tests' space."""
        return SPACE

    def embed_query(self, text: str, timeout_s: float | None = None, gloss: str | None = None) -> Embedding:
        """A query is a text."""
        return _embedding(text)

    def is_known(self, text: str, gloss: str | None = None) -> bool:
        """Always False: nothing is cached."""
        return False

    def embed_documents(
        self, documents: Sequence[Sequence[str]], deadline: Deadline = NO_DEADLINE, *, is_bulk: bool = False
    ) -> list[tuple[Embedding, ...]]:
        """Calls `before` once, so that a test can do something while a model would run."""
        before, self.before = self.before, lambda: None
        before()
        self.embedded += [chunk for chunks in documents for chunk in chunks]
        return [tuple(map(_embedding, chunks)) for chunks in documents]

    def embed_in_turn(self, chunks: Sequence[str]) -> Iterator[Embedding]:
        for chunk in chunks:
            self.embedded.append(chunk)
            yield _embedding(chunk)

    def split(self, header: str, body: str) -> list[str]:
        """Pieces of WINDOW_WORDS words."""
        words = body.split()
        pieces = [words[start : start + WINDOW_WORDS] for start in range(0, len(words), WINDOW_WORDS)] or [[]]
        return [f"{header}\n{' '.join(piece)}".strip() for piece in pieces]

    def close(self) -> None:
        """Does nothing: there is nothing to free."""


def _embedding(text: str) -> Embedding:
    seeds = [int.from_bytes(blake2b(word.encode(), digest_size=4).digest(), "little") for word in text.split()]
    total = np.sum([unit_vector(seed) for seed in seeds] or [unit_vector(0)], axis=0)
    return Embedding(
        vector=np.asarray(total / np.linalg.norm(total), np.float32), tokens=np.empty((0, SPACE.token_dim), np.int8)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Workplace:
    """Everything that a test works with; memories wait for vectors until they are embedded by hand."""

    store: WritableStore
    embedder: WordEmbedder
    clock: FakeClock
    learn: Learn
    garden: Garden
    backfill: Backfill

    def teach(
        self,
        *drafts: Draft,
        project: str = "p",
        request_id: str = "",
        fingerprint: bytes = b"f",
        is_deferred: bool = False,
    ) -> Learned:
        """Learns drafts in one request."""
        command = LearnCommand(
            project=project,
            request_id=request_id,
            lessons=tuple(Lesson(draft=draft) for draft in drafts),
            fingerprint=fingerprint,
            is_deferred=is_deferred,
        )
        return self.learn(command).result()

    def embed_pending(self) -> None:
        """Embeds all that waits for it."""
        while self.backfill.embed_some():
            pass

    def get(self, memory_id: str, project: str = "p") -> Memory | None:
        """One memory, whole."""
        return self.garden.get(project, [memory_id], 0, full=True)[0]


@contextmanager
def workplace(directory: Path) -> Iterator[Workplace]:
    """Everything open and empty; the server's ids are m1, m2 …"""
    clock = FakeClock()
    with opened(directory, clock=clock) as store:
        yield over(store, clock)


def over(store: WritableStore, clock: FakeClock) -> Workplace:
    """Everything over a store that is open."""
    embedder, numbers = WordEmbedder(), count(1)
    preparation = Preparation(embedder, EstimatedTokens(), make_id=lambda: f"m{next(numbers)}")
    backfill = Backfill(store, embedder, clock, workers=1)
    return Workplace(
        store=store,
        embedder=embedder,
        clock=clock,
        learn=Learn(store, embedder, preparation, clock, backfill.wake),
        garden=Garden(store, preparation, clock),
        backfill=backfill,
    )


def note(content: str, memory_id: str = "", origin: Origin = Origin.MANUAL, session_id: str = "") -> Draft:
    """A remembered sentence."""
    payload = Payload(content=content)
    return Draft(id=memory_id, kind=MemoryKind.NOTE, origin=origin, payload=payload, session_id=session_id)
