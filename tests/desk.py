"""A store with a model, and what tests of recall do with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import count
from pathlib import Path

import numpy as np

from hummock.core.memory import (
    CodeFragment,
    DomainKnowledge,
    Draft,
    LearnCommand,
    Lesson,
    MemoryKind,
    Origin,
    Payload,
    QueryVector,
)
from hummock.core.recall import Recalled, RecallQuery
from hummock.memories.learn import Learn
from hummock.memories.preparation import Preparation
from hummock.ports.models import Embedder
from hummock.recall.pipeline import Recall
from hummock.store import WritableStore
from hummock.text.tokens import EstimatedTokens
from tests.fakes import FakeClock
from tests.snapshots import over


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """A store with a model, and what a test does with them."""

    directory: Path
    store: WritableStore
    embedder: Embedder
    clock: FakeClock

    def teach(self, *drafts: Draft, vectors: Sequence[QueryVector | None] = ()) -> None:
        numbers = count()
        preparation = Preparation(self.embedder, EstimatedTokens(), make_id=lambda: f"made{next(numbers)}")
        given = [*vectors, *[None] * (len(drafts) - len(vectors))]
        lessons = tuple(Lesson(draft=draft, vector=vector) for draft, vector in zip(drafts, given, strict=True))
        command = LearnCommand(project="p", request_id="", lessons=lessons, fingerprint=b"f")
        Learn(self.store, self.embedder, preparation, self.clock, lambda _: None)(command).result()

    def recall(self, text: str, embedder: Embedder | None = None, **fields: object) -> Recalled:
        query = RecallQuery(project="p", text=text, **fields)  # type: ignore[arg-type] # fields of RecallQuery
        return over(self.store, Recall(embedder or self.embedder, self.clock))(query)

    def pointing(self, *components: float) -> QueryVector:
        """The vector of length 1 with these first components."""
        values = np.zeros(self.embedder.space.dim, np.float32)
        values[: len(components)] = components
        return QueryVector(values=values / np.linalg.norm(values), emb_space=self.embedder.space.id)

    def files(self) -> dict[str, str]:
        """Hashes by name of the files in the directory, without the table of readers."""
        return {
            path.name: sha256(path.read_bytes()).hexdigest()
            for path in self.directory.iterdir()
            if path.is_file() and "lock" not in path.name
        }


def note(text: str, memory_id: str, *, origin: Origin = Origin.MANUAL, at: float | None = None) -> Draft:
    payload = Payload(content=text)
    return Draft(id=memory_id, kind=MemoryKind.NOTE, origin=origin, payload=payload, create_time=at)


def domain(name: str, memory_id: str, *key_files: str) -> Draft:
    detail = DomainKnowledge(domain=name, summary=f"{name}的一切", key_files=key_files)
    return Draft(id=memory_id, kind=MemoryKind.DOMAIN_KNOWLEDGE, payload=Payload(detail=detail))


def fragment(path: str, memory_id: str) -> Draft:
    payload = Payload(content=f"class {memory_id} {{}}", detail=CodeFragment(path=path))
    return Draft(id=memory_id, kind=MemoryKind.CODE_FRAGMENT, payload=payload)


def ids(recalled: Recalled) -> list[str]:
    return [hit.memory.id for hit in recalled.hits]
