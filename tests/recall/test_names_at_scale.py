"""Names among a hundred thousand memories."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pytest

from hummock.core.embedding import Embedding
from hummock.core.memory import Memory, MemoryIndex, MemoryKind, Origin, Payload, Terms
from hummock.core.recall import Preset, Recalled, RecallQuery
from hummock.ports.writes import UnitOfWork
from hummock.recall.pipeline import Recall
from hummock.store import DEFAULT_LIMITS, WritableStore
from hummock.text.terms import terms_of
from hummock_kernels.analyzer import BODY
from tests.fakes import FakeClock
from tests.snapshots import over
from tests.store.opening import MIB, opened
from tests.strategies import SPACE, write_request
from tests.workplace import WordEmbedder

pytestmark = pytest.mark.long

MEMORIES = 100_000
A_WRITE = 5_000
PARTS = "parse date user ledger repayment interest plan book entry close open total rate str max node".split()  # noqa: SIM905 - reads as words
CHARACTERS = "先本后息还款方式合同利率账户日期计算逻辑分期提前逾期罚金客户经理审批额度"
FEW_VECTORS = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """Texts by number, and who holds each of the names that few hold."""

    texts: list[str]
    holders: dict[str, set[str]]


def other_forms(rng: random.Random) -> str:
    """A name that many hold: its parts, and it but for capitals and underscores, are those of the few."""
    first, second = rng.choices(PARTS, k=2)
    shapes = (
        f"{first}_{second}",
        f"{first}{second.capitalize()}",
        f"_{first}",
        f"{first.upper()}_{second.upper()}",
        first,
    )
    return rng.choice(shapes)


def rare_names(rng: random.Random) -> Iterator[str]:
    for first in PARTS:
        second = rng.choice(PARTS)
        yield f"__{first}__"
        yield first.capitalize()
        yield f"{first.capitalize()}_{second}"
        yield f"{second}_{first}_{rng.randrange(1000, 9999)}"
        yield f"{second}.{first.capitalize()}X"
    yield from ("潮汐", "木芯", "罗盘", "灯塔", "世界.图鉴.鲸骨", "zymurgy")


def made_up() -> Corpus:
    rng = random.Random(7)  # noqa: S311 - a seed, not a secret
    texts = []
    for number in range(MEMORIES):
        chinese = "".join(rng.choices(CHARACTERS, k=3))
        texts.append(f"{other_forms(rng)} {rng.choice(PARTS)} {chinese} {other_forms(rng)} {number % 977}")
    holders: dict[str, set[str]] = {}
    for name in dict.fromkeys(rare_names(rng)):
        places = rng.sample(range(MEMORIES), rng.choice((1, 2, 3)))
        holders[name] = {f"m{place}" for place in places}
        for place in places:
            texts[place] = f"{texts[place]} {'the ledger is closed at the end ' * rng.choice((0, 20))}({name})"
    return Corpus(texts=texts, holders=holders)


def memory(memory_id: str, text: str) -> Memory:
    return Memory(
        id=memory_id,
        kind=MemoryKind.NOTE,
        origin=Origin.MANUAL,
        index=MemoryIndex(),
        payload=Payload(content=text),
        session_id="",
        speaker="",
        event_time=None,
        emotion_label="",
        trust=1.0,
        supersedes=(),
        source_hash="",
        create_time=1e9,
        update_time=1e9,
        content_hash=memory_id.encode().ljust(16),
        fingerprint=memory_id.encode().ljust(16),
        token_count=8,
        chunk_count=1,
    )


def fill(store: WritableStore, texts: list[str]) -> None:
    """Straight through the store's port; vectors are given, and say nothing."""
    vectors = np.random.default_rng(7).standard_normal((FEW_VECTORS, SPACE.dim)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    embeddings = [Embedding(vector=vector, tokens=np.empty((0, SPACE.token_dim), np.int8)) for vector in vectors]
    for start in range(0, len(texts), A_WRITE):
        some = texts[start : start + A_WRITE]
        terms = terms_of([[(text, BODY)] for text in some])
        memories = [memory(f"m{number}", text) for number, text in enumerate(some, start)]
        store.write("p", write_request(putting(memories, terms, embeddings))).result(60)


def putting(
    memories: Sequence[Memory], terms: Sequence[Terms], embeddings: Sequence[Embedding]
) -> Callable[[UnitOfWork], None]:
    def put_all(work: UnitOfWork) -> None:
        for number, (each, one) in enumerate(zip(memories, terms, strict=True)):
            work.put(each, None, one, [embeddings[number % FEW_VECTORS]])

    return put_all


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Callable[[RecallQuery], Recalled], Corpus]]:
    corpus = made_up()
    directory = tmp_path_factory.mktemp("names")
    with opened(
        directory, limits=DEFAULT_LIMITS, map_bytes=1024 * MIB, quota_bytes=800 * MIB, memory_budget_bytes=512 * MIB
    ) as store:
        fill(store, corpus.texts)
        yield over(store, Recall(WordEmbedder(), FakeClock())), corpus


@pytest.mark.parametrize("preset", [Preset.AGENT, Preset.CODE, Preset.CHAT])
def test_all_holders_of_a_name_are_the_first_of_a_hundred_thousand(
    filled: tuple[Callable[[RecallQuery], Recalled], Corpus], preset: Preset
) -> None:
    """Held by at most three, whatever thousands hold in other capitals, underscores and orders."""
    recall, corpus = filled
    missed = []
    for name, expected in corpus.holders.items():
        hits = recall(RecallQuery(project="p", text=name, preset=preset)).hits
        if {hit.memory.id for hit in hits[: len(expected)]} != expected:
            missed.append(name)
    assert missed == []
