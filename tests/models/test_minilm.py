"""The real all-MiniLM-L6-v2, from the converted file alongside the checkout."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from hummock.models import REGISTRY, OnnxEmbedder, TextPair, load, measure, served
from hummock.models.encoder import Encoder
from hummock.models.fusion import AGREEMENT, FUSED_FILE, Served
from tests.models.embedding import embedded
from tests.shared import MINILM


@pytest.fixture(scope="module")
def minilm(real_models: Path) -> Iterator[OnnxEmbedder]:
    embedder = load(REGISTRY[MINILM], real_models / MINILM, slots=2)
    yield embedder
    embedder.close()


PAIRS = [
    ("how do I parse a date in python", "def parse_date(text):\n    return datetime.strptime(text, '%Y-%m-%d')"),
    ("which repayment methods are there", "Loans can be repaid with equal principal or with equal instalments."),
    ("capital of France", "Paris is the seat of the French government."),
]


def test_an_answer_is_nearer_than_any_other_text(minilm: OnnxEmbedder) -> None:
    queries = np.stack([minilm.embed_query(query).vector for query, _ in PAIRS])
    answers = np.stack([each.vector for each in embedded(minilm, [answer for _, answer in PAIRS])])
    assert (queries @ answers.T).argmax(axis=1).tolist() == [0, 1, 2]


def test_unrelated_texts_calibrate_to_about_nothing(minilm: OnnxEmbedder) -> None:
    measured = measure(minilm, [TextPair(query=query, document=answer) for query, answer in PAIRS])
    similar = minilm.space.calibration.similarity(np.array([measured.unrelated, 1.0], dtype=np.float32), han=False)
    assert abs(similar[0]) < 0.1
    assert similar[1] == 1


def test_versions_of_a_function_pass_the_near_twin_bar(minilm: OnnxEmbedder) -> None:
    """S2-07."""
    first, second, other = embedded(
        minilm,
        [
            "parse_date_v1.py\ndef parse_date(text):\n    return datetime.strptime(text, '%Y-%m-%d')",
            "parse_date_v2.py\ndef parse_date(text, fmt='%Y-%m-%d'):\n    return datetime.strptime(text, fmt)",
            "legal_disclaimer.txt\nThis software is provided as is, without warranty of any kind.",
        ],
    )
    bar = minilm.space.calibration.near_twin_bar
    assert first.vector @ second.vector > bar > 0.3 > first.vector @ other.vector


def test_late_interaction_prefers_the_answer(minilm: OnnxEmbedder) -> None:
    answers = embedded(minilm, [answer for _, answer in PAIRS])
    for index, (query, _) in enumerate(PAIRS):
        asked = minilm.embed_query(query).tokens.astype(np.int32)
        scores = [(asked @ answer.tokens.T.astype(np.int32)).max(axis=1).mean() for answer in answers]
        assert int(np.argmax(scores)) == index


def test_the_tokenizers_own_padding_and_cut_at_128_are_off(minilm: OnnxEmbedder) -> None:
    short, long = embedded(minilm, ["one word", "word " * 200])
    assert len(short.tokens) == 2
    assert len(long.tokens) == 128
    assert len(minilm.split("", "word " * 200)) == 1
    assert len(minilm.split("", "word " * 300)) == 2


def test_its_fused_graph_serves_and_agrees_with_the_published_one(minilm: OnnxEmbedder, real_models: Path) -> None:
    directory = real_models / MINILM
    model = REGISTRY[MINILM]
    assert served(model, directory) == Served(path=directory / FUSED_FILE, lack="")
    published = Encoder(model, directory)
    texts = [text for pair in PAIRS for text in pair]
    for text, found in zip(texts, embedded(minilm, texts), strict=True):
        pooled = published.encode(text).pooled
        assert found.vector @ pooled / np.linalg.norm(pooled) >= AGREEMENT
