"""Writes the model files of `tests/attacks` and `tests/corpus/onnx`: ``python
tests/python/onnx/make_model_files.py``.

An attack must fail with an error that contains the given words; a model of the corpus must compile
and run. Damaged models are derived from both (`crates/pliant/tests/suite/onnx_damaged_models.rs`, `fuzz`).
A test compares the files with this script.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

TESTS = Path(__file__).resolve().parents[2]
FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL

ATTACKS: dict[str, tuple[Callable[[], ModelProto | bytes], str]] = {}
CORPUS: dict[str, Callable[[], ModelProto]] = {}
TOLERATED: dict[str, str] = {}
"""The models of the corpus that violate the ONNX specification, with words of the warning."""


def node(op: str, inputs: str, outputs: str, **attrs: Any) -> NodeProto:
    return helper.make_node(op, inputs.split(), outputs.split(), **attrs)


def model(
    nodes: list[NodeProto], outputs: str = "y", inputs: dict[str, Any] | None = None, constants: dict[str, Any] | None = None
) -> ModelProto:
    """Builds a model over `x: float32[n, 4]`, or over `inputs`: for each its dims, or its element
    type and dims.
    """
    infos = []
    for name, spec in ({"x": ["n", 4]} if inputs is None else inputs).items():
        dtype, dims = spec if isinstance(spec, tuple) else (FLOAT, spec)
        infos.append(helper.make_tensor_value_info(name, dtype, dims))
    results = [onnx.ValueInfoProto(name=o) for o in outputs.split()]
    tensors = [numpy_helper.from_array(np.asarray(v), k) for k, v in (constants or {}).items()]
    graph = helper.make_graph(nodes, "g", infos, results, tensors)
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 18)])


def attack(words: str) -> Callable[[Callable[[], ModelProto | bytes]], Callable[[], ModelProto | bytes]]:
    def note(make: Callable[[], ModelProto | bytes]) -> Callable[[], ModelProto | bytes]:
        ATTACKS[make.__name__] = (make, words)
        return make

    return note


def corpus(make: Callable[[], ModelProto]) -> Callable[[], ModelProto]:
    CORPUS[make.__name__] = make
    return make


def tolerated(words: str) -> Callable[[Callable[[], ModelProto]], Callable[[], ModelProto]]:
    """Marks a model of the corpus that violates the ONNX specification. It is imported with a warning, but rejected if the import is
    strict."""

    def note(make: Callable[[], ModelProto]) -> Callable[[], ModelProto]:
        TOLERATED[make.__name__] = words
        return corpus(make)

    return note


def with_weight(change: Callable[[TensorProto], None]) -> ModelProto:
    """Builds a model whose weight of 4 floats is modified by `change`."""
    made = model([node("Add", "x w", "y")], constants={"w": np.zeros(4, np.float32)})
    change(made.graph.initializer[0])
    return made


# ---- attacks ----


@attack("needs 16")
def raw_data_too_short() -> ModelProto:
    return with_weight(lambda w: setattr(w, "raw_data", bytes(12)))


@attack("needs 16")
def raw_data_too_long() -> ModelProto:
    return with_weight(lambda w: setattr(w, "raw_data", bytes(400)))


@attack("2 elements, but shape [4] needs 4")
def too_few_floats() -> ModelProto:
    def change(w: TensorProto) -> None:
        w.ClearField("raw_data")
        w.float_data.extend([1.0, 2.0])

    return with_weight(change)


@attack("negative dim -4")
def negative_dim_of_a_weight() -> ModelProto:
    return with_weight(lambda w: w.dims.__setitem__(0, -4))


@attack("a tensor of shape [9223372036854775807, 4]")
def huge_dims_of_a_weight() -> ModelProto:
    def change(w: TensorProto) -> None:
        w.dims[:] = [2**63 - 1, 4]

    return with_weight(change)


@attack("initializer 'w'")
def dims_that_overflow_to_the_right_size() -> ModelProto:
    def change(w: TensorProto) -> None:
        w.dims[:] = [2**32, 2**32, 4]

    return with_weight(change)


@attack("but the limit is")
def a_weight_of_a_petabyte() -> ModelProto:
    def change(w: TensorProto) -> None:
        w.dims[:] = [2**48]
        w.raw_data = b""

    return with_weight(change)


@attack("is not the code of an ONNX element type")
def unknown_element_type() -> ModelProto:
    return with_weight(lambda w: setattr(w, "data_type", 77))


@attack("cycle")
def a_node_that_reads_itself() -> ModelProto:
    return model([node("Add", "x y", "y")])


@attack("cycle")
def two_nodes_that_read_each_other() -> ModelProto:
    return model([node("Add", "x b", "a"), node("Relu", "a", "b"), node("Relu", "b", "y")])


@attack("reads 'gone'")
def a_missing_input() -> ModelProto:
    return model([node("Add", "x gone", "y")])


@attack("no node computes the output")
def a_missing_output() -> ModelProto:
    return model([node("Relu", "x", "z")])


@attack("another value")
def duplicate_value_definition() -> ModelProto:
    return model([node("Relu", "x", "y"), node("Exp", "x", "y")])


@attack("two inputs named 'x'")
def an_input_twice() -> ModelProto:
    made = model([node("Relu", "x", "y")])
    made.graph.input.append(made.graph.input[0])
    return made


@attack("two initializers named 'w'")
def an_initializer_twice() -> ModelProto:
    made = model([node("Add", "x w", "y")], constants={"w": np.zeros(4, np.float32)})
    made.graph.initializer.append(made.graph.initializer[0])
    return made


@attack("input 1 is missing")
def too_few_inputs() -> ModelProto:
    return model([node("Add", "x", "y")])


@attack("'perm'")
def an_attribute_of_the_wrong_type() -> ModelProto:
    return model([node("Transpose", "x", "y", perm="all of them")])


@attack("Transpose")
def axes_out_of_range() -> ModelProto:
    return model([node("Transpose", "x", "y", perm=[0, 99])])


@attack("out of range")
def an_axis_out_of_range() -> ModelProto:
    return model([node("Concat", "x x", "y", axis=-(2**63))])


@attack("MatMul")
def operands_that_do_not_fit() -> ModelProto:
    return model([node("MatMul", "x w", "y")], constants={"w": np.zeros((5, 2), np.float32)})


@attack("Add")
def element_types_that_do_not_fit() -> ModelProto:
    return model([node("Add", "x i", "y")], inputs={"x": ["n"], "i": (INT64, ["n"])})


@attack("no attribute 'axiss' in opset 18")
def an_unknown_attribute() -> ModelProto:
    return model([node("Softmax", "x", "y", axiss=1)])


@attack("the node has 3 inputs, but opset 18 allows at most 1")
def too_many_inputs() -> ModelProto:
    return model([node("Relu", "x x x", "y")])


@attack("the newest known version is 28")
def future_opset() -> ModelProto:
    made = model([node("Relu", "x", "y")])
    made.opset_import[0].version = 2**62
    return made


@attack("does not import an opset")
def no_opset() -> ModelProto:
    made = model([node("Relu", "x", "y")])
    del made.opset_import[:]
    return made


@attack("'y' is declared as int64, but is float32")
def an_output_of_another_type() -> ModelProto:
    made = model([node("Relu", "x", "y")])
    made.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", INT64, ["n", 4]))
    return made


@attack("the lengths in 'split' sum to 6, but the axis that is split has 4 elements")
def parts_beyond_the_axis() -> ModelProto:
    return model([node("Split", "x s", "y z", axis=1)], "y z", constants={"s": np.array([3, 3])})


@attack("overflows int64")
def a_range_that_wraps_around() -> ModelProto:
    ends = {"a": np.array(-(2**63)), "b": np.array(2**63 - 1), "c": np.array(1)}
    return model([node("Range", "a b c", "y")], constants=ends)


@attack("operator Frobnicate is not supported")
def an_unknown_operator() -> ModelProto:
    return model([node("Frobnicate", "x", "y")])


@attack("STRING")
def an_input_of_strings() -> ModelProto:
    return model([node("Identity", "x", "y")], inputs={"x": (TensorProto.STRING, ["n"])})


def field(number: int, data: bytes) -> bytes:
    """Encodes a length-delimited field of a protobuf message."""
    length, left = bytearray(), len(data)
    while left >= 0x80:
        length.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([number << 3 | 2, *length, left]) + data


@attack("nested more than 100 deep")
def graphs_in_graphs() -> bytes:
    """Encodes graphs that are nested more deeply than the package `onnx` can write."""
    graph = b""
    for _ in range(2000):
        graph = field(1, field(5, field(6, graph)))
    return field(7, graph)


@attack("nested more than 32 deep")
def functions_in_functions() -> ModelProto:
    """Builds functions that are nested more deeply than in real models."""
    calls = [own_function(f"F{i}", [helper.make_node(f"F{i + 1}", ["a"], ["b"], domain="own")]) for i in range(40)]
    return with_functions([*calls, own_function("F40", [node("Relu", "a", "b")])])


@attack("nested")
def types_in_types() -> ModelProto:
    made = model([node("Relu", "x", "y")])
    inner = made.graph.input[0].type
    for _ in range(120):
        outer = onnx.TypeProto()
        outer.sequence_type.elem_type.CopyFrom(inner)
        inner = outer
    made.graph.input[0].type.CopyFrom(inner)
    return made


def own_function(name: str, nodes: list[NodeProto]) -> onnx.FunctionProto:
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)]
    return helper.make_function("own", name, ["a"], ["b"], nodes, opsets)


def with_functions(functions: list[onnx.FunctionProto]) -> ModelProto:
    made = model([helper.make_node("F0", ["x"], ["y"], domain="own")])
    made.opset_import.append(helper.make_opsetid("own", 1))
    made.functions.extend(functions)
    return made


@attack("nested more than 32 deep")
def a_function_that_calls_itself() -> ModelProto:
    return with_functions([own_function("F0", [helper.make_node("F0", ["a"], ["b"], domain="own")])])


@attack("with its functions inlined")
def functions_that_multiply() -> ModelProto:
    """Builds functions each of which calls the next four times: a few hundred bytes become 4 to the
    power of 24 nodes when inlined.
    """
    functions = []
    for i in range(24):
        calls = [helper.make_node(f"F{i + 1}", ["a"], [f"t{k}"], domain="own") for k in range(4)]
        functions.append(own_function(f"F{i}", [*calls, node("Sum", "t0 t1 t2 t3", "b")]))
    functions.append(own_function("F24", [node("Relu", "a", "b")]))
    return with_functions(functions)


@attack("no location")
def missing_external_data_location() -> ModelProto:
    def change(w: TensorProto) -> None:
        w.ClearField("raw_data")
        w.data_location = TensorProto.EXTERNAL

    return with_weight(change)


def external(location: str, **more: str) -> ModelProto:
    def change(w: TensorProto) -> None:
        w.ClearField("raw_data")
        w.data_location = TensorProto.EXTERNAL
        for key, value in {"location": location, **more}.items():
            w.external_data.add(key=key, value=value)

    return with_weight(change)


@attack("leaves the model's folder")
def external_data_above() -> ModelProto:
    return external("../../../../etc/passwd")


@attack("absolute path")
def external_data_from_the_root() -> ModelProto:
    return external("/etc/passwd")


@attack("not a number of bytes")
def external_data_at_no_offset() -> ModelProto:
    return external("w.bin", offset="-16")


@attack("but a tensor of shape [4] and type float32 needs 16")
def external_data_of_another_length() -> ModelProto:
    return external("w.bin", offset="0", length="18446744073709551615")


@attack("18446744073709551608")
def external_data_whose_end_overflows() -> ModelProto:
    return external("raw_data_too_short.onnx", offset="18446744073709551608")


@attack("not an ONNX model")
def no_graph() -> bytes:
    made = model([node("Relu", "x", "y")])
    made.ClearField("graph")
    return made.SerializeToString()


@attack("not an ONNX model")
def truncated_file() -> bytes:
    return model([node("Relu", "x", "y")]).SerializeToString()[:-7]


@attack("not an ONNX model")
def a_length_beyond_the_end() -> bytes:
    return b"\x08\x08\x3a\xff\xff\xff\xff\xff\xff\xff\xff\x7f"


# ---- corpus ----


@corpus
def elementwise() -> ModelProto:
    return model([node("Relu", "x", "a"), node("Add", "a k", "b"), node("Sigmoid", "b", "y")], constants={"k": np.float32(1)})


@corpus
def layer() -> ModelProto:
    weights = {"w": np.ones((4, 3), np.float32), "b": np.zeros(3, np.float32)}
    return model([node("Gemm", "x w b", "a", alpha=0.5), node("Softmax", "a", "y", axis=-1)], constants=weights)


@corpus
def shapes() -> ModelProto:
    constants = {"zero": np.array([0]), "minus": np.array([-1]), "two": np.array([2])}
    nodes = [
        node("Shape", "x", "s"),
        node("Gather", "s zero", "n", axis=0),
        node("Concat", "n two minus", "t", axis=0),
        node("Reshape", "x t", "y"),
    ]
    return model(nodes, constants=constants)


@corpus
def reductions() -> ModelProto:
    return model([node("ReduceMean", "x axes", "m", keepdims=1), node("Sub", "x m", "y")], constants={"axes": np.array([1])})


@corpus
def pieces() -> ModelProto:
    constants = {"from": np.array([1]), "to": np.array([3]), "axes": np.array([1])}
    return model([node("Slice", "x from to axes", "a"), node("Concat", "a x", "y", axis=1)], constants=constants)


@corpus
def branches() -> ModelProto:
    def branch(op: str) -> GraphProto:
        return helper.make_graph([node(op, "x", "r")], op, [], [onnx.ValueInfoProto(name="r")])

    test = node("If", "c", "y", then_branch=branch("Exp"), else_branch=branch("Neg"))
    return model([test], inputs={"x": ["n", 4], "c": (BOOL, [])})


@corpus
def convolution() -> ModelProto:
    nodes = [node("Conv", "x w", "a", pads=[1, 1, 1, 1]), node("MaxPool", "a", "y", kernel_shape=[2, 2])]
    return model(nodes, inputs={"x": ["n", 1, 6, 6]}, constants={"w": np.ones((2, 1, 3, 3), np.float32)})


@corpus
def functions() -> ModelProto:
    return with_functions([own_function("F0", [node("Mul", "a a", "t"), node("Tanh", "t", "b")])])


@corpus
def indices() -> ModelProto:
    nodes = [node("Gather", "table i", "a", axis=0), node("Transpose", "a", "b", perm=[1, 0]), node("Cast", "b", "y", to=INT64)]
    return model(nodes, inputs={"i": (INT64, ["n"])}, constants={"table": np.arange(12, dtype=np.float32).reshape(4, 3)})


@tolerated("input 'x' declares the negative size -1 for dim 0")
def negative_dim_of_an_input() -> ModelProto:
    return model([node("Relu", "x", "y")], inputs={"x": [-1, 4]})


@tolerated("'t' is declared as [7, 7, 7], but is [?, 4]")
def intermediate_value_of_another_shape() -> ModelProto:
    made = model([node("Relu", "x", "t"), node("Neg", "t", "y")])
    made.graph.value_info.append(helper.make_tensor_value_info("t", FLOAT, [7, 7, 7]))
    return made


@tolerated("'y' is declared as [1, 8], but is [?, 1, 4]")
def output_of_another_rank() -> ModelProto:
    made = model([node("Reshape", "x s", "y")], constants={"s": np.array([-1, 1, 4])})
    made.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", FLOAT, [1, 8]))
    return made


@tolerated("the model uses com.microsoft, but does not import an opset of it")
def contributed_domain_without_an_opset() -> ModelProto:
    return model([node("Gelu", "x", "y", domain="com.microsoft")])


@tolerated("the signal (input 0) has 2 dims, but must have 3")
def stft_of_signals_with_two_dims() -> ModelProto:
    constants = {"step": np.array(4), "window": np.ones(8, np.float32)}
    return model([node("STFT", "x step window", "y")], inputs={"x": ["n", 64]}, constants=constants)


# ---- files ----


def data_of(made: ModelProto | bytes) -> bytes:
    return made if isinstance(made, bytes) else made.SerializeToString(deterministic=True)


def files() -> dict[Path, bytes]:
    attacks = {TESTS / "attacks" / f"{n}.onnx": data_of(make()) for n, (make, _) in ATTACKS.items()}
    return attacks | {TESTS / "corpus" / "onnx" / f"{n}.onnx": data_of(make()) for n, make in CORPUS.items()}


if __name__ == "__main__":
    for path, data in files().items():
        path.write_bytes(data)
