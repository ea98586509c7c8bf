"""Converts multilingual-e5-small from 4 bits a weight into an ONNX graph, without torch.

A file of form E5S1 has, little-endian and in this order: the mark, a version, the sizes, the tokenizer's pieces (which
are skipped), and for each tensor its name, type, count of numbers and place. A matrix is (out, in) in blocks of 32
numbers along `in`: a float16 scale and 16 bytes, of which byte j holds number j in its low four bits and number j + 16
in its high ones, each to be read as (bits - 8) times the scale. All other tensors are float32.

The encoder's matrices become int8 like those of other BERTs. The table of 250,037 pieces keeps its 4 bits, which
onnxruntime reads row by row: in int8 it would lose precision and be twice as large.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from hummock.models.bert_graph import WORD_TABLE, WORDS
from hummock.models.convert import BertCheckpoint, BertShape, Float32Array
from hummock.models.errors import CheckpointUnsupported

BLOCK = 32
_MARK = b"E5S1"
_IR_VERSION = 10  # Numbers of 4 bits need it.
_TABLES = {"pos": "position_embeddings", "type": "token_type_embeddings"}
_LAYER = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}


class E5File:
    """A file of form E5S1: its sizes, and its tensors by name. Raises: CheckpointUnsupported: It has another form."""

    def __init__(self, path: Path) -> None:
        self._bytes = path.read_bytes()
        self._at = 0
        self._places: dict[str, tuple[int, int]] = {}
        try:
            self._read_head()
        except (struct.error, UnicodeDecodeError) as error:
            raise CheckpointUnsupported(f"{path.name} ends before its list of tensors does") from error

    def _read_head(self) -> None:
        mark, _version, *sizes = self._read("4sI7i")
        if mark != _MARK:
            raise CheckpointUnsupported(f"the weights begin with {mark!r}; only {_MARK!r} can be converted")
        hidden, layers, heads, self.inner, self.words, self.positions, self.types = sizes
        epsilon, block, pieces, *_special, piece_bytes = self._read("fi5iQ")
        if block != BLOCK:
            raise CheckpointUnsupported(f"the weights are in blocks of {block} numbers; only {BLOCK} can be converted")
        self.shape = BertShape(layers=layers, heads=heads, hidden=hidden, layer_norm_epsilon=epsilon)
        self._at += 4 * (pieces + 1) + 4 * pieces + piece_bytes
        _folded, folded_bytes = self._read("iI")
        self._at += folded_bytes
        for _ in range(*self._read("i")):
            (name,) = self._read(f"{self._read('H')[0]}s")
            _type, count, offset, _length = self._read("BIQQ")
            self._places[name.decode()] = offset, count

    def _read(self, form: str) -> tuple[Any, ...]:
        found = struct.unpack_from(f"<{form}", self._bytes, self._at)
        self._at += struct.calcsize(f"<{form}")
        return found

    def floats(self, name: str, *shape: int) -> Float32Array:
        """A float32 tensor of this shape. Raises: CheckpointUnsupported: It is not there, or of another size."""
        return self._numbers(name, np.dtype("<f4"), int(np.prod(shape)), 1).reshape(shape).astype(np.float32)

    def blocks(self, name: str, rows: int, columns: int) -> tuple[NDArray[np.uint8], NDArray[np.float16]]:
        """The 4 bits of a matrix, (rows, columns) uint8 in 0..15, and its scales, (rows, columns / 32)."""
        form = np.dtype([("scale", "<f2"), ("pairs", "u1", BLOCK // 2)])
        read = self._numbers(name, form, rows * columns, BLOCK)
        bits = np.concatenate([read["pairs"] & 15, read["pairs"] >> 4], axis=1)
        return bits.reshape(rows, columns), read["scale"].reshape(rows, columns // BLOCK)

    def matrix(self, name: str, rows: int, columns: int) -> Float32Array:
        """A matrix in float32. Raises: as `floats`."""
        bits, scales = self.blocks(name, rows, columns)
        parts = bits.reshape(rows, -1, BLOCK).astype(np.float32) - 8
        return (parts * scales.astype(np.float32)[:, :, np.newaxis]).reshape(rows, columns)

    def _numbers(self, name: str, form: np.dtype[Any], count: int, per_item: int) -> NDArray[Any]:
        offset, found = self._places.get(name, (0, 0))
        if found != count or offset + count // per_item * form.itemsize > len(self._bytes):
            raise CheckpointUnsupported(f"the weights have {found} numbers named {name}, not {count}")
        return np.frombuffer(self._bytes, form, count // per_item, offset)


def e5_checkpoint(source: E5File) -> BertCheckpoint:
    """The encoder in float32, with a row of zeros in place of the table of pieces (`add_word_table`)."""
    hidden, inner = source.shape.hidden, source.inner
    weights = {WORD_TABLE: np.zeros((1, hidden), np.float32)}
    for (short, name), rows in zip(_TABLES.items(), (source.positions, source.types), strict=True):
        weights[f"embeddings.{name}.weight"] = source.floats(f"emb.{short}", rows, hidden)
    for short, kind in (("w", "weight"), ("b", "bias")):
        weights[f"embeddings.LayerNorm.{kind}"] = source.floats(f"emb.ln.{short}", hidden)
    for index in range(source.shape.layers):
        for short, name in _LAYER.items():
            rows, columns = {"fi": (inner, hidden), "fo": (hidden, inner)}.get(short, (hidden, hidden))
            is_norm, place = name.endswith("LayerNorm"), f"encoder.layer.{index}.{name}"
            weight = f"l{index}.{short}.w"
            read = source.floats(weight, rows) if is_norm else source.matrix(weight, rows, columns)
            weights[f"{place}.weight"] = read
            weights[f"{place}.bias"] = source.floats(f"l{index}.{short}.b", rows)
    return BertCheckpoint(shape=source.shape, weights=weights)


def add_word_table(path: Path, source: E5File) -> None:
    """Put the table of pieces, in its 4 bits, into the graph in this file in place of the row of zeros."""
    model = onnx.load(path)
    graph = model.graph
    at = next(number for number, node in enumerate(graph.node) if node.name == WORDS)
    graph.initializer.remove(next(each for each in graph.initializer if each.name == WORD_TABLE))
    bits, scales = source.blocks("emb.word", source.words, source.shape.hidden)
    signed = bits ^ 8  # 0..15 counted from 8, as numbers with a sign.
    packed = (signed[:, 0::2] | signed[:, 1::2] << 4).tobytes()
    table = helper.make_tensor(f"{WORDS}/bits", TensorProto.INT4, bits.shape, packed, raw=True)
    graph.initializer.extend([table, numpy_helper.from_array(scales.copy(), f"{WORDS}/scales")])
    rows = helper.make_node(
        "GatherBlockQuantized",
        [table.name, "input_ids", f"{WORDS}/scales"],
        [f"{WORDS}/rows"],
        domain="com.microsoft",
        gather_axis=0,
        quantize_axis=1,
        block_size=BLOCK,
    )
    graph.node.remove(graph.node[at])
    graph.node.insert(at, helper.make_node("Cast", [f"{WORDS}/rows"], [WORDS], name=WORDS, to=TensorProto.FLOAT))
    graph.node.insert(at, rows)
    model.ir_version = max(model.ir_version, _IR_VERSION)
    onnx.save_model(model, str(path))
