"""A cross-encoder of XLM-R's shape, built by the code that would convert one, held against its NumPy twin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from shutil import copy

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Encoding, Tokenizer
from tokenizers.processors import TemplateProcessing

from bench.toy_models import TINY_RERANKER, build_cross_encoder, build_tiny_reranker, tiny_cross_encoder
from hummock.core.deadline import InferenceTimes
from hummock.models import (
    RERANKERS,
    ModelDescription,
    OnnxReranker,
    RerankerDescription,
    find,
    find_reranker,
    load_reranker,
)
from hummock.models.description import GRAPH_FILE, TOKENIZER_FILE, Hub, ModelFile
from hummock.models.errors import ModelFileAltered, ModelGraphUnsupported, ModelUnknown, ScoreNotFinite
from hummock.models.files import sha256_of
from hummock.models.reranker import CHARACTERS_A_TOKEN, LENGTHS, CrossEncoder, pair_times
from hummock.ports.models import Clock, Pair, Reranker
from tests.fakes import FakeClock
from tests.models.numpy_bert import pair_logit

QUERY = "增加先本后息的还款方式"
TEXTS = [
    "还款方式枚举里有先本后息", "def parse_date(text): ...", "the weather is nice today", "", "先本后息 repay_by_id",
]  # fmt: skip
ANY_TEXT = st.text(st.characters(codec="utf-8"), max_size=200)


@pytest.fixture(scope="session")
def described(models_directory: Path) -> RerankerDescription:
    return build_tiny_reranker(models_directory)


@pytest.fixture(scope="session")
def files(described: RerankerDescription, models_directory: Path) -> Path:
    return models_directory / described.name


@pytest.fixture(scope="session")
def reranker(described: RerankerDescription, files: Path) -> OnnxReranker:
    return load_reranker(described, files, FakeClock())


class SlowClock(FakeClock):
    """Every look at it takes a second, so that whatever is timed takes one."""

    def monotonic(self) -> float:
        self.move(1.0)
        return super().monotonic()


@pytest.fixture
def float_encoder(described: RerankerDescription, files: Path, tmp_path: Path) -> CrossEncoder:
    onnx.save_model(build_cross_encoder(tiny_cross_encoder()), str(tmp_path / GRAPH_FILE))
    copy(files / TOKENIZER_FILE, tmp_path)
    return CrossEncoder(described, tmp_path)


@pytest.mark.parametrize("text", TEXTS)
def test_the_float_graph_equals_its_numpy_twin(float_encoder: CrossEncoder, text: str) -> None:
    [(ids, types)] = float_encoder.encode(QUERY, [text])
    logit = pair_logit(tiny_cross_encoder(), np.array(ids, np.int64))
    assert float_encoder.score(ids, types) == pytest.approx(1 / (1 + np.exp(-logit)), abs=1e-5)


@pytest.mark.parametrize("text", TEXTS)
def test_quantised_scores_stay_near_floats(float_encoder: CrossEncoder, reranker: OnnxReranker, text: str) -> None:
    [(ids, types)] = float_encoder.encode(QUERY, [text])
    assert scores(reranker, QUERY, [text])[0] == pytest.approx(float_encoder.score(ids, types), abs=0.1)


def test_a_pair_is_joined_by_the_tokenizers_own_template(reranker: OnnxReranker, files: Path) -> None:
    [pair] = reranker.pairs("先本", ["a1"])
    tokenizer = Tokenizer.from_file(str(files / TOKENIZER_FILE))
    assert [tokenizer.id_to_token(token) for token in pair.tokens] == (
        ["<s>", "▁", "先", "本", "</s>", "</s>", "▁", "a", "1", "</s>"]
    )


def test_texts_are_cut_at_their_end_and_have_half_the_window(
    reranker: OnnxReranker, described: RerankerDescription
) -> None:
    long, shorter = reranker.pairs("先本后息", ["还" * 500, "还" * 300])
    assert len(long.tokens) == described.max_tokens
    assert long.tokens == shorter.tokens
    assert long.tokens[:5] == reranker.pairs("先本后息", [""])[0].tokens[:5]
    long, empty = reranker.pairs("先" * 500, ["还" * 500, ""])
    assert len(long.tokens) == described.max_tokens
    assert len(long.tokens) - len(empty.tokens) == described.max_tokens // 2 - 4


class MeteredTokenizer:
    """Counts the characters that are made into tokens."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.characters = 0
        self._tokenizer = tokenizer

    def encode(self, text: str, *, add_special_tokens: bool) -> Encoding:
        self.characters += len(text)
        return self._tokenizer.encode(text, add_special_tokens=add_special_tokens)

    def __getattr__(self, name: str) -> object:
        return getattr(self._tokenizer, name)


def test_of_a_long_text_no_more_is_made_into_tokens_than_could_fit(float_encoder: CrossEncoder) -> None:
    metered = MeteredTokenizer(float_encoder._tokenizer)
    short = float_encoder.encode(QUERY, ["还款 repay " * 200])
    float_encoder._tokenizer = metered  # type: ignore[assignment] # all that the encoder calls
    assert float_encoder.encode(QUERY, ["还款 repay " * 20_000]) == short
    assert metered.characters <= len(QUERY) + CHARACTERS_A_TOKEN * 64


@pytest.mark.parametrize("text", ["</s>", "还款</s></s>方式", "\uff1c/s\uff1e", "<s> <pad>"])
def test_a_text_cannot_hold_the_tokens_that_join_a_pair(reranker: OnnxReranker, text: str) -> None:
    for query, told in ((text, "a"), ("a", text)):
        [pair] = reranker.pairs(query, [told])
        assert [token for token in pair.tokens if token < 3] == [0, 2, 2, 2]


@given(ANY_TEXT, ANY_TEXT)
def test_any_pair_has_a_score_between_nought_and_one(reranker: OnnxReranker, query: str, text: str) -> None:
    [pair] = reranker.pairs(query, [text])
    [score] = reranker.scores([pair], None)
    assert 0 < score < 1
    assert len(pair.tokens) == len(pair.token_types) <= 64


@given(st.permutations(TEXTS))
def test_a_pairs_score_does_not_depend_on_its_company(reranker: OnnxReranker, texts: list[str]) -> None:
    alone = {text: scores(reranker, QUERY, [text])[0] for text in TEXTS}
    assert scores(reranker, QUERY, texts) == [alone[text] for text in texts]
    assert scores(reranker, QUERY, []) == []


def test_an_unknown_character_is_read_as_one_by_the_port(reranker: OnnxReranker) -> None:
    """The model was trained that way, and the tokenizer's own library encodes it so."""
    [pair] = reranker.pairs("先\U0001f680", ["本\U0001f680本"])
    assert pair.tokens.count(3) == 2
    assert len(pair.tokens) == 4 + 3 + 4
    port: Reranker = reranker
    assert port.name == TINY_RERANKER
    clock: Clock = SlowClock()
    assert clock.monotonic() == 1.0


def test_the_graph_is_fed_what_it_declares_and_gives_one_logit(files: Path, reranker: OnnxReranker) -> None:
    """XLM-R has no token types; the pair's template gives all of its tokens the one type that there is."""
    session = onnxruntime.InferenceSession(str(files / GRAPH_FILE), providers=["CPUExecutionProvider"])
    assert [node.name for node in session.get_inputs()] == ["input_ids", "attention_mask"]
    [pair] = reranker.pairs(QUERY, [TEXTS[0]])
    row = np.array([pair.tokens], np.int64)
    (logits,) = session.run(["logits"], {"input_ids": row, "attention_mask": np.ones_like(row)})
    assert logits.shape == (1, 1)
    assert scores(reranker, QUERY, [TEXTS[0]]) == [pytest.approx(1 / (1 + np.exp(-logits[0, 0])))]
    assert set(pair.token_types) == {0}


def test_a_graph_with_token_types_is_fed_them(described: RerankerDescription, files: Path, tmp_path: Path) -> None:
    graph = onnx.load(str(files / GRAPH_FILE))
    types = onnx.helper.make_tensor_value_info("token_type_ids", onnx.TensorProto.INT64, ["batch", "tokens"])
    graph.graph.input.append(types)
    onnx.save_model(graph, str(tmp_path / GRAPH_FILE))
    copy(files / TOKENIZER_FILE, tmp_path)
    encoder, plain = CrossEncoder(described, tmp_path), CrossEncoder(described, files)
    [(ids, kinds)] = encoder.encode(QUERY, [TEXTS[1]])
    assert encoder.score(ids, kinds) == plain.score(ids, kinds)


def test_settings_of_the_tokenizer_cut_nothing(described: RerankerDescription, files: Path, tmp_path: Path) -> None:
    """Published files hold the settings of their authors' last call."""
    tokenizer = Tokenizer.from_file(str(files / TOKENIZER_FILE))
    tokenizer.enable_truncation(8)
    tokenizer.enable_padding(length=40, pad_id=1)
    tokenizer.save(str(tmp_path / TOKENIZER_FILE))
    copy(files / GRAPH_FILE, tmp_path)
    assert CrossEncoder(described, tmp_path).encode(QUERY, TEXTS) == CrossEncoder(described, files).encode(QUERY, TEXTS)


def test_a_pair_that_would_end_too_late_is_not_begun(described: RerankerDescription, files: Path) -> None:
    clock = SlowClock()
    slow = load_reranker(described, files, clock)
    pairs = slow.pairs(QUERY, TEXTS)
    assert [pair.expected_s for pair in pairs] == [1.0] * len(TEXTS)
    # Each pair costs a look at the clock before it, one at its start and one at its end.
    until_s = FakeClock.monotonic(clock) + 7.5
    assert slow.scores(pairs, until_s) == slow.scores(pairs, None)[:2]
    assert slow.scores(pairs, FakeClock.monotonic(clock)) == []


def test_lengths_are_timed_at_the_start_and_less_when_left_out(described: RerankerDescription, files: Path) -> None:
    slow = load_reranker(described, files, SlowClock())
    assert slow.least_s == 1.0
    assert [pair.expected_s for pair in slow.pairs("a", ["", "先" * 100])] == [1.0, 1.0]
    slow.left_out()
    assert 0.99 < slow.least_s < 1.0


def timed(*elapsed_s: float, tokens: int = 100) -> InferenceTimes:
    times = pair_times()
    for each in elapsed_s:
        times.add(tokens, each)
    return times


def test_steady_times_are_expected_and_the_first_one_finds_everything_cold() -> None:
    times = timed(5.0, *[0.1] * 8)
    assert times.expected_s(70) == times.expected_s(128) == pytest.approx(0.1)


def test_one_slow_pair_is_forgotten() -> None:
    times = timed(0.1, *[0.1] * 8)
    times.add(100, 60.0)
    assert times.expected_s(100) < 0.3
    for _ in range(40):
        times.add(100, 0.1)
    assert times.expected_s(100) == pytest.approx(0.1, rel=0.02)


def test_pairs_that_were_slow_are_tried_again_but_seldom() -> None:
    times = timed(1.0, 1.0, 1.0)
    expected = [times.expected_s(100)]
    while expected[-1] > 0.5:
        times.fade()
        expected.append(times.expected_s(100))
    assert expected == sorted(expected, reverse=True)
    assert 600 < len(expected) < 800


def test_an_untimed_length_is_expected_to_take_its_part_more() -> None:
    assert pair_times().expected_s(64) == 0.0
    times = timed(0.1, 0.1, tokens=64)
    assert [times.expected_s(length) for length in (*LENGTHS, 5000)] == pytest.approx([0.1, 0.2, 0.4, 0.8, 0.8])


def test_one_altered_byte_is_refused_before_the_load(
    described: RerankerDescription, files: Path, tmp_path: Path
) -> None:
    copy(files / TOKENIZER_FILE, tmp_path)
    (tmp_path / GRAPH_FILE).write_bytes((files / GRAPH_FILE).read_bytes()[:-1] + b"!")
    with pytest.raises(ModelFileAltered):
        load_reranker(described, tmp_path, FakeClock())


def test_no_output_or_no_joins_are_refused(described: RerankerDescription, files: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelGraphUnsupported, match="relevance"):
        load_reranker(replace(described, score_output="relevance"), files, FakeClock())
    tokenizer = Tokenizer.from_file(str(files / TOKENIZER_FILE))
    tokenizer.post_processor = TemplateProcessing(single="$A", pair="$A $B", special_tokens=[])
    tokenizer.save(str(tmp_path / TOKENIZER_FILE))
    copy(files / GRAPH_FILE, tmp_path)
    hashed = tuple(ModelFile(name=name, sha256=sha256_of(tmp_path / name)) for name in (GRAPH_FILE, TOKENIZER_FILE))
    with pytest.raises(ModelGraphUnsupported, match="nothing between"):
        load_reranker(replace(described, files=hashed), tmp_path, FakeClock())


def test_a_score_without_a_number_is_an_error(described: RerankerDescription, files: Path, tmp_path: Path) -> None:
    broken = tiny_cross_encoder()
    weights = {**broken.weights, "classifier.out_proj.bias": np.array([np.nan], np.float32)}
    onnx.save_model(build_cross_encoder(replace(broken, weights=weights)), str(tmp_path / GRAPH_FILE))
    copy(files / TOKENIZER_FILE, tmp_path)
    encoder = CrossEncoder(described, tmp_path)
    [(ids, types)] = encoder.encode("a", ["b"])
    with pytest.raises(ScoreNotFinite, match="models verify tiny-reranker"):
        encoder.score(ids, types)


def test_the_toy_is_the_same_on_every_build(described: RerankerDescription, tmp_path: Path) -> None:
    assert build_tiny_reranker(tmp_path) == described
    assert build_tiny_reranker(tmp_path) == described


def test_a_directory_that_describes_itself_is_a_cross_encoder(
    described: RerankerDescription, tiny: ModelDescription, models_directory: Path
) -> None:
    assert find_reranker(TINY_RERANKER, models_directory) == described
    for name in ("nonesuch", tiny.name):
        with pytest.raises(ModelUnknown, match="bge-reranker-base, bge-reranker-v2-m3"):
            find_reranker(name, models_directory)
    with pytest.raises(ModelUnknown):
        find(TINY_RERANKER, models_directory)


def test_without_a_name_it_is_the_one_that_was_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here: set[str] = set()
    monkeypatch.setattr("hummock.models.registry.is_here", lambda model, directory: model.name in here)
    for name, chosen in (
        (None, "bge-reranker-v2-m3"),
        ("bge-reranker-base", "bge-reranker-base"),
        ("bge-reranker-v2-m3", "bge-reranker-v2-m3"),
    ):
        here |= {name} if name else set()
        assert find_reranker("", tmp_path).name == chosen


@pytest.mark.parametrize("model", RERANKERS.values(), ids=lambda model: model.name)
def test_registered_cross_encoders_are_pinned(model: RerankerDescription) -> None:
    wanted = {file.name for file in model.downloads}
    assert all(file.sha256 and file.size_bytes for file in model.downloads)
    assert all(set(source.paths) == wanted for source in model.sources)
    assert all(len(source.revision) == 40 for source in model.sources if isinstance(source, Hub))


def scores(reranker: OnnxReranker, query: str, texts: Sequence[str]) -> list[float]:
    pairs: list[Pair] = reranker.pairs(query, texts)
    return reranker.scores(pairs, None)
