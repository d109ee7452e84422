"""Tests that a user-defined operator takes ten lines and behaves like any other operator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import pliant
from pliant import relax, te, tir, topi
from pliant.script import relax as R
from pliant.script import tir as T
from pliant.testing import interpret


@relax.op.register_op("mine.outer_mix")
def outer_mix(x, y, *, scale=1.0, axis):
    (n,), (m,) = x.shape, y.shape
    k = te.reduce_axis((0, m), "k")
    low = te.compute((), lambda: te.min(y[k], axis=k), name="low")
    shape = (n, m) if axis == 1 else (m, n)
    pick = (lambda a, b: (a, b)) if axis == 1 else (lambda a, b: (b, a))
    return te.compute(shape, lambda *i: (x[pick(*i)[0]] + y[pick(*i)[1]] - low()) * scale, name="mix")


def reference(x: Any, y: Any, scale: float, axis: int) -> Any:
    made = (x[:, None] + y - y.min()) * np.float32(scale)
    return made if axis == 1 else made.T


@R.function
def program(x: R.Tensor(("n",), "float32"), y: R.Tensor(("m",), "float32")):
    m, n = T.int64(), T.int64()
    a = R.mine.outer_mix(x, y, scale=0.5, axis=0)
    b = R.exp(a)
    return b


def test_definition_takes_at_most_ten_lines() -> None:
    text = Path(__file__).read_text()
    definition = text[text.index("@relax.op.register_op") :].split("\n\n")[0]
    assert definition.startswith("@") and len(definition.splitlines()) <= 10


@pytest.mark.parametrize("sizes", [(0, 1), (1, 1), (3, 2), (31, 7)])
def test_in_a_script(sizes: tuple[int, int], rng: np.random.Generator) -> None:
    module = pliant.IRModule({"main": program})
    assert str(program.ret_struct_info) == 'R.Tensor((m, n), dtype="float32")'
    x, y = (rng.random(s).astype("float32") for s in sizes)
    want = np.exp(reference(x, y, 0.5, 0))
    for got in (pliant.compile(module)(x, y), interpret(module, x, y)):
        np.testing.assert_allclose(np.asarray(got), want, rtol=1e-5)


def test_in_a_builder(rng: np.random.Generator) -> None:
    bb = relax.BlockBuilder()
    n = tir.Var("n", "int64")
    x, y = (relax.Var(name, relax.TensorStructInfo((d,), "float32")) for name, d in (("x", n), ("y", 4)))
    with bb.function("main", [x, y]):
        bb.emit_func_output(bb.emit(relax.op.nn.relu(relax.op.mine.outer_mix(x, y, axis=1))))
    a, b = rng.standard_normal(3).astype("float32"), rng.standard_normal(4).astype("float32")
    want = np.maximum(reference(a, b, 1.0, 1), 0)
    np.testing.assert_allclose(pliant.compile(bb.get())(a, b).numpy(), want, rtol=1e-5, atol=1e-6)


def test_among_tensor_expressions() -> None:
    x, y = te.placeholder((te.size_var("n"),), name="x"), te.placeholder((4,), name="y")
    made = topi.exp(topi.mine.outer_mix(x, y, axis=1))
    assert [str(d) for d in made.shape] == ["n", "4"]


def test_in_a_model_of_onnx(rng: np.random.Generator) -> None:
    node = helper.make_node("outer_mix", ["x", "y"], ["z"], domain="mine", scale=2.0, axis=1)
    infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [s]) for n, s in (("x", "n"), ("y", 3))]
    graph = helper.make_graph([node], "g", infos, [onnx.ValueInfoProto(name="z")])
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("mine", 1)]
    model = pliant.compile(helper.make_model(graph, opset_imports=opsets))
    x, y = rng.random(5).astype("float32"), rng.random(3).astype("float32")
    np.testing.assert_allclose(model(x, y).numpy(), reference(x, y, 2.0, 1), rtol=1e-5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x, y: relax.op.mine.outer_mix(x, y), "attribute 'axis' is missing"),
        (lambda x, y: relax.op.mine.outer_mix(x, y, axis=1, turns=2), "no parameter 'turns'"),
        (lambda x, y: relax.op.mine.outer_mix(relax.op.expand_dims(x, 0), y, axis=1), "too many values to unpack"),
    ],
)
def test_errors_name_the_operator(call: Any, message: str) -> None:
    bb = relax.BlockBuilder()
    x, y = (relax.Var(name, relax.TensorStructInfo((4,), "float32")) for name in "xy")
    with pytest.raises((TypeError, pliant.PliantError), match=f"mine.outer_mix.*{message}"), bb.function("main", [x, y]):
        bb.emit(call(x, y))


def test_optional_operands() -> None:
    @relax.op.register_op("mine.affine")
    def affine(x: te.Tensor, scale: te.Tensor | None = None, shift: te.Tensor | None = None) -> te.Tensor:
        def element(*i: te.PrimExpr) -> te.PrimExpr:
            value = x(*i) if scale is None else x(*i) * scale[i[-1]]
            return value if shift is None else value + shift[i[-1]]

        return te.compute(x.shape, element, name="affine")

    module = pliant.script.from_source(
        """
@R.function
def main(x: R.Tensor(("n", 3), "float32"), b: R.Tensor((3,), "float32")):
    with R.dataflow():
        y = R.mine.affine(x)
        z = R.mine.affine(y, shift=b)
        w = R.mine.affine(z, b, b)
        R.output(w)
    return w
"""
    )
    x, b = np.arange(6, dtype="float32").reshape(2, 3), np.array([1, 2, 3], "float32")
    np.testing.assert_allclose(pliant.compile(module)(x, b).numpy(), (x + b) * b + b)
    with pytest.raises(TypeError, match="the default of operand 'y' must be None"):
        relax.op.register_op("mine.bad")(lambda x, y=1: x)


def test_variadic_operands() -> None:
    @relax.op.register_op("mine.total")
    def total(*xs: te.Tensor, factor: float = 1.0) -> te.Tensor:
        return te.compute(xs[0].shape, lambda *i: sum(x(*i) for x in xs) * factor, name="total")

    module = pliant.script.from_source(
        """
@R.function
def main(x: R.Tensor(("n",), "float32"), y: R.Tensor(("n",), "float32")):
    z = R.mine.total(x, y, y, factor=2.0)
    return R.mine.total(z)
"""
    )
    x, y = np.array([1, 2], "float32"), np.array([3, 5], "float32")
    np.testing.assert_allclose(pliant.compile(module)(x, y).numpy(), [14, 24])


def test_operators_are_not_namespaces() -> None:
    relax.op.register_op("shelf.book")(lambda x: te.compute(x.shape, lambda *i: x(*i)))
    with pytest.raises(ValueError, match="relax.shelf cannot be an operator, because it is the namespace"):
        relax.op.register_op("shelf")(lambda x: te.compute(x.shape, lambda *i: x(*i)))
    with pytest.raises(ValueError, match="because relax.shelf.book is an operator and not a namespace"):
        relax.op.register_op("shelf.book.page")(lambda x: te.compute(x.shape, lambda *i: x(*i)))
    with pytest.raises(ValueError, match="relax.nn cannot be an operator, because it is the namespace"):
        relax.op.register_op("nn")(lambda x: te.compute(x.shape, lambda *i: x(*i)))
    assert relax.op.shelf.book is not None


@pytest.mark.parametrize("mode", ["bytecode", "compiled", "interpreter"])
@pytest.mark.parametrize("info", ["R.Tensor", 'R.Tensor(dtype="float32", ndim=1)', "R.Tensor(ndim=1)"])
def test_several_outputs_over_operands_of_unknown_types(info: str, mode: str) -> None:
    relax.op.register_op("mine.two")(lambda x: [topi.exp(x), topi.negative(x)])
    module = pliant.IRModule({"main": pliant.script.from_source(f"""
@R.function
def main(x: {info}):
    y = R.mine.two(x)
    return y
""")})
    x = np.arange(3, dtype="float32")
    got = interpret(module, x) if mode == "interpreter" else pliant.compile(module, exec_mode=mode)(x)
    np.testing.assert_allclose(got[0].numpy(), np.exp(x), rtol=1e-6)
    np.testing.assert_array_equal(got[1].numpy(), -x)


def test_too_many_operands_error_lists_operands() -> None:
    source = '@R.function\ndef main(x: R.Tensor(("n",), "float32")):\n    return R.mine.outer_mix(x, x, x)\n'
    with pytest.raises(pliant.PliantError, match=r"takes 2 operands \(x, y\); argument 3 is the attribute '(scale|axis)'"):
        pliant.script.from_source(source)
    x = relax.Var("x", relax.TensorStructInfo((3,), "float32"))
    with pytest.raises(TypeError, match=r"attribute 'scale': .* is an expression of the graph; the signature of mine.outer_mix is .*outer_mix\(x, y"):
        relax.op.mine.outer_mix(x, x, scale=x, axis=0)


def test_importers_omit_optional_operands() -> None:
    @relax.op.register_op("mine.both")
    def both(x, y=None, z=None):
        parts = [t for t in (x, y, z) if t is not None]
        return te.compute(x.shape, lambda i: sum((t[i] * 10**k for k, t in enumerate(parts)), tir.const(0, x.dtype)))

    def run(*inputs: str) -> Any:
        node = helper.make_node("both", list(inputs), ["out"], domain="mine")
        infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n"]) for name in ("x", "y", "z")]
        made = helper.make_graph([node], "g", infos, [helper.make_tensor_value_info("out", TensorProto.FLOAT, ["n"])])
        opsets = [helper.make_opsetid("", 18), helper.make_opsetid("mine", 1)]
        feeds = {name: np.full(2, k, "float32") for k, name in enumerate(("x", "y", "z"), 1)}
        return pliant.compile(helper.make_model(made, opset_imports=opsets)).run(None, feeds)[0].tolist()

    assert run("x", "y", "z") == [321, 321]
    assert run("x", "", "z") == [31, 31]
    assert run("x", "y", "") == [21, 21]
    assert run("x", "", "") == run("x") == [1, 1]
