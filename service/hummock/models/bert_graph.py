"""Builds the ONNX graph of a BERT encoder with the fused CPU operators of onnxruntime, without torch.

Written node by node, because the offline optimiser finds few of the fusions in an exported graph (`Attention`,
`SkipLayerNormalization` and `BiasGelu` emitted directly give a quarter of the nodes).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from hummock.models.convert import BertCheckpoint
from hummock.models.description import Pooling

OPSET = 18  # LayerNormalization needs 17 or later.
IR_VERSION = 9  # What onnxruntime reads since 1.15; onnx writes its own newest by default.
FUSED = frozenset({"Attention", "BiasGelu", "SkipLayerNormalization"})
MASK = "mask/int32"  # Made once, read by every attention.
WORD_TABLE = "embeddings.word_embeddings.weight"
WORDS = "emb/word"
"""Name and output of the node that looks up the rows of WORD_TABLE."""


def build_graph(checkpoint: BertCheckpoint, pooling: Pooling) -> onnx.ModelProto:
    """The encoder in float32.

    Inputs `input_ids`, `attention_mask`, `token_type_ids`, each int64 (batch, sequence). Outputs
    `last_hidden_state` (batch, sequence, hidden) and `sentence_embedding` (batch, hidden), a unit vector.
    """
    graph = GraphBuilder(checkpoint, ("input_ids", "attention_mask", "token_type_ids"))
    state = graph.encoder()
    graph.add("Identity", [state], "last_hidden_state")
    if pooling is Pooling.CLS:
        graph.pool_first(state)
    else:
        graph.pool_mean(state)
    hidden = checkpoint.shape.hidden
    return graph.model(last_hidden_state=["batch", "sequence", hidden], sentence_embedding=["batch", hidden])


class GraphBuilder:
    """Nodes and constants of the graph so far; every method returns the name of the tensor it made."""

    def __init__(self, checkpoint: BertCheckpoint, inputs: Sequence[str]) -> None:
        self._checkpoint = checkpoint
        self._inputs = tuple(inputs)
        self._nodes: list[onnx.NodeProto] = []
        self._constants: dict[str, onnx.TensorProto] = {}
        self._epsilon = checkpoint.shape.layer_norm_epsilon

    def add(self, operator: str, inputs: Sequence[str], output: str, **attributes: float) -> str:
        """Add a node; names of fused operators are those of onnxruntime."""
        domain = "com.microsoft" if operator in FUSED else ""
        node = helper.make_node(operator, list(inputs), [output], name=output, domain=domain)
        node.attribute.extend(helper.make_attribute(name, value) for name, value in attributes.items())
        self._nodes.append(node)
        return output

    def constant(self, name: str, value: NDArray[np.float32] | NDArray[np.int64]) -> str:
        """A tensor with this value."""
        self._constants[name] = numpy_helper.from_array(value, name)
        return name

    def indices(self, name: str, *values: int) -> str:
        """A tensor of these int64 numbers."""
        return self.constant(name, np.asarray(values, dtype=np.int64))

    def weight(self, name: str) -> str:
        """A weight of the checkpoint, by its name there."""
        return self.constant(name, self._checkpoint.weights[name])

    def encoder(self) -> str:
        """The hidden states of the last layer, (batch, sequence, hidden)."""
        state = self._embeddings()
        for index in range(self._checkpoint.shape.layers):
            state = self._layer(index, state)
        return state

    def _embeddings(self) -> str:
        self.add("Cast", ["attention_mask"], MASK, to=TensorProto.INT32)
        word = self.add("Gather", [self.weight(WORD_TABLE), "input_ids"], WORDS)
        both = self.add("Add", [word, self._token_type()], "emb/word_type")
        total = self.add("Add", [both, self._position()], "emb/sum")
        return self.add(
            "LayerNormalization",
            [total, self.weight("embeddings.LayerNorm.weight"), self.weight("embeddings.LayerNorm.bias")],
            "emb/norm",
            axis=-1,
            epsilon=self._epsilon,
        )

    def _token_type(self) -> str:
        table = self.weight("embeddings.token_type_embeddings.weight")
        # The table of one type is one row, which is added to every token.
        return self.add("Gather", [table, "token_type_ids"], "emb/type") if "token_type_ids" in self._inputs else table

    def _position(self) -> str:
        shape = self.add("Shape", ["input_ids"], "emb/shape")
        zero, one, two = self.indices("index/0", 0), self.indices("index/1", 1), self.indices("index/2", 2)
        length = self.add("Slice", [shape, one, two, zero], "emb/length")
        start = self.indices("index/position", self._checkpoint.shape.first_position)
        end = self.add("Add", [length, start], "emb/end")
        return self.add(
            "Slice", [self.weight("embeddings.position_embeddings.weight"), start, end, zero], "emb/position"
        )

    def _layer(self, index: int, state: str) -> str:
        prefix, short = f"encoder.layer.{index}", f"layer{index}"
        attended = self._attention(index, state)
        projected = self.matmul(f"{prefix}.attention.output.dense", attended, f"{short}/projected")
        state = self._skip_norm(f"{prefix}.attention.output", projected, state, f"{short}/attended")
        inner = self.matmul(f"{prefix}.intermediate.dense", state, f"{short}/inner")
        bias = self.weight(f"{prefix}.intermediate.dense.bias")
        gated = self.add("BiasGelu", [inner, bias], f"{short}/gated")
        outer = self.matmul(f"{prefix}.output.dense", gated, f"{short}/outer")
        return self._skip_norm(f"{prefix}.output", outer, state, f"{short}/out")

    def _attention(self, index: int, state: str) -> str:
        parts = [f"attention.self.{name}" for name in ("query", "key", "value")]
        weights = [self._checkpoint.layer(index, f"{part}.weight").T for part in parts]
        biases = [self._checkpoint.layer(index, f"{part}.bias") for part in parts]
        prefix = f"encoder.layer.{index}.attention.self.qkv"
        inputs = [
            state,
            self.constant(f"{prefix}.weight", np.ascontiguousarray(np.concatenate(weights, axis=1))),
            self.constant(f"{prefix}.bias", np.concatenate(biases)),
            MASK,
        ]
        return self.add("Attention", inputs, f"layer{index}/attention", num_heads=self._checkpoint.shape.heads)

    def matmul(self, name: str, state: str, output: str) -> str:
        """The product of a state with the matrix of a linear layer, without its bias."""
        transposed = np.ascontiguousarray(self._checkpoint.weights[f"{name}.weight"].T)
        return self.add("MatMul", [state, self.constant(f"{name}.weight", transposed)], output)

    def _skip_norm(self, name: str, state: str, skip: str, output: str) -> str:
        norms = [self.weight(f"{name}.LayerNorm.{kind}") for kind in ("weight", "bias")]
        bias = self.weight(f"{name}.dense.bias")
        return self.add("SkipLayerNormalization", [state, skip, *norms, bias], output, epsilon=self._epsilon)

    def pool_first(self, state: str) -> None:
        """Makes the output `sentence_embedding` of the first token."""
        zero = self.constant("pool/first", np.asarray(0, dtype=np.int64))
        self._unit(self.add("Gather", [state, zero], "pool/cls", axis=1))

    def pool_mean(self, state: str) -> None:
        """Makes the output `sentence_embedding` of the mean over all tokens."""
        mask = self.add("Cast", ["attention_mask"], "pool/mask", to=TensorProto.FLOAT)
        sequence = self.indices("index/1", 1)
        wide = self.add("Unsqueeze", [mask, self.indices("index/2", 2)], "pool/mask3")
        total = self.add("ReduceSum", [self.add("Mul", [state, wide], "pool/masked"), sequence], "pool/sum", keepdims=0)
        count = self.add("ReduceSum", [mask, sequence], "pool/count", keepdims=1)
        self._unit(self.add("Div", [total, count], "pool/mean"))

    def _unit(self, pooled: str) -> None:
        norm = self.add("ReduceL2", [pooled, self.indices("index/1", 1)], "pool/norm", keepdims=1)
        tiny = self.constant("pool/tiny", np.asarray(1e-12, dtype=np.float32))
        self.add("Div", [pooled, self.add("Max", [norm, tiny], "pool/floor")], "sentence_embedding")

    def model(self, **outputs: list[str | int]) -> onnx.ModelProto:
        """The graph with these outputs, each with its shape."""
        declared = [
            helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "sequence"]) for name in self._inputs
        ]
        given = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in outputs.items()]
        graph = helper.make_graph(self._nodes, "bert", declared, given, list(self._constants.values()))
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("com.microsoft", 1)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="hummock")
        # Tells the quantiser that there is nothing left to optimise first; it would warn.
        helper.set_model_props(model, {"onnx.quant.pre_process": "onnxruntime.quant"})
        return model
