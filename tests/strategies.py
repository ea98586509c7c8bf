"""Made-up values that tests share, and Hypothesis strategies for them. All of it is seeded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from hashlib import blake2b
from typing import TypeVar

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from hummock.core import facets
from hummock.core.embedding import DIGEST_BYTES, Calibration, Embedding, EmbeddingSpace
from hummock.core.learning import KeywordsSet
from hummock.core.memory import (
    CodeFragment,
    Detail,
    DomainKnowledge,
    LearningRecord,
    Memory,
    MemoryIndex,
    MemoryKind,
    Origin,
    Payload,
    SecretPolicy,
    Terms,
)
from hummock.core.recall import DecayMode
from hummock.core.render import PartialQuotas
from hummock.core.review import ReviewPolicy
from hummock.core.settings import (
    FormBudgets,
    HistorySettings,
    PresetSettings,
    ProjectSettings,
    RetentionSettings,
    ReviewSettings,
    SecretSettings,
)
from hummock.learning.log import record as record_event
from hummock.ports.writes import TextKey, UnitOfWork, WriteRequest
from hummock.text import terms as text
from hummock.text.analyzer import exact_names
from hummock_kernels import analyzer as of_kernels

Value = TypeVar("Value")

SPACE = EmbeddingSpace(
    id="5e" * 16,
    model="test-model",
    dim=16,
    token_dim=4,
    max_tokens=64,
    scripts=frozenset({"han", "latin"}),
    calibration=Calibration(unrelated_latin=0.1, unrelated_han=0.2, near_twin_bar=0.9),
)

WORDS = ("repayment", "interest", "先本后息", "还款", "parse_date", "camel", "tide", "潮汐", "core", "loan")
TAGS = ("java", "重要", "todo")
SESSIONS = ("s1", "会话")
IDS = ("a", "b", "c", "世界.图鉴.物品.潮汐木芯", "e")


def unit_vector(seed: int, dim: int = SPACE.dim) -> NDArray[np.float32]:
    """A unit vector; equal seeds give equal ones."""
    return _unit_vector(seed, dim).copy()


@cache
def _unit_vector(seed: int, dim: int) -> NDArray[np.float32]:
    vector = np.random.default_rng(seed).standard_normal(dim).astype(np.float32)
    return np.asarray(vector / np.linalg.norm(vector), np.float32)


def embedding(seed: int) -> Embedding:
    """A vector and three token vectors, and a digest that is the seed's."""
    tokens = np.random.default_rng(seed).integers(-127, 128, (3, SPACE.token_dim)).astype(np.int8)
    return Embedding(vector=unit_vector(seed), tokens=tokens, digest=seed.to_bytes(DIGEST_BYTES, "big"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A memory in short; `seeds` are those of its chunks' vectors."""

    id: str
    words: tuple[str, ...] = ("tide",)
    title: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    kind: MemoryKind = MemoryKind.NOTE
    origin: Origin = Origin.MANUAL
    session_id: str = ""
    speaker: str = ""
    create_time: float = 1_700_000_000.0
    event_time: float | None = None
    seeds: tuple[int, ...] = (1,)
    detail: Detail = None
    domain_names: tuple[str, ...] = field(default=())
    supersedes: tuple[str, ...] = ("older",)
    metadata: tuple[tuple[str, str], ...] = ()
    writer: str = ""
    pinned: bool = False

    @property
    def text(self) -> str:
        """Content of the memory."""
        return " ".join(self.words)

    @property
    def content_hash(self) -> bytes:
        """Hash of the content."""
        return blake2b(self.text.encode(), digest_size=16).digest()

    @property
    def key(self) -> TextKey:
        """Text key of the memory."""
        return TextKey(kind=self.kind, origin=self.origin, identity=self.content_hash)

    @property
    def fingerprint(self) -> bytes:
        """Hash of everything but the vectors."""
        return blake2b(repr(replace(self, seeds=())).encode(), digest_size=16).digest()

    def memory(self) -> Memory:
        """The memory."""
        return Memory(
            id=self.id,
            kind=self.kind,
            origin=self.origin,
            index=MemoryIndex(title=" ".join(self.title), summary="", tags=self.tags),
            payload=Payload(content=self.text, raw="raw", detail=self.detail),
            session_id=self.session_id,
            speaker=self.speaker,
            event_time=self.event_time,
            emotion_label="calm",
            trust=0.5,
            supersedes=self.supersedes,
            source_hash="5f",
            create_time=self.create_time,
            update_time=self.create_time + 1,
            content_hash=self.content_hash,
            fingerprint=self.fingerprint,
            token_count=len(self.words),
            chunk_count=len(self.seeds),
            metadata=self.metadata,
            writer=self.writer,
            pinned=self.pinned,
        )

    def terms(self) -> Terms:
        """The memory's words by field, and its facets."""
        found = [facets.tag(name) for name in self.tags]
        if self.session_id:
            found.append(facets.session(self.session_id))
        if self.speaker:
            found.append(facets.speaker(self.speaker))
        if self.writer:
            found.append(facets.writer(self.writer))
        found.extend(facets.metadata(name, value) for name, value in self.metadata)
        if isinstance(self.detail, CodeFragment):
            parts = self.detail.path.split("/")
            found.extend(facets.path("/".join(parts[start:])) for start in range(len(parts)))
        found.extend(facets.domain(name) for name in self.domain_names)
        found.extend(map(facets.name, exact_names(" ".join((*self.title, *self.tags, *self.words)))))
        return exact_terms(title=self.title, tags=self.tags, body=self.words, facets=found)

    def put(self, unit: UnitOfWork) -> None:
        """Puts it."""
        unit.put(self.memory(), self.key, self.terms(), [embedding(seed) for seed in self.seeds])


def exact_terms(
    *, title: Sequence[str] = (), tags: Sequence[str] = (), body: Sequence[str] = (), facets: Sequence[str] = ()
) -> Terms:
    """Terms exactly as given, without analysis."""
    fields = ((title, of_kernels.TITLE), (tags, of_kernels.TAGS), (body, of_kernels.BODY))
    pieces = [(facet, text.A_FACET) for facet in facets]
    pieces += [(term, field | of_kernels.EXACT) for several, field in fields for term in several]
    (terms,) = text.terms_of([pieces])
    return terms


def domain(memory_id: str, names: tuple[str, ...], key_files: tuple[str, ...] = (), seed: int = 1) -> Entry:
    """Knowledge about a domain with these names."""
    detail = DomainKnowledge(domain=names[0], aliases=names[1:], summary="what is known", key_files=key_files)
    return Entry(
        id=memory_id, kind=MemoryKind.DOMAIN_KNOWLEDGE, detail=detail, domain_names=names, words=names, seeds=(seed,)
    )


def fragment(memory_id: str, path: str, seed: int = 1, words: tuple[str, ...] = ("return",)) -> Entry:
    """A piece of code in a file."""
    detail = CodeFragment(path=path, start_line=1, end_line=3, language="java", symbol="f")
    return Entry(id=memory_id, kind=MemoryKind.CODE_FRAGMENT, detail=detail, seeds=(seed,), words=words)


def record(memory_id: str, question: str, answer: str, seed: int = 1) -> Entry:
    """A learning record."""
    detail = LearningRecord(question=question, answer=answer, source_files=("src/A.java",))
    return Entry(
        id=memory_id,
        kind=MemoryKind.LEARNING_RECORD,
        detail=detail,
        words=(*question.split(), *answer.split()),
        seeds=(seed,),
    )


def write_request(
    apply: Callable[[UnitOfWork], object], request_id: str = "", fingerprint: bytes = b"f"
) -> WriteRequest[int]:
    """A write that answers 7."""

    def applied(unit: UnitOfWork) -> int:
        apply(unit)
        return 7

    return WriteRequest(request_id=request_id, fingerprint=fingerprint, reply_type=int, apply=applied)


def put_request(entries: Sequence[Entry], request_id: str = "", fingerprint: bytes = b"f") -> WriteRequest[int]:
    """A write that puts these memories."""

    def put_all(unit: UnitOfWork) -> None:
        for entry in entries:
            entry.put(unit)

    return write_request(put_all, request_id, fingerprint)


def delete_request(memory_ids: Sequence[str]) -> WriteRequest[int]:
    """A write that removes these memories."""
    return write_request(lambda unit: [unit.delete(memory_id) for memory_id in memory_ids])


def learned_request(memory_id: str, *keywords: str) -> WriteRequest[int]:
    """A write that sets the keywords of a memory."""
    event = KeywordsSet(memory_id=memory_id, keywords=keywords)
    return write_request(lambda unit: record_event(unit.learning, event))


def embedded_request(entry: Entry) -> WriteRequest[int]:
    """A write that gives a memory that waits for them its vectors."""
    return write_request(
        lambda unit: unit.embed(entry.id, entry.fingerprint, [embedding(seed) for seed in entry.seeds])
    )


def entries(ids: Sequence[str] = IDS) -> st.SearchStrategy[Entry]:
    """Any small memory with one of these ids."""
    return st.builds(
        Entry,
        id=st.sampled_from(ids),
        words=st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(tuple),
        title=st.lists(st.sampled_from(WORDS), max_size=2).map(tuple),
        tags=st.lists(st.sampled_from(TAGS), max_size=2, unique=True).map(tuple),
        kind=st.sampled_from([MemoryKind.NOTE, MemoryKind.ENTRY]),
        origin=st.sampled_from(list(Origin)),
        session_id=st.sampled_from(["", *SESSIONS]),
        create_time=st.sampled_from([1_700_000_000.0, 1_700_000_100.0]),
        seeds=st.lists(st.integers(0, 9), max_size=3).map(tuple),
    )


def _maybe(values: st.SearchStrategy[Value]) -> st.SearchStrategy[Value | None]:
    return st.none() | values


def project_settings() -> st.SearchStrategy[ProjectSettings]:
    """Settings of a project, each value set or not."""
    presets = st.builds(
        PresetSettings,
        candidates=_maybe(st.integers(1, 1000)),
        top_k=_maybe(st.integers(1, 200)),
        code_top_k=_maybe(st.integers(0, 200)),
        domain_top_k=_maybe(st.integers(0, 200)),
        min_similarity=_maybe(st.floats(-1, 1)),
        origins=_maybe(st.frozensets(st.sampled_from(Origin), min_size=1)),
        decay_mode=_maybe(st.sampled_from(DecayMode)),
        half_life_days=_maybe(st.floats(0, 36500, exclude_min=True)),
        relevance_weight=_maybe(st.floats(0, 1)),
        near_twin_bar=_maybe(st.floats(0, 2)),
        writer_cap=_maybe(st.integers(1, 10)),
        window_turns=_maybe(st.integers(0, 1000)),
    )
    budget, quota = _maybe(st.integers(1, 1_000_000)), _maybe(st.integers(0, 200))
    budgets = st.builds(FormBudgets, context=budget, waterfall=budget, index=budget, memories=budget, messages=budget)
    quotas = st.builds(PartialQuotas, domains=quota, learning_records=quota, code_fragments=quota)
    history = st.builds(
        HistorySettings, max_messages=_maybe(st.integers(0, 1000)), max_characters=_maybe(st.integers(1, 2**32 - 1))
    )
    return st.builds(
        ProjectSettings,
        chat=presets,
        code=presets,
        agent=presets,
        budget_tokens=budgets,
        quotas=quotas,
        history=history,
        secrets=st.builds(SecretSettings, policy=_maybe(st.sampled_from(SecretPolicy))),
        retention=st.builds(
            RetentionSettings,
            max_age_days=_maybe(st.floats(0.001, 36_500)),
            max_memories=_maybe(st.integers(1, 2**32 - 1)),
            max_bytes=_maybe(st.integers(1, 2**63)),
        ),
        review=st.builds(ReviewSettings, policy=_maybe(st.sampled_from(ReviewPolicy))),
    )
