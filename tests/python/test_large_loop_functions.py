"""Tests loop functions whose expressions or statements become large or deep while they are compiled."""

import numpy as np
import pytest

import pliant


def tree(operands: list[str], op: str) -> str:
    """Combines all operands by a balanced tree of operators."""
    while len(operands) > 1:
        pairs = [operands[i : i + 2] for i in range(0, len(operands), 2)]
        operands = [f"({f' {op} '.join(pair)})" for pair in pairs]
    return operands[0]


def compiled(body: str, dtype: str = "float32") -> pliant.Model:
    """Compiles a model that calls one loop function with the input `A` and the output `C`, both of
    n elements.
    """
    return pliant.compile(
        pliant.script.from_source(f"""
from pliant.script import ir as I, relax as R, tir as T

@I.ir_module
class Module:
    @T.prim_func(private=True)
    def f(var_a: T.handle, var_c: T.handle):
        n = T.int64()
        A = T.match_buffer(var_a, (n,), "{dtype}")
        C = T.match_buffer(var_c, (n,), "{dtype}")
{body}

    @R.function
    def main(x: R.Tensor(("n",), "{dtype}")):
        n = T.int64()
        cls = Module
        return R.call_tir(cls.f, (x,), out_sinfo=R.Tensor((n,), "{dtype}"))
""")
    )


def test_thousands_of_bounds_checks_in_one_statement() -> None:
    """Tests thousands of bounds checks in one statement: CheckBounds nests one assertion per
    check.
    """
    count = 4000
    total = tree([f"A[{k}]" for k in range(count)], "+")
    model = compiled(f"        for i in range(n):\n            C[i] = {total}")
    assert model(np.ones(count, "float32")).numpy()[0] == count
    with pytest.raises(pliant.BoundsError):
        model(np.ones(count - 1, "float32"))


def test_stages_are_not_inlined_into_deep_expressions() -> None:
    """Tests stages that are not inlined: inlining twenty stages of depth 180 would make an
    expression that overflows the stack.
    """
    stages, depth = 20, 180
    lines = [f"S{k} = T.alloc_buffer((n,), \"float32\")" for k in range(stages - 1)]
    for k in range(stages):
        value = "A[v]" if k == 0 else f"S{k - 1}[v]"
        for j in range(depth):
            value = f"({value} + T.float32({j % 2}))" if j % 3 else f"({value} * T.float32(0.5))"
        target = "C" if k == stages - 1 else f"S{k}"
        lines += [
            f"for i{k} in range(n):",
            f"    with T.block(\"b{k}\"):",
            f"        v = T.axis.spatial(n, i{k})",
            f"        {target}[v] = {value}",
        ]
    model = compiled("\n".join("        " + line for line in lines))
    x = np.arange(5, dtype="float32")
    expected = x
    for _ in range(stages):
        for j in range(depth):
            expected = expected + np.float32(j % 2) if j % 3 else expected * np.float32(0.5)
    np.testing.assert_array_equal(model(x).numpy(), expected)


def test_thousands_of_live_values() -> None:
    """Tests a function with more live values than the default register allocator accepts. Its
    registers are allocated in a single pass.
    """
    count = 6000
    terms = [f"(A[i] + T.float64({k}.5))" for k in range(count)]
    order = np.random.default_rng(1).permutation(count)
    total, extreme = tree(terms, "+"), tree([terms[k] for k in order], "-")
    model = compiled(f"        for i in range(n):\n            C[i] = {total} * {extreme}", "float64")

    def combined(values: np.ndarray, sign: int) -> float:
        while len(values) > 1:
            whole = len(values) // 2 * 2
            pairs = values[:whole:2] + sign * values[1:whole:2]
            values = np.concatenate([pairs, values[whole:]])
        return float(values[0])

    x = np.array([0.25, -3.0, 1e6])
    values = x[:, None] + np.arange(count) + 0.5
    expected = [combined(row, 1) * combined(row[order], -1) for row in values]
    np.testing.assert_allclose(model(x).numpy(), expected, rtol=1e-12)


def test_deeply_nested_selects_compile_quickly() -> None:
    """Tests that deeply nested selects compile quickly: checking both sides of each conditional
    twice would need 2**60 proofs.
    """
    depth = 60
    value = "A[v]"
    for k in range(depth):
        value = f"T.Select(A[v + {k}] > T.float32({k}), {value}, A[v + {k}])"
    model = compiled(f"""        for i in range(n - {depth}):
            with T.block("c"):
                v = T.axis.spatial(n - {depth}, i)
                C[v] = {value}""")
    x = np.arange(100, dtype="float32")
    expected = x[:40].copy()
    for k in range(depth):
        expected = np.where(x[k : k + 40] > k, expected, x[k : k + 40])
    np.testing.assert_array_equal(model(x).numpy()[:40], expected)
