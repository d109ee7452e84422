"""Tests ``topi``: every operator that can be lowered to a tensor expression, built from ``te`` tensors and compared with
NumPy."""

from __future__ import annotations

import inspect
import zlib
from typing import Any

import numpy as np
import pytest
from cases import CASES, Case
from test_operators import judge, size_sets
from test_unknown_types import named

import pliant
from pliant import relax, te, topi
from pliant._core.relax import op_names
from pliant.script import from_source
from pliant.topi import _operator_wrapper


def operator(case: Case) -> str:
    return case.expr.split("R.")[1].split("(")[0]


FIRST = list({operator(case): case for case in reversed([c for c in CASES if "R." in c.expr])}.values())
"""One case for each operator."""


def by_topi(bb: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
    """Lowers the call to one loop function with ``topi``."""
    name = call.op.name.removeprefix("relax.")
    absent = [isinstance(a, relax.Call) and a.op.name == "relax.null_value" for a in call.args]
    args = [None if gone else a for gone, a in zip(absent, call.args, strict=True)]
    return bb.call_te(_operator_wrapper.find(name), *args, **dict(call.attrs))


@pytest.mark.parametrize("case", FIRST, ids=operator)
def test_topi_equals_numpy(case: Case) -> None:
    rules = {f"relax.{name}": by_topi for name in _operator_wrapper.names() if "." not in name or not name.startswith("vm.")}
    module = relax.transform.LegalizeOps(rules)(from_source(case.script))
    if operator(case) in _operator_wrapper.names():
        assert f"R.{operator(case)}(" not in module.script()
    model = pliant.compile(module)
    seed = zlib.crc32(case.name.encode())
    rng = np.random.default_rng(seed)
    for sizes in size_sets(case, rng)[:3]:
        judge(named(case), model, sizes, rng, "topi")


def test_every_operator_with_a_loop_form_has_a_case() -> None:
    names = _operator_wrapper.names()
    assert len(names) > 150
    for name in names:
        value: Any = topi
        for part in name.split("."):
            value = getattr(value, part)
        assert value.__doc__, name
        if isinstance(value, _operator_wrapper.TeOperator):
            assert inspect.signature(value) == inspect.signature(_operator_wrapper._relax.get_op(name)), name
    with_te = {n.removeprefix("relax.") for n in op_names()} - set(names)
    assert {"unique", "nonzero", "print", "call_tir"} <= with_te


def test_stages_are_composed() -> None:
    n = te.size_var("n")
    x, w = te.placeholder((n, 4), name="x"), te.placeholder((8, 4), name="w")
    y = topi.nn.softmax(topi.nn.relu(topi.nn.dense(x, w)) * 2.0)
    assert [str(d) for d in y.shape] == ["n", "8"]
    func = te.create_prim_func([x, w, y])
    mod = pliant.IRModule({"main": func.with_attr("global_symbol", "main")})
    a, b = (np.random.default_rng(0).random(s, "float32") for s in ((3, 4), (8, 4)))
    out = pliant.nd.empty((3, 8), "float32")
    pliant.build(mod)["main"](pliant.nd.array(a), pliant.nd.array(b), out)
    e = np.exp(2 * np.maximum(a @ b.T, 0))
    np.testing.assert_allclose(out.numpy(), e / e.sum(-1, keepdims=True), rtol=1e-5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: topi.unique, "cannot be applied to tensor expressions"),
        (lambda x: topi.nonsense, "no operator is called"),
        (lambda x: topi.add(x, te.placeholder((5,), name="y")), "cannot be broadcast"),
        (lambda x: topi.add(x, np.ones(4, "float32")), "te.placeholder"),
        (lambda x: topi.nn.softmax(x, axis=3), "axis 3 is out of range"),
        (lambda x: topi.add(x), "missing"),
        (lambda x: topi.nn.pool2d(x, 2, 2, 1, 0, "sum"), "'max' or 'avg'"),
        (lambda x: topi.matmul(topi.flatten(x), x, transp_a=True), "1 dims"),
    ],
)
def test_mismatches_are_reported(call: Any, message: str) -> None:
    x = te.placeholder((te.size_var("n"), 4), name="x")
    with pytest.raises((AttributeError, TypeError, ValueError, pliant.PliantError), match=message):
        call(x)


def run(outputs: Any, *inputs: tuple[te.Tensor, np.ndarray[Any, Any]]) -> list[np.ndarray[Any, Any]]:
    """Runs a loop function of these stages over placeholders, and returns their values."""
    outputs = outputs if isinstance(outputs, list) else [outputs]
    func = te.create_prim_func([*(t for t, _ in inputs), *outputs])
    bb = relax.BlockBuilder()
    gv = bb.add_func(func, "kernel")
    params = [relax.Var(f"x{i}", relax.TensorStructInfo(a.shape, t.dtype)) for i, (t, a) in enumerate(inputs)]
    info = [relax.TensorStructInfo([int(d) for d in t.shape], t.dtype) for t in outputs]
    with bb.function("main", params):
        bb.emit_func_output(bb.emit(relax.call_tir(gv, params, info)))
    got = pliant.compile(bb.get())(*(a for _, a in inputs))
    return [o.numpy() for o in got] if len(outputs) > 1 else [got.numpy()]


def test_tvm_names(rng: np.random.Generator) -> None:
    a = rng.standard_normal((2, 3, 4)).astype("float32")
    x = te.placeholder(a.shape, name="x")
    image = rng.standard_normal((1, 2, 5, 5)).astype("float32")
    im = te.placeholder(image.shape, name="im")
    for made, want in [
        (topi.transpose(x), a.T),
        (topi.concatenate([x, x], axis=1), np.concatenate([a, a], 1)),
        (topi.cast(x, "float64"), a.astype("float64")),
        (topi.all(x, axis=1), np.all(a, 1)),
        (topi.any(topi.full_like(x, 0.0)), np.any(a * 0)),
        (topi.tensordot(x, x, axes=((0, 1), (0, 1))), np.tensordot(a, a, ((0, 1), (0, 1)))),
        (topi.einsum("abc,abd->cd", x, x), np.einsum("abc,abd->cd", a, a)),
        (topi.shape(x), np.array([2, 3, 4], "int32")),
        (topi.ndarray_size(x), np.array(24, "int32")),
        (topi.strided_slice(x, [0, 1], [2, 3], [1, 2]), a[0:2, 1:3:2]),
        (topi.strided_slice(x, [0, 1], [2, -1], slice_mode="size"), a[0:2, 1:]),
        (topi.trilu(x, 0, True), np.triu(a)),
        (topi.sort(x, axis=1, is_ascend=False), -np.sort(-a, 1)),
        (topi.argsort(x, axis=2, dtype="int32"), np.argsort(a, 2).astype("int32")),
        (topi.elemwise_sum([x, x, x]), a + a + a),
        (topi.identity(x), a),
        (topi.log2(topi.abs(x)), np.log2(np.abs(a))),
        (topi.nn.leaky_relu(x, 0.5), np.where(a > 0, a, a * np.float32(0.5))),
        (topi.nn.flatten(x), a.reshape(2, 12)),
        (topi.nn.pad(x, [0, 1, 0], [1, 0, 0], 9.0), np.pad(a, [(0, 1), (1, 0), (0, 0)], constant_values=9)),
        (topi.nn.batch_matmul(x, x), a @ a.transpose(0, 2, 1)),
        (topi.nn.global_pool(im, "avg"), image.mean((2, 3), keepdims=True)),
        (topi.nn.pool2d(im, 5, 1, 1, 0, "max"), image.max((2, 3), keepdims=True)),
    ]:
        source = (im, image) if im in placeholders(made) else (x, a)
        np.testing.assert_allclose(run(made, source)[0], want, rtol=1e-5, atol=1e-6, err_msg=made.name)


def placeholders(tensor: te.Tensor) -> list[te.Tensor]:
    inputs = tensor.op.input_tensors
    return [p for t in inputs for p in placeholders(t)] if inputs else [tensor]


@pytest.mark.parametrize("call", ["R.nn.softmax(x)", "R.matmul(x, y)", "R.nn.gelu(x)", "R.sum(x, axis=[1])", "R.sort(x)"])
def test_topi_equals_legalization(call: str) -> None:
    function = from_source(
        "from pliant.script import relax as R\n@R.function\n"
        'def main(x: R.Tensor(("n", "m"), "float32"), y: R.Tensor(("m", "k"), "float32")):\n'
        f"    with R.dataflow():\n        z = {call}\n        R.output(z)\n    return z\n"
    )
    module = pliant.IRModule({"main": function})
    rules = {f"relax.{name}": by_topi for name in _operator_wrapper.names()}
    made, want = (relax.transform.LegalizeOps(*r)(module).script() for r in ((rules,), ()))
    assert made == want
