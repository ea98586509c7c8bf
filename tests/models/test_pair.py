"""Two models as one. The toy model stands for both; what it stands for differs by prefix, window and weights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hummock.core.embedding import Calibration, Embedding
from hummock.core.threads import Cores
from hummock.models import PAIRS, ModelDescription, OnnxEmbedder, PairDescription, open_embedder
from hummock.models.basis import TOKEN_MARK, bases_of, load_basis
from hummock.models.pair import weights
from hummock.models.single import SingleModel
from hummock.models.space import space_of
from hummock.ports.models import Embedder
from hummock.text.normalise import is_han, known_share, words_by_script
from tests.models.embedding import embedded, same_bytes
from tests.sure import sure

MIXED = ["先本后息", "The repayment method", "def parse_date(text): ...", "", "先本后息 repay_by_id", "a" * 500]
Parts = tuple[SingleModel, SingleModel]
ANY_TEXT = st.text(st.characters(codec="utf-8"), max_size=100)


@pytest.fixture(scope="module")
def pair(tiny: ModelDescription) -> PairDescription:
    return PairDescription(
        first=tiny, second=replace(tiny, query_prefix="检索：", max_tokens=32), first_weight_latin=0.2,
        first_weight_han=0.9, calibration=Calibration(unrelated_latin=0.1, unrelated_han=0.2, near_twin_bar=0.9),
    )  # fmt: skip


@pytest.fixture(scope="module")
def both(pair: PairDescription, models_directory: Path) -> Iterator[OnnxEmbedder]:
    embedder = open_embedder(pair, models_directory, slots=2)
    yield embedder
    embedder.close()


@pytest.fixture(scope="module")
def parts(pair: PairDescription, tiny_files: Path) -> Parts:
    first, second = (
        SingleModel(part, tiny_files, basis) for part, basis in zip(pair.parts, bases_of(pair), strict=True)
    )
    return first, second


@given(ANY_TEXT, ANY_TEXT)
def test_one_product_is_the_weighted_sum_of_both_cosines(
    both: OnnxEmbedder, parts: Parts, query: str, text: str
) -> None:
    share = known_share(words_by_script(query), frozenset({"han"})) if is_han(query) else 0
    weight = 0.2 * (1 - share) + 0.9 * share
    cosines = [float(part.embed_query(query).vector @ part.embed_document(text).vector) for part in parts]
    product = float(both.embed_query(query).vector @ embedded(both, [text])[0].vector)
    assert product == pytest.approx(weight * cosines[0] + (1 - weight) * cosines[1], abs=1e-5)


@given(ANY_TEXT)
def test_a_stored_vector_has_length_one_and_a_query_no_product_above_it(both: OnnxEmbedder, text: str) -> None:
    stored, asked = embedded(both, [text])[0].vector, both.embed_query(text).vector
    assert [(len(vector), str(vector.dtype)) for vector in (stored, asked)] == [(128, "float32")] * 2
    assert np.linalg.norm(stored) == pytest.approx(1, abs=1e-5)
    assert 1 - 1e-5 <= np.linalg.norm(asked) <= np.sqrt(2) + 1e-5
    assert asked @ stored <= 1 + 1e-5


def test_stored_texts_have_the_mean_of_cosines(both: OnnxEmbedder, parts: Parts) -> None:
    left, right = (embedding.vector for embedding in embedded(both, ["先本后息", "the repayment"]))
    cosines = [
        float(part.embed_document("先本后息").vector @ part.embed_document("the repayment").vector) for part in parts
    ]
    assert float(left @ right) == pytest.approx(sum(cosines) / 2, abs=1e-5)


def test_token_vectors_are_those_of_the_model_that_reads_the_texts_script(both: OnnxEmbedder, parts: Parts) -> None:
    texts = ["先本后息的方式", "equal principal", "先本后息的方式 by principal"]
    chinese, english, mostly_chinese = (embedding.tokens for embedding in embedded(both, texts))
    np.testing.assert_array_equal(chinese, parts[0].embed_document(texts[0]).tokens)
    np.testing.assert_array_equal(english, parts[1].embed_document(texts[1]).tokens)
    np.testing.assert_array_equal(mostly_chinese, parts[0].embed_document(texts[2]).tokens)
    assert (chinese[:, -1] == TOKEN_MARK).all()
    assert (english[:, -1] == -TOKEN_MARK).all()


@pytest.mark.parametrize("text", ["Привет, как дела", "こんにちは", "2024 42", "...", ""])
def test_a_text_in_no_known_script_is_the_second_models(both: OnnxEmbedder, parts: Parts, text: str) -> None:
    """Its cosines are calibrated as those of Latin texts, so a query must ask as much of each model as theirs do."""
    asked = both.embed_query(text).vector
    np.testing.assert_allclose(asked[:64], np.sqrt(2) * 0.2 * parts[0].embed_query(text).vector, atol=1e-6)
    np.testing.assert_allclose(asked[64:], np.sqrt(2) * 0.8 * parts[1].embed_query(text).vector, atol=1e-6)
    np.testing.assert_array_equal(embedded(both, [text])[0].tokens, parts[1].embed_document(text).tokens)


@pytest.mark.long
@settings(max_examples=40)
@given(ANY_TEXT.filter(is_han), ANY_TEXT.filter(lambda text: not is_han(text)))
def test_products_tell_token_vectors_of_different_models_apart(
    both: OnnxEmbedder, parts: Parts, chinese: str, english: str
) -> None:
    asked = parts[0].embed_query(chinese).tokens.astype(np.int32)
    other, same = (part.embed_document(english).tokens.astype(np.int32) for part in parts[::-1])
    assert (asked @ other.T < 0).all()
    assert (asked @ same.T > 0).all()


def test_a_mark_changes_nothing_about_how_token_vectors_of_one_model_compare(pair: PairDescription) -> None:
    plain = load_basis(pair.first.basis, pair.first.dim)
    marked = bases_of(pair)[0]
    hidden = np.random.default_rng(7).standard_normal((60, pair.first.dim)).astype(np.float32)
    before, after = (basis.compress(hidden).astype(np.float32) / 127 for basis in (plain, marked))
    share = np.float32((TOKEN_MARK / 127) ** 2)
    # One of 64 directions gave way to the mark.
    np.testing.assert_allclose((after @ after.T - share) / (1 - share), before @ before.T, rtol=0, atol=0.2)
    np.testing.assert_allclose(np.linalg.norm(after, axis=1), 1, rtol=0, atol=0.03)


ENGLISH = ["The harbour is deep", "enough for ships", "of any size"]
CHINESE = ["潮汐木的心材在退潮时发光", "世界的另一边", "很少有人见过它"]


@pytest.fixture
def short_beginning(monkeypatch: pytest.MonkeyPatch) -> int:
    """A beginning shorter than the windows of the toy model."""
    monkeypatch.setattr("hummock.models.pair.BEGINNING_TOKENS", 6)
    return 6


def halves(embeddings: Sequence[Embedding]) -> tuple[list[bytes], list[bytes]]:
    """The bytes of the first and of the second model's half of each vector."""
    return [each.vector[:64].tobytes() for each in embeddings], [each.vector[64:].tobytes() for each in embeddings]


@pytest.mark.parametrize(("chunks", "knows"), [(CHINESE, 0), (ENGLISH, 1)])
def test_the_model_that_does_not_know_the_language_reads_the_beginning_once_for_all_chunks(
    both: OnnxEmbedder, parts: Parts, short_beginning: int, chunks: list[str], knows: int
) -> None:
    (embeddings,) = both.embed_documents([chunks])
    of_each = halves(embeddings)
    assert len(set(of_each[knows])) == len(chunks)
    assert len(set(of_each[1 - knows])) == 1
    beginning = parts[1 - knows].embed_document(chunks[0], most_tokens=short_beginning)
    assert not same_bytes(beginning, parts[1 - knows].embed_document(chunks[0]))
    expected = (beginning.vector * (1 / np.sqrt(2, dtype=np.float32))).tobytes()
    assert of_each[1 - knows][0] == expected
    for chunk, embedding in zip(chunks, embeddings, strict=True):
        np.testing.assert_array_equal(embedding.tokens, parts[knows].embed_document(chunk).tokens)


@pytest.mark.parametrize("mixed", ["潮汐木 glows when the tide falls", "def tide(): return 1  # 退潮"])
def test_a_chunk_with_both_languages_is_read_by_both_models(both: OnnxEmbedder, parts: Parts, mixed: str) -> None:
    """A Chinese question asks the model that reads Chinese alone, also of code with some Chinese in it."""
    (embeddings,) = both.embed_documents([[ENGLISH[0], mixed]])
    for part, dims in zip(parts, (slice(64), slice(64, None)), strict=True):
        expected = part.embed_document(mixed).vector / np.sqrt(2)
        np.testing.assert_allclose(embeddings[1].vector[dims], expected, atol=1e-6)


@pytest.mark.long
@settings(max_examples=20)
@given(st.permutations([*([text] for text in MIXED), ENGLISH, CHINESE, [ENGLISH[0], CHINESE[1]]]))
def test_what_is_embedded_beside_a_document_changes_no_byte_of_it(
    both: OnnxEmbedder, documents: list[list[str]]
) -> None:
    for chunks, embeddings in zip(documents, both.embed_documents(documents), strict=True):
        assert all(same_bytes(*pair) for pair in zip(both.embed_in_turn(chunks), embeddings, strict=True))


@pytest.mark.long
def test_a_query_has_the_same_bytes_whether_both_models_read_it_at_once_or_one_after_the_other(
    both: OnnxEmbedder, pair: PairDescription, models_directory: Path
) -> None:
    on_one_core = open_embedder(pair, models_directory, slots=1)
    assert all(same_bytes(on_one_core.embed_query(text), both.embed_query(text)) for text in MIXED)
    on_one_core.close()


def test_a_query_takes_a_second_core_only_while_one_is_free() -> None:
    cores = Cores(2, "embed-other")
    with cores.one(), cores.another() as first:
        with cores.another() as second:
            assert (first, second) == (True, False)
        with cores.one(), cores.another() as third:
            assert not third
    with cores.one(), cores.one(), cores.another() as beside_another_text:
        assert not beside_another_text
    with cores.one(), cores.another() as alone_again:
        assert alone_again


def test_chunks_fit_the_smaller_window_and_a_chinese_text_is_cut_for_the_model_that_reads_it(
    both: OnnxEmbedder, parts: Parts
) -> None:
    """The other model is asked of it by queries in English alone, and reads its beginning."""
    body = "先本后息 equal principal " * 20
    assert both.split("a header", body) == parts[1].split("a header", body) != parts[0].split("a header", body)
    assert both.space.max_tokens == 32
    body = "先本后息的还款方式，API 除外。" * 20
    assert both.split("标题", body) == parts[0].split("标题", body) != parts[1].split("标题", body)


def test_the_space_is_of_both_models_in_their_order(both: OnnxEmbedder, pair: PairDescription) -> None:
    turned = replace(pair, first=pair.second, second=pair.first)
    assert both.space.dim == 128
    assert both.space.model == "tiny+tiny"
    assert len({both.space.id, space_of(turned).id, space_of(replace(pair, second=pair.first)).id}) == 3


def test_weights_of_queries_change_no_stored_vector(
    both: OnnxEmbedder, pair: PairDescription, models_directory: Path
) -> None:
    other = open_embedder(replace(pair, first_weight_latin=0.5), models_directory, slots=1)
    assert other.space.id == both.space.id
    assert same_bytes(embedded(other, ["the method"])[0], embedded(both, ["the method"])[0])
    assert not same_bytes(other.embed_query("the method"), both.embed_query("the method"))
    other.close()


@pytest.mark.parametrize("weight", [-0.1, 1.1])
def test_a_weight_outside_nought_and_one_is_refused(pair: PairDescription, weight: float) -> None:
    with pytest.raises(ValueError, match="0 to 1"):
        replace(pair, first_weight_han=weight)


@given(ANY_TEXT)
def test_what_a_query_asks_of_both_sums_to_one(pair: PairDescription, query: str) -> None:
    of_first, of_second = weights(pair, query)
    assert of_first + of_second == pytest.approx(1)
    assert min(of_first, of_second) >= 0


def test_a_chinese_query_asks_one_of_the_default_pair_and_an_english_one_both() -> None:
    pair = PAIRS["bge-small-zh-v1.5+all-MiniLM-L6-v2"]
    assert weights(pair, "先本后息怎么还款") == (1.0, 0.0)
    assert min(weights(pair, "how is a loan repaid")) > 0


@pytest.mark.parametrize("pair", PAIRS.values(), ids=lambda pair: pair.name)
def test_registered_pairs_ask_more_of_the_model_that_knows_the_script(pair: PairDescription) -> None:
    assert pair.first_weight_latin < 0.5 < pair.first_weight_han
    assert "han" in pair.first.scripts
    assert max(pair.calibration.unrelated_latin, pair.calibration.unrelated_han) < pair.calibration.near_twin_bar < 1


GLOSS = "compute interest"


def test_a_bridge_asks_the_second_model_alone_for_what_the_gloss_says(both: OnnxEmbedder, parts: Parts) -> None:
    bridge = sure(both.embed_query("利息怎么计算", None, GLOSS).bridge)
    assert not bridge.vector[:64].any()
    read = parts[1].embed_query(GLOSS)
    np.testing.assert_array_equal(bridge.tokens, read.tokens)
    for text in ("the interest is computed", "def interest(): ...", "港口"):
        cosine = float(read.vector @ parts[1].embed_document(text).vector)
        assert float(bridge.vector @ embedded(both, [text])[0].vector) == pytest.approx(cosine, abs=1e-5)


def test_a_query_has_a_bridge_for_each_gloss_and_none_without(both: OnnxEmbedder) -> None:
    plain, glossed = both.embed_query("利息怎么计算"), both.embed_query("利息怎么计算", None, GLOSS)
    assert plain.bridge is None
    np.testing.assert_array_equal(plain.vector[:64], glossed.vector[:64])
    np.testing.assert_array_equal(plain.tokens, glossed.tokens)
    first, again = (both.embed_query("利息怎么计算", None, GLOSS) for _ in range(2))
    assert first is again
    other = sure(both.embed_query("利息怎么计算", None, "interest").bridge)
    assert first.bridge is not None
    assert not np.array_equal(first.bridge.vector, other.vector)
    assert both.is_known("利息怎么计算", GLOSS)
    assert not both.is_known("利息怎么计算", "interests")
    port: Embedder = both
    assert port.space.scripts == {"han", "latin"}
