"""Tests library kernels whose operands are views of buffers (`T.view`)."""

from __future__ import annotations

import random
import re
from pathlib import Path

import numpy as np
import pytest

import pliant
from pliant.script import from_source

#: The heads of queries, keys and values side by side in rows of 12.
PARTS = (
    "q=T.view(A, [2, 2, n, 2], strides=[n * 12, 2, 12, 1]), k=T.view(A, [2, 2, n, 2], strides=[n * 12, 2, 12, 1], offset=4), "
    "v=T.view(A, [2, 2, n, 2], strides=[n * 12, 2, 12, 1], offset=8)"
)
OUT = "out=T.view(O, [2, 2, n, 2], strides=[n * 4, 2, 4, 1])"


ATTENTION = """
from pliant.script import ir as I, relax as R, tir as T

@I.ir_module
class Module:
    @T.prim_func
    def f(var_A: T.handle, var_O: T.handle):
        n = T.int64()
        A = T.match_buffer(var_A, (2, n, 12), "float32")
        O = T.match_buffer(var_O, (2, n, 4), "float32")
        with T.block("b"):
            T.evaluate(T.call_kernel("attention", {operands}, scale=T.float64(0.5)))

    @R.function
    def main(a: R.Tensor((2, "n", 12), "float32")) -> R.Tensor((2, "n", 4), "float32"):
        n = T.int64()
        r = R.call_tir(Module.f, (a,), out_sinfo=R.Tensor((2, n, 4), "float32"))
        return r
"""


def attention(tmp_path: Path, operands: str) -> pliant.Model:
    """Returns a program whose loop function calls the kernel `attention`."""
    path = tmp_path / "call.py"
    path.write_text(ATTENTION.format(operands=operands))
    return pliant.compile(path)


def expected(a: np.ndarray) -> np.ndarray:
    q, k, v = (part.reshape(2, -1, 2, 2).transpose(0, 2, 1, 3).astype("float64") for part in np.split(a, 3, axis=2))
    scores = q @ k.transpose(0, 1, 3, 2) * 0.5
    weights = np.exp(scores - scores.max(-1, keepdims=True, initial=-1e30))
    return (weights @ v / weights.sum(-1, keepdims=True)).transpose(0, 2, 1, 3).reshape(2, -1, 4)


def test_views_read_and_write_heads_in_place(tmp_path: Path) -> None:
    model = attention(tmp_path, f"{PARTS}, {OUT}")
    for n in (0, 1, 3, 40):
        a = np.random.default_rng(n).standard_normal((2, n, 12)).astype("float32")
        np.testing.assert_allclose(model(a).numpy(), expected(a), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("offset=8", "offset=9", "operand 'v' is a view with offset 9"),
        ("offset=8", "offset=-1", "operand 'v' is a view that starts at the negative offset -1"),
        ("offset=4", f"offset={2**62}", "operand 'k' is a view"),
        ("strides=[n * 12, 2, 12, 1])", "strides=[n * 12, 2, -12, 1])", "a stride must not be negative"),
        ("strides=[n * 12, 2, 12, 1])", f"strides=[{2**62}, 2, 12, 1])", "operand 'q' is a view"),
        ("[2, 2, n, 2], strides=[n * 4, 2, 4, 1]", "[2, 2, n, 2], strides=[n * 4, 2, 5, 1]", "operand 'out' is a view"),
        ("q=T.view(A, [2, 2, n, 2]", "q=T.view(A, [2, 1, n, 2]", "in dim heads, but another operand has size 1"),
        ("q=T.view(A, [2, 2, n, 2]", f"q=T.view(A, [2, 2, {2**40}, 2]", "operand 'q' is a view"),
        ("q=T.view(A, [2, 2, n, 2]", "q=T.view(A, [2, 2, 0 - n, 2]", "a dim must not be negative"),
        ("strides=[n * 12, 2, 12, 1])", "strides=[n * 12, 2, 4, 3])", "a contiguous last dim"),
        ("out=T.view(O", "out=T.view(A", "operand 'out' is a result, but shares memory with"),
    ],
)
def test_a_view_outside_its_buffer_is_an_error(tmp_path: Path, old: str, new: str, message: str) -> None:
    good = f"{PARTS}, {OUT}"
    assert old in good
    model = attention(tmp_path, good.replace(old, new, 1))
    with pytest.raises(pliant.error.PliantError) as caught:
        model(np.ones((2, 3, 12), "float32"))
    assert "kernel attention" in str(caught.value) and message in str(caught.value)


@pytest.mark.parametrize(
    ("view", "message"),
    [
        ("T.view(A, [2, 2, n, 2])", "T.view must be written as"),
        ("T.view(A, [2, 2, n, 2], strides=[n * 12, 2, 12])", "as many strides as dims"),
        ("T.view(A, 2, strides=[1])", "lists of integers"),
        ("T.view(n, [1], strides=[1])", "the first argument of T.view must be a buffer"),
        ("T.view(A, [1], strides=[1], start=3)", "T.view must be written as"),
        ("T.view(A, [1] + [1], strides=[1])", "lists of integers"),
        (f"T.view(A, {[1] * 9}, strides={[1] * 9})", "at most 8"),
        ("T.view(A, [1.5], strides=[1])", ""),
    ],
)
def test_invalid_view_syntax_is_a_script_error(tmp_path: Path, view: str, message: str) -> None:
    with pytest.raises(pliant.error.PliantError) as caught:
        attention(tmp_path, f"q={view}, k=A, v=A, out=O")
    assert message in str(caught.value)


#: Calls of the kernels on buffers of 64 elements: the data types of A, W and O, and the arguments.
CALLS = {
    "conv": (
        ("float32", "float32", "float32"),
        "x=T.view(A, [1, 2, 1, 3, 3], strides=[18, 9, 9, 3, 1]), weight=T.view(W, [32], strides=[1]), "
        "out=T.view(O, [1, 2, 1, 3, 3], strides=[18, 9, 9, 3, 1]), kernel_shape=[1, 1, 1], panel_width=16",
    ),
    "conv_int8": (
        ("uint8", "int8", "int32"),
        "x=T.view(A, [1, 1, 3, 3, 2], strides=[18, 18, 6, 2, 1]), weight=T.view(W, [64], strides=[1]), "
        "filter_sums=T.view(Z, [2], strides=[1], offset=16), out=T.view(O, [1, 1, 3, 3, 2], strides=[18, 18, 6, 2, 1]), "
        "kernel_shape=[1, 1, 1], panel_width=16",
    ),
    "matmul_int8": (
        ("int8", "int8", "int32"),
        "x=T.view(A, [5, 4], strides=[4, 1]), weight=T.view(W, [1, 1, 16, 4], strides=[64, 64, 4, 1]), "
        "column_sums=T.view(Z, [3], strides=[1], offset=16), x_zeros=T.view(Z, [5], strides=[0]), out=T.view(O, [5, 3], strides=[3, 1])",
    ),
}


def written(tmp_path: Path, kernel: str, arguments: str) -> pliant.Model:
    """Returns a program whose loop function calls a kernel."""
    (a, w, o), _ = CALLS[kernel]
    path = tmp_path / "call.py"
    path.write_text(f"""
from pliant.script import ir as I, relax as R, tir as T

@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((64,), "{a}"), W: T.Buffer((64,), "{w}"), Z: T.Buffer((64,), "int32"), O: T.Buffer((64,), "{o}")):
        with T.block("b"):
            T.evaluate(T.call_kernel("{kernel}", {arguments}))

    @R.function
    def main(a: R.Tensor((64,), "{a}"), w: R.Tensor((64,), "{w}"), z: R.Tensor((64,), "int32")) -> R.Tensor((64,), "{o}"):
        r = R.call_tir(Module.f, (a, w, z), out_sinfo=R.Tensor((64,), "{o}"))
        return r
""")
    return pliant.compile(path)


@pytest.mark.parametrize("kernel", CALLS)
def test_explicit_calls_stay_inside_their_buffers(kernel: str, tmp_path: Path) -> None:
    (a, w, _), good = CALLS[kernel]
    inner = 4 if kernel == "matmul_int8" else 2
    inputs = np.ones(64, a), np.ones(64, w), np.where(np.arange(64) < 16, 0, inner).astype("int32")
    got = written(tmp_path, kernel, good)(*inputs).numpy()
    size = 15 if kernel == "matmul_int8" else 18
    # The weights are ones: each result is the sum of the inputs. The rest of the buffer is zero.
    assert (got[:size] == inner).all() and (got[size:] == 0).all()
    numbers = list(re.finditer(r"(?<=[\[ =])\d+(?=[,\]])", good))
    draw = random.Random(kernel)
    failed = 0
    for value in (-1, 7, 64, 1 << 28, 1 << 40, (1 << 63) - 1):
        for number in draw.sample(numbers, 6):
            try:
                written(tmp_path, kernel, good[: number.start()] + str(value) + good[number.end() :])(*inputs)
            except pliant.error.PliantError as e:
                failed += 1
                assert f"kernel {kernel}" in str(e) or f"of kernel {kernel}" in str(e), e
    assert failed > 10


@pytest.mark.parametrize(
    ("kernel", "old", "new", "message"),
    [
        ("conv", "panel_width=16", "panel_width=8", "attribute 'panel_width' is 8"),
        ("conv", "panel_width=16", 'panel_width=16, winograd="2x2"', "3 x 3 filters"),
        ("conv", "panel_width=16", "panel_width=16, groups=3", "dim channels of operand 'x' has size 2, expected a multiple of 3"),
        ("conv", "kernel_shape=[1, 1, 1]", "kernel_shape=[1, 1, 2]", "weights is 32, expected 64"),
        ("conv", "kernel_shape=[1, 1, 1]", "kernel_shape=[1, 0, 1]", "attribute 'kernel_shape' is 0"),
        ("conv", "panel_width=16", "panel_width=16, residual=T.view(Z, [1], strides=[1])", "operand 'residual' is int32"),
        ("conv_int8", "out=T.view(O", "scale=T.view(Z, [], strides=[]), out=T.view(O", "operand 'scale' is int32"),
        ("conv_int8", "panel_width=16", "panel_width=17", "'panel_width' is 17"),
        ("conv_int8", "x=T.view(A", "x=T.view(Z", "operand 'x' is int32, expected int8 or uint8"),
        ("matmul_int8", "[1, 1, 16, 4], strides=[64, 64, 4, 1]", "[1, 1, 8, 4], strides=[32, 32, 4, 1]", "panels of 8 columns"),
        ("matmul_int8", "out=T.view(O", 'activation="relu", out=T.view(O', "operand 'out' is int32"),
        ("matmul_int8", "x_zeros=T.view(Z, [5]", "x_zeros=T.view(Z, [4]", "operand 'x_zeros' has size 4 in dim rows, but another operand has size 5"),
    ],
)
def test_errors_name_the_expected_operand(tmp_path: Path, kernel: str, old: str, new: str, message: str) -> None:
    (a, w, _), good = CALLS[kernel]
    assert old in good
    with pytest.raises(pliant.error.PliantError) as caught:
        written(tmp_path, kernel, good.replace(old, new, 1))(np.ones(64, a), np.ones(64, w), np.zeros(64, "int32"))
    assert f"kernel {kernel}" in str(caught.value) and message in str(caught.value)


def test_programs_with_views_round_trip(tmp_path: Path) -> None:
    module = from_source(ATTENTION.format(operands=f"{PARTS}, {OUT}"))
    text = module.script()
    assert text.count("T.view(") == 4 and "offset=8" in text
    assert from_source(text).script() == text
    attention(tmp_path, f"{PARTS}, {OUT}").save(tmp_path / "model.plnt")
    a = np.random.default_rng(0).standard_normal((2, 5, 12)).astype("float32")
    got = pliant.load(tmp_path / "model.plnt")(a).numpy()
    np.testing.assert_allclose(got, expected(a), rtol=1e-4, atol=1e-5)
