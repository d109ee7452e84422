"""Tests einsums that are matrix products: which calls they become, and whether kernels and loops agree with numpy.einsum."""

from __future__ import annotations

import numpy as np
import pytest

import pliant
from pliant import relax
from pliant.script import from_source
from pliant.testing import interpret

# An equation, and the shapes of its operands; names are sizes known only at run time.
PRODUCTS = {
    "ij,jk->ik": ("(n, m)", "(m, k)"),
    "ij,jk": ("(n, m)", "(m, k)"),
    " i j , k j -> i k ": ("(n, m)", "(k, m)"),
    "ji,jk->ki": ("(m, n)", "(m, k)"),
    "bij,bjk->bik": ("(b, n, m)", "(b, m, k)"),
    "bij,bjk->kbi": ("(b, n, m)", "(b, m, k)"),
    "ibj,jkb->bik": ("(n, b, m)", "(m, k, b)"),
    "abij,bjk->abik": ("(2, b, n, m)", "(b, m, k)"),
    "bnlj,bjk->bnlk": ("(b, n, 2, m)", "(b, m, k)"),
    "bnlj,bjk->klbn": ("(b, n, 2, m)", "(b, m, k)"),
    "bhqd,bhkd->bhqk": ("(b, 2, n, 3)", "(b, 2, m, 3)"),
    "bhqk,bhkd->bhqd": ("(b, 2, n, m)", "(b, 2, m, 3)"),
    "bqhd,bkhd->bhqk": ("(b, n, 2, 3)", "(b, m, 2, 3)"),
    "bhqk,bkhd->bqhd": ("(b, 2, n, m)", "(b, m, 2, 3)"),
    "btd,dhk->bthk": ("(b, n, 9)", "(9, 2, 5)"),
    "btd,dhk->bhtk": ("(b, n, 9)", "(9, 2, 5)"),
    "btd,hdk->btkh": ("(b, n, 9)", "(2, 9, 5)"),
    "bthk,hkd->btd": ("(b, n, 2, 5)", "(2, 5, 9)"),
    "bthk,khd->btd": ("(b, n, 2, 5)", "(5, 2, 9)"),
    "bhtk,hkd->btd": ("(b, 2, n, 5)", "(2, 5, 9)"),
    "od,nd->no": ("(9, 11)", "(n, 11)"),
    "od,bdn->bon": ("(9, 11)", "(b, 11, n)"),
    "ij,j->i": ("(n, m)", "(m,)"),
    "j,jk->k": ("(m,)", "(m, k)"),
    "bj,bjk->bk": ("(b, m)", "(b, m, k)"),
    "bij,bj->ib": ("(b, n, m)", "(b, m)"),
    "...ij,jk->...ik": ("(b, 2, n, m)", "(m, k)"),
    "...ij,...jk": ("(2, b, n, m)", "(b, m, k)"),
    "i...,j...->ij...": ("(n, b)", "(m, b)"),
    "j...i,k...j->...ik": ("(m, b, n)", "(k, b, m)"),
}
# Equations that are no products, or not at these sizes.
OTHERS = {
    "i,j->ij": ("(n,)", "(m,)"),
    "bi,bi->b": ("(b, n)", "(b, n)"),
    "ii,ij->j": ("(n, n)", "(n, m)"),
    "bij,jk->ik": ("(b, n, m)", "(m, k)"),
    "ij,jk->": ("(n, m)", "(m, k)"),
}
# Sizes of 1 are broadcast.
STRETCHED = {
    "bij,bjk->bik": ("(1, n, m)", "(b, m, k)"),
    "abij,abjk->abik": ("(1, b, n, m)", "(2, 1, m, k)"),
    "ij,jk->ik": ("(n, 1)", "(m, k)"),
    "...ij,...jk->...ki": ("(b, 1, n, m)", "(2, m, k)"),
}
SIZES = [{"b": b, "n": n, "m": m, "k": k} for b, n, m, k in [(2, 3, 5, 9), (1, 1, 1, 1), (0, 2, 3, 4), (2, 0, 3, 4)]]
SIZES += [{"b": b, "n": n, "m": m, "k": k} for b, n, m, k in [(2, 3, 0, 4), (3, 2, 4, 0), (2, 17, 33, 40)]]


def program(equation: str, shapes: tuple[str, ...], dtype: str, then: str = "y = z") -> pliant.IRModule:
    """Returns a function of two operands with an einsum, in which letters of the subscripts are
    symbolic sizes.
    """
    quoted = [s.translate({ord(c): f'"{c}"' for c in "bnmk"}) for s in shapes]
    sizes = "".join(f"        {c} = T.int64()\n" for c in "bnmk" if any(c in s for s in shapes))
    return from_source(f"""
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor({quoted[0]}, "{dtype}"), w: R.Tensor({quoted[1]}, "{dtype}")):
{sizes}        with R.dataflow():
            z = R.einsum((x, w), subscripts="{equation}")
            {then}
            R.output(y)
        return y
""")


def operands(shapes: tuple[str, ...], dtype: str, sizes: dict[str, int]) -> list[np.ndarray]:
    rng = np.random.default_rng(sum(sizes.values()))
    of = [rng.integers(-4, 5, eval(s, {}, sizes)) for s in shapes]  # noqa: S307: shapes of this file
    return [a.astype(dtype) if "int" in dtype else (a + rng.random(a.shape)).astype(dtype) for a in of]


def agree(module: pliant.IRModule, equation: str, shapes: tuple[str, ...], dtype: str) -> None:
    models = [pliant.compile(module), pliant.compile(module, kernels="off")]
    for sizes in SIZES:
        given = operands(shapes, dtype, sizes)
        exact = "int" in dtype
        want = np.einsum(equation.replace(" ", ""), *(a if exact else a.astype("float64") for a in given))
        scale = max(1.0, float(np.abs(want).max(initial=0)))
        tolerance = 0 if exact else {"float16": 2e-3, "float32": 2e-6, "float64": 1e-13}[dtype]
        for model in models:
            got = np.asarray(model(*given))
            assert (got.dtype, got.shape) == (np.dtype(dtype), want.shape)
            np.testing.assert_allclose(got, want, rtol=0, atol=tolerance * scale)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32", "int8"])
@pytest.mark.parametrize("equation", PRODUCTS | OTHERS)
def test_einsums_equal_numpy(equation: str, dtype: str) -> None:
    shapes = (PRODUCTS | OTHERS)[equation]
    agree(program(equation, shapes, dtype), equation, shapes, dtype)


@pytest.mark.parametrize("equation", STRETCHED)
def test_merged_axes(equation: str) -> None:
    shapes = STRETCHED[equation]
    agree(program(equation, shapes, "float32"), equation, shapes, "float32")


def bound(module: pliant.IRModule, name: str, value: np.ndarray) -> pliant.IRModule:
    return relax.transform.BindParams("main", {name: value})(module)


CONSTANT = {e: s for e, s in PRODUCTS.items() if not set("bnmk") & set(s[1]) or not set("bnmk") & set(s[0])}


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32"])
@pytest.mark.parametrize("equation", CONSTANT)
def test_einsums_with_constants(equation: str, dtype: str) -> None:
    shapes = CONSTANT[equation]
    which = 0 if not set("bnmk") & set(shapes[0]) else 1
    weight = operands(shapes, dtype, SIZES[0])[which]
    module = bound(program(equation, shapes, dtype), "xw"[which], weight)
    models = [pliant.compile(module), pliant.compile(module, kernels="off")]
    for sizes in SIZES:
        given = operands(shapes, dtype, sizes)
        given[which] = weight
        want = np.einsum(equation, *(a if dtype == "int32" else a.astype("float64") for a in given))
        for model in models:
            got = np.asarray(model(given[1 - which]))
            atol = {"float16": 0.3, "float32": 2e-4, "float64": 1e-11, "int32": 0}[dtype]
            np.testing.assert_allclose(got, want, rtol=0, atol=atol)


PACKED = ["btd,dhk->bthk", "btd,hdk->btkh", "bthk,hkd->btd", "bthk,khd->btd", "od,nd->no"]


@pytest.mark.parametrize("equation", PACKED)
def test_constants_are_packed(equation: str) -> None:
    shapes = PRODUCTS[equation]
    which = 0 if not set("bnmk") & set(shapes[0]) else 1
    module = bound(program(equation, shapes, "float32"), "xw"[which], operands(shapes, "float32", SIZES[0])[which])
    script = relax.get_pipeline("zero")(module).script()
    assert "matmul_packed" in script and "einsum" not in script


def test_operands_are_read_in_place() -> None:
    for equation in ["bqhd,bkhd->bhqk", "bhqk,bkhd->bqhd", "ji,jk->ki", "i...,j...->ij..."]:
        module = program(equation, PRODUCTS.get(equation) or OTHERS[equation], "float32")
        if "..." not in equation:
            assert "R.matmul" in relax.transform.EinsumToMatmul()(module).script()
        script = relax.get_pipeline("zero")(module).script()
        assert "transpose" not in script and "permute_dims" not in script, equation


ATTENTION = """
@I.ir_module
class Module:
    @R.function
    def main(q: R.Tensor({q}, "{dtype}"), k: R.Tensor({k}, "{dtype}"), v: R.Tensor({k}, "{dtype}"), bias: R.Tensor(("b", 1, 1, "m"), "{dtype}")):
        b = T.int64()
        n = T.int64()
        m = T.int64()
        with R.dataflow():
            s = R.einsum((q, k), subscripts="{scores}")
            p = R.nn.softmax(R.add(R.multiply(s, R.const(0.5, "{dtype}")), bias), axis=-1)
            z = R.einsum((p, v), subscripts="{values}")
            R.output(z)
        return z
"""
TOKENS, HEADS = ('("b", "n", 2, 4)', '("b", "m", 2, 4)'), ('("b", 2, "n", 4)', '("b", 2, "m", 4)')
WRITTEN = {
    "heads": (HEADS, "bhqd,bhkd->bhqk", "bhqk,bhkd->bhqd"),
    "tokens": (TOKENS, "bqhd,bkhd->bhqk", "bhqk,bkhd->bqhd"),
    "keys first": (TOKENS, "bkhd,bqhd->bhqk", "bkhd,bhqk->bqhd"),
    "result by heads": (TOKENS, "bqhd,bkhd->bhqk", "bhqk,bkhd->bhqd"),
}


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("form", WRITTEN)
def test_einsum_attention_is_one_kernel_call(form: str, dtype: str) -> None:
    (q, k), scores, values = WRITTEN[form]
    if form == "keys first":
        source = ATTENTION.replace("(q, k)", "(k, q)").replace("(p, v)", "(v, p)")
    else:
        source = ATTENTION
    module = from_source(source.format(q=q, k=k, dtype=dtype, scores=scores, values=values))
    script = relax.get_pipeline("zero")(module).script()
    assert 'T.call_kernel("attention"' in script and "softmax" not in script and "transpose" not in script
    models = [pliant.compile(module), pliant.compile(module, kernels="off")]
    for b, n, m in [(0, 2, 3), (1, 1, 1), (2, 3, 5), (1, 33, 40)]:
        rng = np.random.default_rng(n)
        sizes = [(b, n, 2, 4), (b, m, 2, 4)] if (q, k) == TOKENS else [(b, 2, n, 4), (b, 2, m, 4)]
        shapes = [sizes[0], sizes[1], sizes[1], (b, 1, 1, m)]
        given = [rng.standard_normal(s).astype(dtype) for s in shapes]
        fast, slow = (np.asarray(model(*given)).astype("float32") for model in models)
        tolerance = 2e-3 if dtype == "float16" else 2e-5
        np.testing.assert_allclose(fast, slow, rtol=tolerance, atol=tolerance)


TRANSPOSED = {
    "R.matmul(x, R.permute_dims(w))": ((5, 7), (6, 7)),
    "R.matmul(R.permute_dims(x), w)": ((7, 5), (7, 6)),
    "R.matmul(R.permute_dims(x), R.permute_dims(w))": ((7, 5), (6, 7)),
    "R.permute_dims(R.matmul(x, w))": ((5, 7), (7, 6)),
    "R.permute_dims(R.matmul(R.permute_dims(x, axes=[1, 0, 2]), R.permute_dims(w, axes=[2, 1, 0])), axes=[2, 0, 1])": (
        (5, 3, 7),
        (6, 7, 3),
    ),
    "R.matmul(x, R.permute_dims(w, axes=[1, 2, 0]))": ((2, 3, 4, 7), (6, 3, 7)),
    "R.nn.relu(R.add(R.permute_dims(R.matmul(x, w)), R.const(1.5, 'float32')))": ((5, 7), (7, 6)),
}


@pytest.mark.parametrize("expression", TRANSPOSED)
def test_transposes_around_einsums_are_folded(expression: str) -> None:
    shapes = TRANSPOSED[expression]
    module = from_source(f"""
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor({shapes[0]}, "float32"), w: R.Tensor({shapes[1]}, "float32")):
        with R.dataflow():
            z = {expression}
            R.output(z)
        return z
""")
    assert "transpose" not in relax.get_pipeline("zero")(module).script()
    given = [np.random.default_rng(1).standard_normal(s).astype("float32") for s in shapes]
    want = interpret(module, *given).numpy()
    for kernels in ("on", "off"):
        model = pliant.compile(module) if kernels == "on" else pliant.compile(module, kernels="off")
        np.testing.assert_allclose(np.asarray(model(*given)), want, rtol=1e-5, atol=1e-5)
