"""Tests scalar and tensor expressions, and the loop functions created from them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pliant
from pliant import relax, te, tir, topi


def test_tvm_names() -> None:
    names = """placeholder compute reduce_axis comm_reducer scan extern extern_primfunc var size_var const tag_scope
        create_prim_func sum prod min max all any div indexdiv indexmod floordiv floormod truncdiv truncmod if_then_else
        ceildiv abs acos acosh asin asinh atan atan2 atanh ceil clz cos cosh erf exp exp2 floor fmod isfinite isinf isnan log
        log10 log1p log2 max_value min_value nearbyint popcount power round rsqrt sigmoid sin sinh sqrt tan tanh trunc add subtract
        multiply
        Tensor PlaceholderOp ComputeOp ScanOp ExternOp"""
    assert [name for name in names.split() if not hasattr(te, name)] == []


def test_operators_build_expressions() -> None:
    n, m = te.var("n"), te.size_var("m")
    assert str(n * 2 + m // 3) == "n * 2 + m // 3"
    assert str(2 - n) == "2 - n" and str(-n) == "0 - n" and str(n % 4) == "n % 4"
    assert isinstance(n + 1, tir.Add) and isinstance(n // m, tir.FloorDiv) and isinstance(n < 3, tir.LT)
    assert (n + 1).a == n and int((n + 1).b) == 1
    assert isinstance((m + 1).a, tir.SizeVar) and isinstance(n, tir.Var) and not isinstance(n, tir.SizeVar)
    assert n.name == "n" and n.dtype == "int64"
    assert str(tir.ceildiv(n, 4)) == "(n + 3) // 4"
    assert str(tir.min(n, m)) == "T.min(n, m)" and str(tir.max(n, 2)) == "T.max(n, 2)"
    assert str(tir.if_then_else(n > 0, n, m)).startswith("T.if_then_else")


def test_constants_fold() -> None:
    assert int(tir.const(3) * 4 + 2) == 14
    n = te.var("n")
    assert (n * 1) == n and (n + 0) == n and int(n * 0) == 0
    assert tir.const(1, "int32").dtype == "int32" and tir.const(1.5, "float64").dtype == "float64"


def test_equality_is_structural() -> None:
    n, other = te.var("n"), te.var("n")
    assert n == n and n != other and (n + 1) == (n + 1) and hash(n + 1) == hash(n + 1)
    assert {n: 1}[n] == 1 and other not in {n: 1}
    assert bool(tir.const(3) == 3)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda n, A: n / 2, TypeError, "ambiguous"),
        (lambda n, A: n // 0, ZeroDivisionError, "by zero"),
        (lambda n, A: bool(n > 3), ValueError, "known only at run time"),
        (lambda n, A: n + "a", TypeError, "unsupported operand"),
        (lambda n, A: n.a, AttributeError, "has no attribute 'a'"),
        (lambda n, A: int(n), TypeError, "not a constant"),
        (lambda n, A: A[1], IndexError, "2 dims, but is read with 1 indices"),
        (lambda n, A: list(A), TypeError, "cannot be iterated"),
        (lambda n, A: te.compute((n,), lambda i, j: i), ValueError, "takes 2 indices, but the shape has 1 dims"),
        (lambda n, A: te.compute((n,), lambda i: "x"), TypeError, "required here, not str"),
        (lambda n, A: te.placeholder((-1,)), ValueError, "non-negative"),
        (lambda n, A: te.placeholder((2,), "float31"), TypeError, "unknown dtype"),
        (lambda n, A: te.sum(A[0, 0], axis=[n]), TypeError, "te.reduce_axis"),
        (lambda n, A: te.create_prim_func([te.compute((n,), lambda i: A[i, 0])]), pliant.CompileError, "not among"),
        (lambda n, A: tir.substitute(n, {n + 1: 2}), TypeError, "must be a tir.Var"),
    ],
)
def test_invalid_expressions(make: Any, error: type[Exception], message: str) -> None:
    n = te.var("n")
    A = te.placeholder((n, 4), name="A")
    with pytest.raises(error, match=message):
        make(n, A)


def test_errors_in_compute_functions_propagate() -> None:
    def formula(i: tir.PrimExpr) -> tir.PrimExpr:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        te.compute((2,), formula)


def test_tensors_and_axes() -> None:
    n, m = te.var("n"), te.var("m")
    A = te.placeholder((n, m), name="A", dtype="float64")
    k = te.reduce_axis((0, m), name="k")
    B = te.compute((n,), lambda i: te.sum(A[i, k], axis=k), name="B")
    assert B.dtype == "float64" and B.name == "B" and B.ndim == 1
    assert [a.kind for a in B.op.axis] == ["S"] and [str(a.var) for a in B.op.reduce_axis] == ["k"]
    assert B.op.input_tensors == [A] and str(B.op.axis[0].var) == "i"
    assert k.dom.extent == m


def run(func: pliant.tir.PrimFunc, out: tuple[list[Any], str], *args: Any) -> np.ndarray:
    """Runs a loop function through ``call_tir``."""
    bb = relax.BlockBuilder()
    gv = bb.add_func(func, "kernel")
    params = [
        relax.Var(f"x{i}", relax.TensorStructInfo(np.shape(a), str(np.asarray(a).dtype)))
        for i, a in enumerate(args)
    ]
    with bb.function("main", params):
        result = bb.emit(relax.call_tir(gv, params, relax.TensorStructInfo(*out)))
        bb.emit_func_output(result)
    return pliant.compile(bb.get())(*args).numpy()


def test_matmul_runs(rng: np.random.Generator) -> None:
    n, m, l = te.var("n"), te.var("m"), te.var("l")
    A, B = te.placeholder((n, l), name="A"), te.placeholder((l, m), name="B")
    k = te.reduce_axis((0, l), "k")
    C = te.compute((n, m), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    func = te.create_prim_func([A, B, C])
    a, b = rng.random((5, 7), "float32"), rng.random((7, 3), "float32")
    np.testing.assert_allclose(run(func, ([5, 3], "float32"), a, b), a @ b, rtol=1e-5)


def test_sizes_that_no_buffer_defines_become_parameters() -> None:
    n, m = te.var("n"), te.var("m")
    A = te.placeholder((n, 2 * te.floordiv(m, 2)), name="A")
    B = te.compute(A.shape, lambda i, j: A[i, j] + 1, name="B")
    func = te.create_prim_func([A, B])
    assert func.params[-1].name == "m" and len(func.params) == 3


@pytest.mark.parametrize("name", ["sum", "max", "min"])
@pytest.mark.parametrize("axis", [None, 0, 1, (0, 1)])
def test_topi_reductions(name: str, axis: Any, rng: np.random.Generator) -> None:
    x = rng.random((4, 5), "float32")
    bb = relax.BlockBuilder()
    n, m = te.var("n"), te.var("m")
    var = relax.Var("x", relax.TensorStructInfo((n, m), "float32"))
    with bb.function("main", [var]):
        bb.emit_func_output(bb.emit_te(getattr(topi, name), var, axis=axis))
    result = pliant.compile(bb.get())(x).numpy()
    np.testing.assert_allclose(result, getattr(np, name)(x, axis=axis), rtol=1e-5)


def test_topi_operators(rng: np.random.Generator) -> None:
    bb = relax.BlockBuilder()
    n = te.var("n")
    x = relax.Var("x", relax.TensorStructInfo((n, 4), "float32"))
    y = relax.Var("y", relax.TensorStructInfo((4,), "float32"))
    with bb.function("main", [x, y]):
        outputs = [
            bb.emit_te(topi.add, x, y),
            bb.emit_te(topi.multiply, x, 2.0),
            bb.emit_te(topi.nn.relu, x),
            bb.emit_te(topi.nn.softmax, x),
            bb.emit_te(topi.transpose, x),
            bb.emit_te(topi.concatenate, [x, x], axis=1),
            bb.emit_te(topi.flatten, x),
            bb.emit_te(lambda a: topi.matmul(a, a, transp_b=True), x),
            bb.emit_te(lambda a, b: (a - b) * a, x, y),
        ]
        bb.emit_func_output(outputs)
    model = pliant.compile(bb.get())
    for size in (1, 3):
        a, b = rng.standard_normal((size, 4), "float32"), rng.standard_normal(4, "float32")
        e = np.exp(a - a.max(-1, keepdims=True))
        want = [a + b, a * 2, np.maximum(a, 0), e / e.sum(-1, keepdims=True), a.T, np.concatenate([a, a], 1)]
        want += [a.ravel(), a @ a.T, (a - b) * a]
        for got, expected in zip(model(a, b), want, strict=True):
            np.testing.assert_allclose(got.numpy(), expected, rtol=1e-4, atol=1e-5)


def test_expressions_of_any_depth() -> None:
    def chain() -> tuple[Any, Any]:
        e: Any = n
        for i in range(100_000):
            e = e + xs[i % 2]
        return e, xs[0] * e

    n, xs = te.size_var("n"), [te.size_var("x"), te.size_var("y")]
    (a, b), (c, d) = chain(), chain()
    assert len(str(a)) < 10_000 and "..." in str(a)
    assert a == c and b == d and a != b and hash(a) == hash(c) and hash(b) == hash(d)
    simple = pliant.arith.Analyzer().simplify(a)
    assert pliant.arith.Analyzer().can_prove_equal(simple, n + xs[0] * 50_000 + xs[1] * 50_000)
    x = relax.Var("x", relax.TensorStructInfo([n, xs[0], xs[1]], "float32"))
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        out = bb.emit(relax.ShapeExpr([a]))
        bb.emit_func_output(out)
    assert "n + x * 50000 + y * 50000" in str(bb.get()) or "x * 50000" in str(bb.get())


def test_shared_subexpressions_compare_fast() -> None:
    def doubled() -> Any:
        e: Any = n
        for _ in range(200):
            e = tir.min(e, e + m)
        return e

    n, m = te.size_var("n"), te.size_var("m")
    assert doubled() == doubled()


def _sum_of_copies(count: int) -> pliant.IRModule:
    """Returns a function that adds `count` copies of its input, as one expression."""

    def body(a: te.Tensor) -> te.Tensor:
        def at(i: tir.Var) -> tir.PrimExpr:
            total = a[i]
            for _ in range(count - 1):
                total = total + a[i]
            return total

        return te.compute(a.shape, at)

    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((te.var("n"),), "float32"))
    with bb.function("main", [x]):
        with bb.dataflow():
            gv = bb.emit_output(bb.emit_te(body, x))
        bb.emit_func_output(gv)
    return bb.get()


def test_maximum_depth_prints_and_saves(tmp_path: Path) -> None:
    count = 1_990
    mod = _sum_of_copies(count)
    text = mod.script()
    assert pliant.script.from_source(text).script() == text
    model = pliant.compile(mod)
    model.save(tmp_path / "deep.pex")
    ones = np.ones(3, "float32")
    for deep in (model, pliant.load(tmp_path / "deep.pex")):
        np.testing.assert_array_equal(np.asarray(deep(ones)), ones * count)


def test_deeper_functions_are_rejected_by_compile() -> None:
    with pytest.raises(pliant.error.CompileError, match="an expression is nested deeper than the maximum of 2000"):
        pliant.compile(_sum_of_copies(2_100))
