"""Tests the analyzer with unit tests, and with random expressions compared with brute force and z3."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import z3
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pliant import te, tir
from pliant.arith import Analyzer, ConstIntBound, ModularSet


def test_simplify() -> None:
    n, m = te.size_var("n"), te.size_var("m")
    ana = Analyzer()
    for expr, expected in [
        ((n * 4 + 8) // 4, n + 2),
        ((n * 4) % 4, 0),
        (n + m - n, m),
        (tir.min(n, n + 1), n),
        (tir.max(n, n + 1), n + 1),
        ((n * m) // m * 0 + n, n),
        (n // 2 * 2 + n % 2, n),
    ]:
        assert ana.can_prove_equal(ana.simplify(expr), expected), f"{expr} became {ana.simplify(expr)}"
    assert ana.simplify((n * 4) % 4) == 0
    assert ana.simplify(tir.const(1.5)).dtype == "float32"


def test_prove() -> None:
    n, any_int = te.size_var("n"), te.var("k")
    ana = Analyzer()
    assert ana.can_prove(n >= 0) and not ana.can_prove(any_int >= 0)
    assert ana.can_prove(n + 1 > 0) and not ana.can_prove(n > 0)
    assert ana.can_prove_equal(n * 2 - n, n) and not ana.can_prove_equal(n, n + 1)
    assert ana.can_prove_greater_equal(n + 3, 3) and ana.can_prove_less(n - 1, n)
    assert not ana.can_prove(n == 1), "0 and 1 are ordinary sizes"


def test_bounds_and_divisibility() -> None:
    n = te.size_var("n")
    ana = Analyzer()
    assert ana.const_int_bound(n + 1).min_value == 1
    assert ana.const_int_bound(n + 1).max_value == ConstIntBound.POS_INF
    assert ana.modular_set(n * 8 + 3) == ModularSet(8, 3)
    ana.update(n, ConstIntBound(2, 5))
    assert ana.const_int_bound(n * 2) == ConstIntBound(4, 10)
    ana.update(n, ModularSet(4, 0))
    assert ana.can_prove_equal(n % 2, 0)


def test_bindings() -> None:
    n, m = te.var("n"), te.var("m")
    ana = Analyzer()
    ana.bind(n, tir.Range(0, 16))
    assert ana.const_int_bound(n) == ConstIntBound(0, 15)
    assert ana.can_prove_equal(n // 16, 0)
    ana.bind(m, n * 4)
    assert ana.can_prove_equal(m % 4, 0)
    with pytest.raises(ValueError, match="already bound"):
        ana.bind(m, n)
    with pytest.raises(ValueError, match="contains it"):
        ana.bind(te.var("q"), 3) or ana.bind(n, n + 1)
    with pytest.raises(TypeError, match="must be a tir.Var"):
        ana.bind(n + 1, 3)


def test_constraints_end_with_their_scope() -> None:
    n = te.var("n")
    ana = Analyzer()
    with ana.constraint_scope(n > 3):
        assert ana.can_prove(n > 2)
        with ana.constraint_scope(n < 10):
            assert ana.can_prove(n < 11) and ana.can_prove(n > 2)
        assert not ana.can_prove(n < 11)
    assert not ana.can_prove(n > 2)
    late = te.size_var("late")
    with ana.constraint_scope(n == 0):
        assert ana.can_prove(late >= 0)
    assert ana.can_prove(late >= 0)


def test_analyzers_are_independent() -> None:
    n = te.var("n")
    one = Analyzer()
    with one.constraint_scope(n > 3):
        two = one.clone()
    assert two.can_prove(n > 3) and not one.can_prove(n > 3)


def test_invalid_input() -> None:
    ana = Analyzer()
    with pytest.raises(TypeError, match="not an expression of integers"):
        ana.can_prove(tir.const(1.0) > 0.5)
    with pytest.raises(TypeError, match="a scalar expression or a number is required here, not str"):
        ana.simplify("n")


NAMES = ("a", "b", "c")
Build = Callable[[dict[str, Any], "Ops"], Any]


class Ops:
    """The operations with which random expressions are built for Pliant, for Python ints and for
    z3.
    """

    def __init__(self, floordiv: Any, floormod: Any, lower: Any, upper: Any) -> None:
        self.floordiv, self.floormod, self.min, self.max = floordiv, floormod, lower, upper


PLIANT = Ops(tir.floordiv, tir.floormod, tir.min, tir.max)
PYTHON = Ops(lambda a, b: a // b, lambda a, b: a % b, min, max)
# z3's integer division has a non-negative remainder: it is floor division for positive divisors.
Z3 = Ops(lambda a, b: a / b, lambda a, b: a % b, lambda a, b: z3.If(a < b, a, b), lambda a, b: z3.If(a > b, a, b))


def leaf() -> st.SearchStrategy[Build]:
    variable = st.sampled_from(NAMES).map(lambda name: lambda env, ops: env[name])
    constant = st.integers(-8, 8).map(lambda v: lambda env, ops: env["int"](v))
    return st.one_of(variable, constant)


def grow(inner: st.SearchStrategy[Build]) -> st.SearchStrategy[Build]:
    def binary(f: Callable[[Any, Any, Ops], Any]) -> st.SearchStrategy[Build]:
        return st.tuples(inner, inner).map(
            lambda pair: lambda env, ops: f(pair[0](env, ops), pair[1](env, ops), ops)
        )

    def by_constant(f: Callable[[Any, Any, Ops], Any]) -> st.SearchStrategy[Build]:
        return st.tuples(inner, st.integers(1, 8)).map(
            lambda pair: lambda env, ops: f(pair[0](env, ops), env["int"](pair[1]), ops)
        )

    return st.one_of(
        binary(lambda a, b, ops: a + b),
        binary(lambda a, b, ops: a - b),
        by_constant(lambda a, b, ops: a * b),
        by_constant(lambda a, b, ops: ops.floordiv(a, b)),
        by_constant(lambda a, b, ops: ops.floormod(a, b)),
        binary(lambda a, b, ops: ops.min(a, b)),
        binary(lambda a, b, ops: ops.max(a, b)),
    )


EXPRS = st.recursive(leaf(), grow, max_leaves=8)
COMPARISONS = st.sampled_from(["<", "<=", "==", "!="])


def compare(op: str, a: Any, b: Any) -> Any:
    if op == "<":
        return a < b
    if op == "<=":
        return a <= b
    return a == b if op == "==" else a != b


def pliant_env() -> dict[str, Any]:
    return {**{name: te.size_var(name) for name in NAMES}, "int": lambda v: tir.const(v, "int64")}


QUICK = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@QUICK
@given(EXPRS)
def test_simplify_preserves_values(build: Build) -> None:
    env = pliant_env()
    expr = build(env, PLIANT)
    ana = Analyzer()
    simple = ana.simplify(expr)
    assert ana.simplify(simple) == simple, "simplification is not idempotent"
    for values in itertools.product((0, 1, 2, 5, 13), repeat=len(NAMES)):
        want = build({**dict(zip(NAMES, values, strict=True)), "int": int}, PYTHON)
        bound = {env[name]: tir.const(v, "int64") for name, v in zip(NAMES, values, strict=True)}
        got = tir.substitute(simple, bound)
        assert int(got) == want, f"{expr} simplified to {simple} at {values}"


@QUICK
@given(EXPRS, EXPRS, COMPARISONS)
def test_proved_facts_hold(left: Build, right: Build, op: str) -> None:
    env = pliant_env()
    claim = compare(op, left(env, PLIANT), right(env, PLIANT))
    if not isinstance(claim, tir.PrimExpr) or not Analyzer().can_prove(claim):
        return
    variables = {name: z3.Int(name) for name in NAMES}
    zenv = {**variables, "int": z3.IntVal}
    solver = z3.Solver()
    solver.set("timeout", 2000)
    solver.add(*(v >= 0 for v in variables.values()))
    solver.add(z3.Not(compare(op, left(zenv, Z3), right(zenv, Z3))))
    assert solver.check() != z3.sat, f"{claim} was proved, but not at {solver.model()}"


@QUICK
@given(EXPRS)
def test_bounds_and_residues_hold(build: Build) -> None:
    expr = build(pliant_env(), PLIANT)
    ana = Analyzer()
    bound, residue = ana.const_int_bound(expr), ana.modular_set(expr)
    for values in itertools.product((0, 1, 3, 8), repeat=len(NAMES)):
        value = build({**dict(zip(NAMES, values, strict=True)), "int": int}, PYTHON)
        assert bound.min_value <= value <= bound.max_value
        if residue.coeff == 0:
            assert value == residue.base
        else:
            assert (value - residue.base) % residue.coeff == 0
