"""Three models as one. The toy model stands for all; what it stands for differs by prefix, window and weights."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hummock.core.embedding import Across, Calibration
from hummock.models import ModelDescription, OnnxEmbedder, TrioDescription, open_embedder
from hummock.models.basis import TOKEN_MARK, bases_of
from hummock.models.single import SingleModel
from hummock.models.trio import GLOSS, OWN_HAN, OWN_LATIN
from tests.models.embedding import embedded
from tests.sure import sure

Parts = tuple[SingleModel, SingleModel, SingleModel]
DIM = 64
ANY_TEXT = st.text(st.characters(codec="utf-8"), max_size=100)
CHINESE, ENGLISH, MIXED, JAPANESE = (
    "先本后息的方式",
    "the repayment method",
    "repay 的方式 by_principal in order",
    "返済の方法は何ですか",
)


@pytest.fixture(scope="module")
def trio(tiny: ModelDescription) -> TrioDescription:
    return TrioDescription(
        first=tiny,
        second=replace(tiny, query_prefix="检索：", max_tokens=32),
        common=replace(tiny, query_prefix="any: "),
        calibration=Calibration(unrelated_latin=0.1, unrelated_han=0.2, near_twin_bar=0.9),
        across=Across(unrelated=0.05),
    )


@pytest.fixture(scope="module")
def three(trio: TrioDescription, models_directory: Path) -> Iterator[OnnxEmbedder]:
    embedder = open_embedder(trio, models_directory, slots=2)
    yield embedder
    embedder.close()


@pytest.fixture(scope="module")
def parts(trio: TrioDescription, tiny_files: Path) -> Parts:
    first, second, common = (
        SingleModel(part, tiny_files, basis) for part, basis in zip(trio.parts, bases_of(trio), strict=True)
    )
    return first, second, common


@given(ANY_TEXT)
def test_a_stored_vector_has_length_one_and_a_query_no_product_above_it(three: OnnxEmbedder, text: str) -> None:
    stored, asked = embedded(three, [text])[0].vector, three.embed_query(text)
    assert asked.bridge is not None
    for vector in (stored, asked.vector, asked.bridge.vector):
        assert (len(vector), str(vector.dtype)) == (2 * DIM, "float32")
    assert np.linalg.norm(stored) == pytest.approx(1, abs=1e-5)
    assert max(asked.vector @ stored, asked.bridge.vector @ stored) <= 1 + 1e-5


@pytest.mark.parametrize(
    ("text", "reader", "mark"), [(CHINESE, 0, TOKEN_MARK), (ENGLISH, 1, -TOKEN_MARK), (MIXED, 1, -TOKEN_MARK)]
)
def test_a_text_is_read_by_the_model_of_its_language_and_the_common_one(
    three: OnnxEmbedder, parts: Parts, text: str, reader: int, mark: int
) -> None:
    stored, own, common = embedded(three, [text])[0], parts[reader].embed_document(text), parts[2].embed_document(text)
    np.testing.assert_allclose(np.sqrt(2) * stored.vector, [*own.vector, *common.vector], atol=1e-6)
    np.testing.assert_array_equal(stored.tokens, own.tokens)
    assert (stored.tokens[:, -1] == mark).all()


@pytest.mark.parametrize(
    ("query", "text", "reader", "weight"),
    [(CHINESE, "还款的方式", 0, OWN_HAN), (ENGLISH, "a method of repayment", 1, OWN_LATIN)],
)
def test_a_query_asks_the_model_of_its_language_and_the_common_one(
    three: OnnxEmbedder, parts: Parts, query: str, text: str, reader: int, weight: float
) -> None:
    own, common = (
        float(part.embed_query(query).vector @ part.embed_document(text).vector) for part in (parts[reader], parts[2])
    )
    product = float(three.embed_query(query).vector @ embedded(three, [text])[0].vector)
    assert product == pytest.approx(weight * own + (1 - weight) * common, abs=1e-5)


def test_a_query_with_little_chinese_asks_less_of_the_english_model(three: OnnxEmbedder, parts: Parts) -> None:
    asked, own = three.embed_query(MIXED).vector[:DIM], parts[1].embed_query(MIXED).vector
    weight = float(asked @ own) / np.sqrt(2)
    assert OWN_HAN < weight < OWN_LATIN


@pytest.mark.parametrize(("query", "text"), [(CHINESE, ENGLISH), (ENGLISH, CHINESE)])
def test_texts_of_the_other_language_are_asked_for_by_the_common_model(
    three: OnnxEmbedder, parts: Parts, query: str, text: str
) -> None:
    bridge = sure(three.embed_query(query).bridge)
    common = float(parts[2].embed_query(query).vector @ parts[2].embed_document(text).vector)
    assert float(bridge.vector @ embedded(three, [text])[0].vector) == pytest.approx(common, abs=1e-5)
    assert not len(bridge.tokens)


def test_a_gloss_asks_the_model_of_its_language_for_code(three: OnnxEmbedder, parts: Parts) -> None:
    bridge = sure(three.embed_query(CHINESE, gloss=ENGLISH).bridge)
    read, common = parts[1].embed_query(ENGLISH), parts[2].embed_query(CHINESE)
    stored = np.sqrt(2) * embedded(three, ["a method"])[0].vector
    product = GLOSS * float(read.vector @ stored[:DIM]) + (1 - GLOSS) * float(common.vector @ stored[DIM:])
    assert float(bridge.vector @ stored) / np.sqrt(2) == pytest.approx(product, abs=1e-5)
    np.testing.assert_array_equal(bridge.tokens, read.tokens)
    assert bridge.prose is not None
    unglossed = sure(three.embed_query(CHINESE).bridge)
    np.testing.assert_allclose(bridge.prose, unglossed.vector, atol=1e-6)


def test_a_query_in_a_third_language_asks_the_common_model_alone(three: OnnxEmbedder, parts: Parts) -> None:
    asked = three.embed_query(JAPANESE)
    assert asked.bridge is not None
    common = parts[2].embed_query(JAPANESE).vector
    for each in (asked, asked.bridge):
        np.testing.assert_allclose(each.vector, [*np.zeros(DIM), *np.sqrt(2) * common], atol=1e-6)
        assert not len(each.tokens)


def test_the_space_is_of_all_three_and_says_that_it_reads_across(
    three: OnnxEmbedder, trio: TrioDescription, models_directory: Path
) -> None:
    space = three.space
    assert (space.model, space.dim, space.max_tokens) == (trio.name, 2 * DIM, 32)
    assert space.across
    assert space.token_mark == pytest.approx(TOKEN_MARK / 127)
    others = [
        replace(trio, common=replace(trio.common, max_tokens=48)),
        replace(trio, first=trio.second, second=trio.first),
        replace(trio, second=replace(trio.second, query_prefix="other")),
    ]
    ids = {space.id}
    for other in others:
        embedder = open_embedder(other, models_directory, slots=1)
        ids.add(embedder.space.id)
        embedder.close()
    assert len(ids) == 1 + len(others)
