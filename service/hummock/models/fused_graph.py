"""Rewrites an encoder's graph for one text per inference: attention as one operator, and no mask.

Supports the int8 graphs of `bert_graph.py` and exports of transformers with attention in single operators. The output
of the rewritten graph is the same except for rounding.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

MASK_INPUT = "attention_mask"
_CONTRIB = "com.microsoft"
_OPSET = 18  # Of Split with a number of outputs; LayerNormalization needs 17.
_AXES = 4
_BY_HEADS = [0, 2, 1, 3]
_KEYS_BY_HEADS = [0, 2, 3, 1]

Node = onnx.NodeProto


class GraphUnknown(Exception):
    """The rewrite does not support the graph's form; the message names the difference."""


def fused(model: onnx.ModelProto, output: str) -> onnx.ModelProto:
    """Rewrite the graph in place, with this output only.

    It has no input for a mask, so padded texts cannot be fed to it.

    Raises:
        GraphUnknown: The graph has another form.
    """
    graph = model.graph
    if any(tensor.data_location == TensorProto.EXTERNAL for tensor in graph.initializer):
        raise GraphUnknown("its weights lie in files of their own")
    attention = _Export(graph).attention()
    has_new_operators = any(each.domain == "" and each.version >= _OPSET for each in model.opset_import)
    nodes: list[Node] = []
    for node in graph.node:
        if node.op_type in _SPELT_OUT and has_new_operators:
            nodes += _SPELT_OUT[node.op_type](node)
        else:
            nodes.append(attention.get(node.output[0], node))
    if not any(node.op_type == "MultiHeadAttention" for node in nodes):
        raise GraphUnknown("it holds no attention of a known form")
    _keep(graph, nodes, output)
    if all(each.domain != _CONTRIB for each in model.opset_import):
        model.opset_import.append(helper.make_opsetid(_CONTRIB, 1))
    return model


class _Export:
    """A graph exported by transformers, indexed by producer and consumers of each tensor."""

    def __init__(self, graph: onnx.GraphProto) -> None:
        self._softmaxes = [node for node in graph.node if node.op_type == "Softmax"]
        self._maker = {name: node for node in graph.node for name in node.output}
        self._constants = _constants(graph)
        self._readers: dict[str, list[Node]] = {}
        for node in graph.node:
            for name in node.input:
                self._readers.setdefault(name, []).append(node)

    def attention(self) -> dict[str, Node]:
        """An operator for each attention, by its output's name; empty where there is no Softmax."""
        found = [self._of(softmax) for softmax in self._softmaxes]
        return {node.output[0]: node for node in found}

    def _of(self, softmax: Node) -> Node:
        masked = self._made(softmax.input[0], "Add")
        scaled = self._made(masked.input[0], "Div")
        self._check_mask(masked.input[1])
        products = self._made(scaled.input[0], "MatMul")
        weighted = self._reader(softmax.output[0], "MatMul")
        joined = self._reader(self._reader(weighted.output[0], "Transpose").output[0], "Reshape")
        query, heads = self._split(products.input[0], _BY_HEADS)
        key, key_heads = self._split(products.input[1], _KEYS_BY_HEADS)
        value, value_heads = self._split(weighted.input[1], _BY_HEADS)
        if not heads == key_heads == value_heads:
            raise GraphUnknown(f"its attention has {heads}, {key_heads} and {value_heads} heads")
        scale = 1 / float(self._constant(scaled.input[1]))
        inputs, output = [query, key, value], joined.output[0]
        return helper.make_node("MultiHeadAttention", inputs, [output], domain=_CONTRIB, num_heads=heads, scale=scale)

    def _split(self, name: str, order: Sequence[int]) -> tuple[str, int]:
        """The tensor that is cut into heads there, and how many they are."""
        turned = self._made(name, "Transpose")
        if list(_attribute(turned, "perm")) != list(order):
            raise GraphUnknown(f"{turned.name} turns its axes otherwise")
        cut = self._made(turned.input[0], "Reshape")
        sizes = self._made(cut.input[1], "Concat").input
        if len(sizes) != len(order):
            raise GraphUnknown(f"{cut.name} does not make {len(order)} axes")
        return cut.input[0], int(self._constant(sizes[2]))

    def _check_mask(self, name: str) -> None:
        """Check that the removed input is only the mask, not, for example, the distance of tokens."""
        read, waiting = set[str](), [name]
        while waiting:
            name = waiting.pop()
            if name in self._maker:
                waiting += self._maker[name].input
            elif name not in self._constants:
                read.add(name)
        if read != {MASK_INPUT}:
            raise GraphUnknown(f"its attention depends on {sorted(read)}, not on {MASK_INPUT} alone")

    def _made(self, name: str, operator: str) -> Node:
        node = self._maker.get(name)
        if node is None or node.op_type != operator:
            raise GraphUnknown(f"{name} is not made by {operator}")
        return node

    def _reader(self, name: str, operator: str) -> Node:
        readers = [node for node in self._readers.get(name, ()) if node.op_type == operator]
        if len(readers) != 1:
            raise GraphUnknown(f"{name} is read by {len(readers)} {operator}")
        return readers[0]

    def _constant(self, name: str) -> NDArray[np.generic]:
        value = self._constants.get(name)
        if value is None or value.size != 1:
            raise GraphUnknown(f"{name} is no constant number")
        return value.reshape(())


def _attention(node: Node) -> list[Node]:
    """QAttention as the product of its input with all three weights, and attention over that."""
    attributes = {each.name for each in node.attribute}
    if len(node.input) < 8 or any(node.input[8:]) or attributes != {"num_heads"}:
        raise GraphUnknown(f"{node.name} has inputs {list(node.input)} and attributes {sorted(attributes)}")
    state, weight, bias, state_scale, weight_scale, _, state_zero, weight_zero = node.input[:8]
    name = node.output[0]
    parts = [f"{name}/{part}" for part in ("query", "key", "value")]
    heads = _attribute(node, "num_heads")
    return [
        helper.make_node("MatMulInteger", [state, weight, state_zero, weight_zero], [f"{name}/integers"]),
        helper.make_node("Cast", [f"{name}/integers"], [f"{name}/floats"], to=TensorProto.FLOAT),
        helper.make_node("Mul", [state_scale, weight_scale], [f"{name}/scale"]),
        helper.make_node("Mul", [f"{name}/floats", f"{name}/scale"], [f"{name}/scaled"]),
        helper.make_node("Add", [f"{name}/scaled", bias], [f"{name}/joint"]),
        helper.make_node("Split", [f"{name}/joint"], parts, axis=-1, num_outputs=len(parts)),
        helper.make_node("MultiHeadAttention", parts, [name], domain=_CONTRIB, num_heads=heads),
    ]


def _norm(node: Node) -> list[Node]:
    """SkipLayerNormalization as its sums and a normalisation, which unlike it is vectorised."""
    if len(node.input) < 5 or len(node.output) > 1:
        return [node]
    state, skip, weight, shift, bias = node.input
    name, epsilon = node.output[0], _attribute(node, "epsilon")
    return [
        helper.make_node("Add", [state, bias], [f"{name}/biased"]),
        helper.make_node("Add", [f"{name}/biased", skip], [f"{name}/sum"]),
        helper.make_node("LayerNormalization", [f"{name}/sum", weight, shift], [name], axis=-1, epsilon=epsilon),
    ]


def _gelu(node: Node) -> list[Node]:
    """BiasGelu in two, for the product before it adds the bias at no cost."""
    state, bias = node.input
    name = node.output[0]
    return [
        helper.make_node("Add", [state, bias], [f"{name}/biased"]),
        helper.make_node("Gelu", [f"{name}/biased"], [name], domain=_CONTRIB),
    ]


_SPELT_OUT = {"QAttention": _attention, "SkipLayerNormalization": _norm, "BiasGelu": _gelu}


def _attribute(node: Node, name: str) -> Any:
    """The attribute's value, a number or numbers. Raises: GraphUnknown."""
    found = [helper.get_attribute_value(each) for each in node.attribute if each.name == name]
    if not found:
        raise GraphUnknown(f"{node.name} has no {name}")
    return found[0]


def _keep(graph: onnx.GraphProto, nodes: Sequence[Node], output: str) -> None:
    """Replace the graph's nodes by these, without those that the output does not need. Raises: GraphUnknown."""
    kept: list[Node] = []
    needed = {output}
    for node in reversed(nodes):
        if needed.intersection(node.output):
            kept.append(node)
            needed.update(node.input)
    _replace(graph.node, kept[::-1])
    for tensors in (graph.initializer, graph.input):
        _replace(tensors, [each for each in tensors if each.name in needed])
    _replace(graph.output, [each for each in graph.output if each.name == output])
    del graph.value_info[:]
    if MASK_INPUT in needed or not graph.output:
        raise GraphUnknown(f"{output} needs the mask elsewhere than in attention")


def _replace(field: object, items: Sequence[object]) -> None:
    field.clear()  # type: ignore[attr-defined]  # a repeated field, whose type the library keeps to itself
    field.extend(items)  # type: ignore[attr-defined]


def _constants(graph: onnx.GraphProto) -> Mapping[str, NDArray[np.generic]]:
    """Numbers and shapes; no table or weight is as small."""
    tensors = {node.output[0]: node.attribute[0].t for node in graph.node if node.op_type == "Constant"}
    tensors |= {tensor.name: tensor for tensor in graph.initializer if sum(tensor.dims) <= _AXES}
    return {name: numpy_helper.to_array(tensor) for name, tensor in tensors.items()}
