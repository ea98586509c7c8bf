"""multilingual-e5-small's conversion, from a file of its form with few pieces and random weights, and its centre."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from bench.toy_models import build_tiny_reranker
from hummock.models import REGISTRY, ModelDescription, OnnxEmbedder, load
from hummock.models.basis import is_chinese, load_centre
from hummock.models.bert_graph import WORD_TABLE
from hummock.models.convert import BertCheckpoint, convert
from hummock.models.description import GRAPH_FILE, TOKENIZER_FILE, Conversion, Form, ModelFile
from hummock.models.e5_graph import BLOCK, E5File, e5_checkpoint
from hummock.models.encoder import Encoder
from hummock.models.errors import CheckpointUnsupported, ModelGraphUnsupported
from hummock.models.files import is_here, sha256_of, verify, write_record
from hummock.models.fusion import derive, served
from tests.models.embedding import embedded
from tests.models.numpy_bert import last_hidden_state, mean_pooled
from tests.shared import FETCHED

DIM, INNER, LAYERS, HEADS, POSITIONS = 384, 64, 1, 12, 80
E5 = REGISTRY["multilingual-e5-small"]
WEIGHTS = "e5.bin"
TEXTS = ("repay the loan", "先本后息 repay", "还款")


def e5_file(words: int, *, mark: bytes = b"E5S1", block: int = BLOCK) -> tuple[bytes, dict[str, NDArray[np.float32]]]:
    """A file of form E5S1 with random weights, and what its tensors are in float32."""
    random = np.random.default_rng(3)
    vectors = {"emb.ln.w": (DIM,), "emb.ln.b": (DIM,), "emb.pos": (POSITIONS, DIM), "emb.type": (2, DIM)}
    matrices = {"emb.word": (words, DIM)}
    for short in ("q", "k", "v", "ao", "fi", "fo"):
        matrices[f"l0.{short}.w"] = {"fi": (INNER, DIM), "fo": (DIM, INNER)}.get(short, (DIM, DIM))
        vectors[f"l0.{short}.b"] = matrices[f"l0.{short}.w"][:1]
    vectors |= {f"l0.{norm}.{kind}": (DIM,) for norm in ("aln", "oln") for kind in "wb"}
    packed: dict[str, bytes] = {}
    numbers: dict[str, NDArray[np.float32]] = {}
    for name, shape in vectors.items():
        is_gain = "ln.w" in name
        numbers[name] = (0.1 * random.standard_normal(shape) + is_gain).astype(np.float32)
        packed[name] = numbers[name].tobytes()
    for name, shape in matrices.items():
        bits = random.integers(0, 16, (int(np.prod(shape)) // BLOCK, BLOCK), np.uint8)
        scales = random.uniform(0.01, 0.03, len(bits)).astype("<f2")
        blocks = np.empty(len(bits), np.dtype([("scale", "<f2"), ("pairs", "u1", BLOCK // 2)]))
        blocks["scale"], blocks["pairs"] = scales, bits[:, :16] | bits[:, 16:] << 4
        numbers[name] = ((bits.astype(np.float32) - 8) * scales[:, np.newaxis].astype(np.float32)).reshape(shape)
        packed[name] = blocks.tobytes()
    head = struct.pack("<4sI7ifi", mark, 1, DIM, LAYERS, HEADS, INNER, words, POSITIONS, 2, 1e-12, block)
    head += struct.pack("<5iQ2If3s", 1, 0, 2, 1, 3, 3, 0, 3, -1.0, b"abc") + struct.pack("<iI2s", 1, 2, b"AB")
    entries = [(name.encode(), numbers[name].size, content) for name, content in packed.items()]
    at = len(head) + 4 + sum(2 + len(name) + 21 for name, _, _ in entries)
    table = struct.pack("<i", len(entries))
    for key, size, content in entries:
        table += struct.pack(f"<H{len(key)}sBIQQ", len(key), key, 0, size, at, len(content))
        at += len(content)
    return head + table + b"".join(content for _, _, content in entries), numbers


@pytest.fixture(scope="module")
def model(models_directory: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[ModelDescription, Path]:
    """The registry's model with the toy's tokenizer and weights, converted."""
    directory = tmp_path_factory.mktemp("e5") / E5.name
    directory.mkdir()
    tokenizer = models_directory / build_tiny_reranker(models_directory).name / TOKENIZER_FILE
    (directory / TOKENIZER_FILE).write_bytes(tokenizer.read_bytes())
    (directory / WEIGHTS).write_bytes(e5_file(30_000)[0])
    read = {name: ModelFile(name=name, sha256=sha256_of(directory / name)) for name in (TOKENIZER_FILE, WEIGHTS)}
    files = (ModelFile(name=GRAPH_FILE), read[TOKENIZER_FILE])
    conversion = Conversion(weights=read[WEIGHTS], form=Form.E5)
    described = replace(E5, files=files, sources=(), max_tokens=64, conversion=conversion)
    convert(described, conversion, directory)
    write_record(described, directory)
    return described, directory


@pytest.fixture(scope="module")
def checkpoint(model: tuple[ModelDescription, Path]) -> BertCheckpoint:
    """Those weights in float32, with their whole table."""
    found = e5_checkpoint(E5File(model[1] / WEIGHTS))
    return BertCheckpoint(shape=found.shape, weights={**found.weights, WORD_TABLE: e5_file(30_000)[1]["emb.word"]})


@pytest.fixture(scope="module")
def embedder(model: tuple[ModelDescription, Path]) -> Iterator[OnnxEmbedder]:
    embedder = load(*model, slots=1)
    yield embedder
    embedder.close()


def test_numbers_of_four_bits_are_read_as_they_are_written(tmp_path: Path) -> None:
    content, numbers = e5_file(64)
    (tmp_path / WEIGHTS).write_bytes(content)
    source = E5File(tmp_path / WEIGHTS)
    np.testing.assert_array_equal(source.matrix("emb.word", 64, DIM), numbers["emb.word"])
    np.testing.assert_array_equal(source.floats("emb.pos", POSITIONS, DIM), numbers["emb.pos"])


def test_the_graph_computes_what_the_encoder_does(
    model: tuple[ModelDescription, Path], checkpoint: BertCheckpoint
) -> None:
    """Its matrices are int8, its table as exact as the file."""
    encoder = Encoder(*model)
    for text in TEXTS:
        ids = encoder._tokenizer.encode(text).ids
        twin = mean_pooled(last_hidden_state(checkpoint, ids))
        found = encoder.encode(text).pooled
        assert found @ twin / np.linalg.norm(found) > 0.99


def test_the_faster_graph_serves(model: tuple[ModelDescription, Path], tmp_path: Path) -> None:
    described, directory = model
    for path in directory.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    derive(described, tmp_path, tmp_path, lambda line: pytest.fail(line))
    assert served(described, tmp_path).path.name == "model.fused.onnx"


def test_the_same_file_gives_the_same_graph(model: tuple[ModelDescription, Path], tmp_path: Path) -> None:
    described, directory = model
    (tmp_path / WEIGHTS).write_bytes((directory / WEIGHTS).read_bytes())
    assert described.conversion
    convert(described, described.conversion, tmp_path)
    assert sha256_of(tmp_path / GRAPH_FILE) == sha256_of(directory / GRAPH_FILE)


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (e5_file(64)[0][:200], "ends before"),
        (e5_file(64)[0][:-1], "named l0"),
        (e5_file(64, mark=b"E5S2")[0], "begin with b'E5S2'"),
        (e5_file(64, block=64)[0], "blocks of 64"),
        (b"", "ends before"),
    ],
    ids=["cut in its list", "cut in a tensor", "another mark", "other blocks", "empty"],
)
def test_a_file_of_another_form_is_refused(content: bytes, match: str, tmp_path: Path) -> None:
    (tmp_path / WEIGHTS).write_bytes(content)
    with pytest.raises(CheckpointUnsupported, match=match):
        e5_checkpoint(E5File(tmp_path / WEIGHTS))


# The centre


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("怎么提前还款？", True),
        ("用 Rust 写的解析器在哪里？", True),
        ("how do I repay early?", False),
        ("the sign 港 stands for a harbour in many names", False),
        ("繰り上げ返済はどうすればいいですか", False),
        ("", False),
    ],
)
def test_a_text_is_chinese_from_half_of_its_words(text: str, expected: bool) -> None:
    assert is_chinese(text) is expected


@pytest.mark.parametrize(("text", "row"), [("repay early", 0), ("提前还款", 1)])
def test_the_mean_of_its_language_and_side_is_taken_from_a_vector(
    model: tuple[ModelDescription, Path], embedder: OnnxEmbedder, text: str, row: int
) -> None:
    centre = load_centre(E5.centre, DIM)
    raw = load(replace(model[0], centre=""), model[1], slots=1)
    assert centre is not None
    pairs = (
        (embedder.embed_query(text), raw.embed_query(text), centre.query),
        (embedded(embedder, [text])[0], embedded(raw, [text])[0], centre.document),
    )
    for found, before, means in pairs:
        expected = before.vector - means[row]
        np.testing.assert_allclose(found.vector, expected / np.linalg.norm(expected), atol=1e-6)
        assert np.linalg.norm(found.vector) == pytest.approx(1)
        np.testing.assert_array_equal(found.tokens, before.tokens)
    assert raw.space.id != embedder.space.id
    raw.close()


def test_a_centre_of_another_size_is_refused() -> None:
    with pytest.raises(ModelGraphUnsupported, match="384 dims; the model has 512"):
        load_centre(E5.centre, 512)
    assert load_centre("", 512) is None


def test_real_weights_find_an_answer_in_the_other_language() -> None:
    """Without the centre the question prefers the fragment with Chinese characters."""
    if not is_here(E5, FETCHED):
        pytest.skip(f"`hummock models pull {E5.name}` has not put the real weights into {FETCHED}")
    verify(E5, FETCHED / E5.name)
    stored = ["The harbour is deep enough for large ships.", 'title = "港口列表"  # 标题', "Interest is paid monthly."]
    found: list[int] = []
    for model in (E5, replace(E5, centre="")):
        embedder = load(model, FETCHED / E5.name, slots=1)
        asked = embedder.embed_query("港口的水深够大船停靠吗？").vector
        found.append(int(np.argmax([each.vector @ asked for each in embedded(embedder, stored)])))
        embedder.close()
    assert found == [0, 1]
