"""Tests offload rules: the table, rules of a program, and the output of `explain`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pliant
import pytest
from pliant import relax, tir
from pliant.relax.backend import offload_rules, register_offload_rule, remove_offload_rule
from pliant.relax.dpl import is_op, wildcard
from pliant.script import ir as I
from pliant.script import from_source
from pliant.script import relax as R


@I.ir_module
class Gated:
    @R.function
    def main(x: R.Tensor(("n", 8), "float32"), w: R.Tensor((8, 16), "float32"), g: R.Tensor(("n", 16), "float32")):
        with R.dataflow():
            y = R.matmul(x, w)
            z = R.multiply(R.sigmoid(g), y)
            R.output(z)
        return z


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


@pytest.fixture
def gate() -> Iterator[list[str]]:
    """Registers an offload rule for a matmul that is gated by a sigmoid, and yields the list of
    calls of its kernel.
    """
    calls: list[str] = []
    x, w, g = wildcard(), wildcard(), wildcard()
    pattern = is_op("relax.multiply")(is_op("relax.sigmoid")(g), is_op("relax.matmul")(x, w))

    def kernel(x, w, g, out):
        calls.append("gated_matmul")
        out[:] = sigmoid(g.numpy()) * (x.numpy() @ w.numpy())

    register_offload_rule("test.gated_matmul", pattern, kernel, [x, w, g], doc="matmuls with a sigmoid gate")
    yield calls
    assert remove_offload_rule("test.gated_matmul")


def inputs(n: int) -> list[np.ndarray]:
    rng = np.random.default_rng(n)
    return [rng.normal(size=shape).astype("float32") for shape in [(n, 8), (8, 16), (n, 16)]]


def test_user_rules_precede_built_in_rules(gate):
    names = [rule.name for rule in offload_rules()]
    assert names[0] == "test.gated_matmul"
    assert {"conv", "conv_int8", "matmul_int8", "matmul_packed", "recurrent", "weight_only_matmul", "attention"} < set(names)
    model = pliant.compile(Gated)
    for n in (0, 1, 5):
        x, w, g = inputs(n)
        np.testing.assert_allclose(model(x, w, g).numpy(), sigmoid(g) * (x @ w), rtol=1e-4, atol=1e-5)
    assert gate == ["gated_matmul"] * 3
    assert "test.gated_matmul" in model.explain()


def test_rejected_matches_are_explained():
    x, w = wildcard(), wildcard()
    pattern = is_op("relax.matmul")(x, w)
    register_offload_rule("test.never", pattern, "test.no_such_kernel", [x, w], check=lambda _: False)
    try:
        model = pliant.compile(Gated)
    finally:
        remove_offload_rule("test.never")
    x, w, g = inputs(3)
    np.testing.assert_allclose(model(x, w, g).numpy(), sigmoid(g) * (x @ w), rtol=1e-4, atol=1e-5)
    assert "rule test.never does not apply: the check function of the pattern has rejected the matched operators" in model.explain()


def test_intermediate_values_with_other_readers_are_kept(gate):
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor(("n", 8), "float32"), w: R.Tensor((8, 16), "float32"), g: R.Tensor(("n", 16), "float32")):
            with R.dataflow():
                y = R.matmul(x, w)
                z = R.multiply(R.sigmoid(g), y)
                R.output(y, z)
            return y, z

    pliant.compile(Module)(*inputs(2))
    assert gate == []


def test_registration_errors():
    x, w = wildcard(), wildcard()
    pattern = is_op("relax.matmul")(x, w)
    with pytest.raises(ValueError, match="the name 'conv' belongs to an offload rule of Pliant"):
        register_offload_rule("conv", pattern, "f", [x, w])
    with pytest.raises(ValueError, match="input 1 of the offload rule 'test.r' must be part of the pattern of the rule"):
        register_offload_rule("test.r", pattern, "f", [x, wildcard()])
    with pytest.raises(TypeError, match="a callable or the name of a packed function"):
        register_offload_rule("test.r", pattern, 5, [x, w])
    with pytest.raises(ValueError, match='the name "" of an offload rule is invalid'):
        register_offload_rule("", pattern, "f", [x, w])
    with pytest.raises(ValueError, match='the name "vm.builtin.copy" of a packed function is invalid'):
        register_offload_rule("test.r", pattern, "vm.builtin.copy", [x, w])
    with pytest.raises(TypeError, match="must be a DFPattern"):
        register_offload_rule("test.r", 5, "f", [])
    assert not remove_offload_rule("test.r")
    assert not remove_offload_rule("conv")


def test_explain_lists_loops_with_reasons():
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor(("n", 4, "h", "w"), "float32"), f: R.Tensor((4, 4, 3, "k"), "float32"), c: R.Tensor((4, 16))):
            with R.dataflow():
                a = R.nn.conv2d(x, f)
                R.output(a)
            return a

    text = pliant.compile(Module).explain()
    assert "nn.conv2d in function main: rule conv does not apply: the sizes of the convolution's weights are not constants" in text

    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((tir.Var("n", "int64"), 4), "float32"))
    with bb.function("main", [x]):
        with bb.dataflow():
            y = bb.emit_output(relax.op.matmul(x, relax.const(np.ones((4, 16), "float32"))))
        bb.emit_func_output(y)
    text = pliant.compile(bb.get()).explain()
    assert [line.split() for line in text.splitlines() if "matmul_packed" in line][0][:2] == ["matmul_packed", "1"]


def kept_attention(params: str, weights: str, results: str = "y") -> str:
    """Returns the explanation of a program that multiplies softmax weights by values ``v``."""
    source = f"""
@I.ir_module
class Module:
    @R.function
    def main({params}):
        with R.dataflow():
            w = {weights}
            y = R.matmul(w, v)
            R.output({results})
        return {results}
"""
    return pliant.compile(from_source(source)).explain()


@pytest.mark.parametrize(
    ("params", "weights", "results", "reason"),
    [
        (
            'x: R.Tensor(("n", 8), "float32"), v: R.Tensor((8, 4), "float32")',
            "R.nn.softmax(x, axis=-1)",
            "y",
            "the operand of the softmax is not computed by a matmul of queries and keys",
        ),
        (
            'x: R.Tensor(("n", 8), "float32"), v: R.Tensor((8, 4), "float32")',
            "R.nn.softmax(x, axis=-1)",
            "w, y",
            "the softmax weights are also read outside of the attention",
        ),
        (
            'x: R.Tensor((8, 8), "float32"), v: R.Tensor((8, 4), "float32")',
            "R.nn.softmax(x, axis=0)",
            "y",
            "the attention kernel requires a softmax over the last axis, but the softmax is over another axis",
        ),
        (
            'x: R.Tensor(("n", 8), "float64"), v: R.Tensor((8, 4), "float64")',
            "R.nn.softmax(x, axis=-1)",
            "y",
            "the attention is not computed in float32",
        ),
        (
            'q: R.Tensor((2, "n", 8), "float32"), k: R.Tensor((2, 8, "m"), "float32"), v: R.Tensor((2, "m", 4), "float32")',
            "R.nn.softmax(R.matmul(q, k), axis=-1)",
            "y",
            "the right operand of the matmul with the queries is not a transpose of keys",
        ),
    ],
)
def test_explain_states_why_attention_is_kept(params: str, weights: str, results: str, reason: str) -> None:
    text = kept_attention(params, weights, results)
    reasons = [line for line in text.splitlines() if "rule attention does not apply" in line]
    assert reasons and all(f"rule attention does not apply: {reason}" in line for line in reasons), text


def test_explain_states_the_minimum_number_of_packed_columns() -> None:
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((tir.Var("n", "int64"), 4), "float32"))
    with bb.function("main", [x]):
        with bb.dataflow():
            y = bb.emit_output(relax.op.matmul(x, relax.const(np.ones((4, 3), "float32"))))
        bb.emit_func_output(y)
    text = pliant.compile(bb.get()).explain()
    assert "the matmul's right operand has 3 columns, but packing is faster only from 8 on" in text


def test_loaded_models_have_no_explanation(tmp_path):
    model = pliant.compile(Gated)
    model.save(tmp_path / "m.plx")
    assert "Only a program compiled in this process can be explained" in pliant.load(tmp_path / "m.plx").explain()


def test_explain_says_when_kernels_are_off(gate):
    model = pliant.compile(Gated, kernels="off")
    model(*inputs(2))
    assert gate == ["gated_matmul"]
    assert model.explain().startswith("Library kernels are switched off.")


def test_kernel_and_function_names_are_separate():
    """Checks that a loop function may have the name of a kernel."""
    x = wildcard()

    def kernel(x, out):
        out[:] = np.exp(x.numpy())

    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor(("n",), "float32")):
            with R.dataflow():
                y, z = R.exp(x), R.sin(x)
                R.output(y, z)
            return y, z

    register_offload_rule("sin", is_op("relax.exp")(x), kernel, [x])
    try:
        model = pliant.compile(Module)
    finally:
        remove_offload_rule("sin")
    x = np.arange(3, dtype="float32")
    for result, want in zip(model(x), (np.exp(x), np.sin(x)), strict=True):
        np.testing.assert_allclose(result.numpy(), want, rtol=1e-6)


def test_inputs_must_be_outside_the_match():
    x, y = wildcard(), wildcard()
    product = is_op("relax.matmul")(x, y)
    with pytest.raises(ValueError, match="input 0 of the offload rule 'test.r' is the result of a call in its pattern"):
        register_offload_rule("test.r", is_op("relax.exp")(product), "f", [product])


def test_copied_values_are_preserved(gate):
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor(("n", 8), "float32"), w: R.Tensor((8, 16), "float32"), g: R.Tensor(("n", 16), "float32")):
            with R.dataflow():
                y = R.matmul(x, w)
                copy = y
                z = R.multiply(R.sigmoid(g), copy)
                R.output(z)
            return z

    x, w, g = inputs(3)
    np.testing.assert_allclose(pliant.compile(Module)(x, w, g).numpy(), sigmoid(g) * (x @ w), rtol=1e-4, atol=1e-5)
