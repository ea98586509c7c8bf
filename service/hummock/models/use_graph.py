"""Converts Google's Universal Sentence Encoder multilingual v3 into an ONNX graph, without TensorFlow.

The model (Yang et al. 2019, "Multilingual Universal Sentence Encoder for Semantic Retrieval", the CNN form) has a table
of 128,010 pieces x 512 in 17 parts, stored as bytes with a scale and an offset each; three branches of convolutions
over 2, 3 and 5 pieces; a sum over all pieces; and five dense layers. The graph takes `input_ids` (1, n) int64 and gives
`sentence_embedding` (1, 512) float32, a unit vector. It gives no states of single tokens.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from hummock.models.encoder import SENTENCE_OUTPUT

DIM = 512
_PARTS = 17
_BRANCH = 256  # Components of a branch.
_WINDOWS = ((2, 0), (3, 1), (5, 2))  # Pieces of a branch's window, and how many of them come before its own.
_TO_THE_END = int(np.iinfo(np.int64).max)

Weights = Mapping[str, NDArray[Any]]


def convert_use(weights: Path) -> onnx.ModelProto:
    """Return the graph of the arrays in this file (`weights.npz`), in float32."""
    with np.load(weights, allow_pickle=False) as arrays:
        return _graph(dict(arrays))


class _Builder:
    """Collects the nodes and constants of a graph; a call adds a node and returns the name of its output."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def __call__(self, operator: str, *inputs: str | NDArray[Any], **attributes: Any) -> str:
        name = f"{operator}{len(self.nodes)}"
        names = [each if isinstance(each, str) else self._constant(each) for each in inputs]
        self.nodes.append(helper.make_node(operator, names, [name], name=name, **attributes))
        return name

    def _constant(self, value: NDArray[Any]) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name


def _graph(weights: Weights) -> onnx.ModelProto:
    add = _Builder()
    epsilon = float(weights["eps"])
    ids = add("Reshape", "input_ids", _ints(-1))
    state = _looked_up(add, weights, ids)
    branches = [state, *_branches(add, weights, state, epsilon)]
    normed = add(
        "LayerNormalization",
        add("Concat", *branches, axis=1),
        weights["ln_g"],
        weights["ln_b"],
        axis=-1,
        epsilon=epsilon,
    )
    mean = _summed(add, weights, normed, ids)
    first = add("Relu", add("MatMul", mean, weights["d0"]))
    second = add("Relu", add("Add", add("MatMul", mean, weights["p1"]), add("MatMul", first, weights["d1"])))
    third = add("Relu", add("MatMul", second, weights["d2"]))
    last = add("Tanh", add("Add", add("MatMul", second, weights["p3"]), add("MatMul", third, weights["d3"])))
    norm = add("ReduceL2", last, _ints(1), keepdims=1)
    add.nodes.append(helper.make_node("Div", [last, norm], [SENTENCE_OUTPUT]))
    graph = helper.make_graph(
        add.nodes,
        "use-multilingual-v3",
        [helper.make_tensor_value_info("input_ids", TensorProto.INT64, [1, "sequence"])],
        [helper.make_tensor_value_info(SENTENCE_OUTPUT, TensorProto.FLOAT, [1, DIM])],
        add.constants,
    )
    opset = helper.make_opsetid("", 18)
    return helper.make_model(graph, opset_imports=[opset], ir_version=9, producer_name="hummock")


def _looked_up(add: _Builder, weights: Weights, ids: str) -> str:
    """Rows of the table, (n, 512): piece i is row i // 17 of part i % 17."""
    table = np.empty((_PARTS * len(weights["q1"]), DIM), np.uint8)
    for part in range(_PARTS):
        table[part::_PARTS] = weights[f"q{part + 1}"]
    part_of = add("Mod", ids, _ints(_PARTS))
    rows = add("Cast", add("Gather", table, ids), to=TensorProto.FLOAT)
    scaled = add("Mul", rows, add("Gather", weights["scale"].reshape(-1, 1).astype(np.float32), part_of))
    return add("Add", scaled, add("Gather", weights["lo"].reshape(-1, 1).astype(np.float32), part_of))


def _branches(add: _Builder, weights: Weights, state: str, epsilon: float) -> Iterator[str]:
    """The three branches of convolutions, (n, 256) each."""
    sizes = [size for size, _ in _WINDOWS]
    projection = np.concatenate([weights[f"proj{size}"] for size in sizes], axis=1)
    shift = np.concatenate([weights[f"proj_b{size}"] for size in sizes])
    gains, shifts = (np.concatenate([weights[f"ln_{kind}{size}"] for size in sizes]) for kind in "gb")
    projected = add("Add", add("MatMul", state, projection), shift)
    inner = add("LayerNormalization", projected, gains, shifts, axis=-1, epsilon=epsilon)
    for place, (size, before) in enumerate(_WINDOWS):
        own = add("Slice", inner, _ints(place * _BRANCH), _ints((place + 1) * _BRANCH), _ints(1))
        for layer in (1, 2):
            # The pieces of a window side by side and one product: a convolution does not run in int8.
            padded = add("Pad", own, _ints(before, 0, size - 1 - before, 0))
            shifted = [
                add("Slice", padded, _ints(at), _ints(at + 1 - size or _TO_THE_END), _ints(0)) for at in range(size)
            ]
            found = add("MatMul", add("Concat", *shifted, axis=1), weights[f"w{layer}_{size}"])
            own = add("Add", add("Relu", add("Add", found, weights[f"b{layer}_{size}"])), own)
        yield own


def _summed(add: _Builder, weights: Weights, normed: str, ids: str) -> str:
    """The sum over all pieces, divided by the square root of their number, (1, m)."""
    count = add("Cast", add("Shape", ids), to=TensorProto.FLOAT)
    total = add("MatMul", add("ReduceSum", normed, _ints(0), keepdims=1), weights["cnn_W"])
    total = add("Add", total, add("Mul", add("Unsqueeze", count, _ints(0)), weights["cnn_b"]))
    return add("Div", total, add("Sqrt", count))


def _ints(*values: int) -> NDArray[np.int64]:
    return np.array(values, np.int64)
