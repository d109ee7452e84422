"""Tests that all executors of a loop function return the same values and errors at the limits of its arithmetic."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pliant
from pliant.script import from_source

HEADER = "from pliant.script import ir as I, relax as R, tir as T\n"
MACHINES = ("interpreter", "bytecode", "compiled")


def runs(body: str, x: Any, out: str, machine: str) -> Any:
    """Runs a loop function with this body from ``A`` (of the input's type) to ``B``, and returns
    the result.
    """
    lines = "\n".join("            " + line for line in body.strip().splitlines())
    n, dtype = x.shape[0], x.dtype.name
    module = from_source(f"""{HEADER}
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def f(a: T.handle, b: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n,), "{dtype}")
        B = T.match_buffer(b, (n,), "{out}")
        with T.block("root"):
{lines}
    @R.function(pure=False)
    def main(x: R.Tensor(("n",), "{dtype}")) -> R.Tensor(("n",), "{out}"):
        n = T.int64()
        cls = Module
        y = R.call_tir(cls.f, (x,), out_sinfo=R.Tensor((n,), "{out}"))
        return y
""")
    assert from_source(module.script()).script() == module.script()
    if machine == "interpreter":
        return pliant.testing.interpret(module, x).numpy().tolist()
    return pliant.compile(module, exec_mode=machine)(x).numpy().tolist()


BLOCK = """
for i in range(n):
    with T.block("b"):
        vi = T.axis.spatial(n, i)
"""


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    ("body", "x", "want"),
    [
        # Loops over quotients are split into runs of equal quotients, but not if the divisor is less than 1.
        (BLOCK + "        B[vi] = vi // (n - 5)", [0] * 4, [0, -1, -2, -3]),
        (BLOCK + "        B[vi] = vi % (n - 5) + A[vi]", [7] * 4, [7, 7, 7, 7]),
        (BLOCK + "        B[vi] = vi // (n - 2) * 10 + vi % (n - 2)", [0] * 5, [0, 1, 2, 10, 11]),
        # Comparisons wrap like their sums.
        (
            BLOCK + "        B[vi] = T.if_then_else(vi + T.int64(9223372036854775807) < T.int64(0), T.int64(1), T.int64(0))",
            [0] * 4,
            [0, 1, 1, 1],
        ),
        # So do variables, also in loops of one iteration.
        (
            "x: T.int64 = A[0]\nfor j in range(1):\n    y: T.int64 = (x * T.int64(2**45)) // T.int64(2**45)\n    B[j] = y",
            [262144],
            [-262144],
        ),
        (
            "for i in range(n):\n    x: T.int32 = T.Cast('int32', A[i])\n    B[i] = T.Cast('int64', x * 65536) // T.int64(65536)",
            [32768, 1],
            [-32768, 1],
        ),
        # An axis keeps the value that was read for it.
        (
            "for i in range(n):\n    B[i] = i\nfor i in range(n):\n    with T.block('b'):\n        v = T.axis.opaque(64, B[i])\n"
            "        w = T.axis.opaque(64, i)\n        B[w] = 5\n        B[w] = v",
            [0] * 3,
            [0, 1, 2],
        ),
        # An init runs in the iteration in which the reduction axis has its first value, in any order of the iterations.
        (
            "for i, k in T.grid(n, 3):\n    with T.block('b'):\n        v = T.axis.spatial(n, i)\n        r = T.axis.reduce(3, 2 - k)\n"
            "        with T.init():\n            B[v] = 0\n        B[v] = B[v] + r + 1",
            [0] * 2,
            [1, 1],
        ),
        (
            "for i, k in T.grid(n, 6):\n    with T.block('b'):\n        v = T.axis.spatial(n, i)\n        r = T.axis.reduce(3, k % 3)\n"
            "        with T.init():\n            B[v] = 0\n        B[v] = B[v] * 2 + r",
            [0] * 2,
            [4, 4],
        ),
        # If the reduction axis has its first value in several iterations, the init runs in each of them.
        (
            "for k, r in T.grid(3, 2):\n    with T.block('b'):\n        v = T.axis.spatial(n, 0)\n        q = T.axis.reduce(3, k)\n"
            "        with T.init():\n            B[v] = 0\n        B[v] = B[v] + q + 1",
            [0],
            [11],
        ),
        (
            "for k, i in T.grid(3, 4):\n    with T.block('b'):\n        v = T.axis.spatial(n, i // 2)\n        q = T.axis.reduce(3, k)\n"
            "        with T.init():\n            B[v] = 0\n        B[v] = B[v] + q + 1",
            [0] * 2,
            [11, 11],
        ),
    ],
)
def test_integer_arithmetic_wraps_around(machine: str, body: str, x: list[int], want: list[int]) -> None:
    assert runs(body, np.array(x, "int64"), "int64", machine) == want


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    "body",
    [
        "for i in range(n):\n    with T.block('b'):\n        vi = T.axis.spatial(n, i)\n        T.where(A[vi + 1000000000] > 0)\n"
        "        B[vi] = A[vi]",
        "for i in range(n):\n    with T.block('b'):\n        vi = T.axis.spatial(A[1000000000 + i], i)\n        B[vi] = A[vi]",
        "for i in range(n):\n    B[i] = T.if_then_else(A[i] == 0, T.max(A[i + 1000000000], 0), A[i])",
    ],
)
def test_all_reads_are_bounds_checked(machine: str, body: str) -> None:
    with pytest.raises(Exception, match="out of bounds|outside"):
        runs(body, np.zeros(3, "int64"), "int64", machine)


@pytest.mark.parametrize("machine", MACHINES)
def test_wrapped_indices_are_checked_at_the_access(machine: str) -> None:
    """Tests indices that wrap around: `i * 2**62 // 2**62` is between -2 and 1 in 64 bits, so the
    index is in bounds for every `i`.
    """
    far = "T.int64(4611686018427387904)"
    body = f"for i in range(n):\n    B[i] = 0\nfor i in range(1000):\n    B[(i * {far}) // {far} + T.int64(2)] = 1"
    np.testing.assert_array_equal(runs(body, np.zeros(4, "int64"), "int64", machine), np.ones(4))
    with pytest.raises(Exception, match="out of bounds|outside"):
        runs(body, np.zeros(3, "int64"), "int64", machine)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(("begin", "end"), [(3, 3), (-2, 0), (2, 1)])
def test_reductions_over_empty_slices_return_the_init(machine: str, begin: int, end: int) -> None:
    module = from_source(f"""{HEADER}
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", "m"), "float32")):
        y = R.strided_slice(x, axes=[1], begin=[{begin}], end=[{end}])
        return R.sum(y, axis=1), R.max(R.abs(y), axis=1), R.matmul(y, R.permute_dims(y))
""")
    for n in (1, 5, 40):
        x = np.full((n, 6), 7, "float32")
        got = pliant.testing.interpret(module, x) if machine == "interpreter" else pliant.compile(module, exec_mode=machine)(x)
        for one, want in zip(got, (np.zeros(n), np.full(n, -np.inf), np.zeros((n, n))), strict=True):
            np.testing.assert_array_equal(one.numpy(), want)


@pytest.mark.parametrize("machine", MACHINES)
def test_division_by_zero_is_reported(machine: str) -> None:
    with pytest.raises(Exception, match="division by zero"):
        runs(BLOCK + "        B[vi] = vi // (n - 5)", np.zeros(5, "int64"), "int64", machine)


@pytest.mark.parametrize("machine", MACHINES)
def test_indices_that_vary_along_a_reduction_are_checked(machine: str) -> None:
    module = from_source(f"""{HEADER}
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def f(a: T.handle, places: T.handle, c: T.handle):
        n, m, k = T.int64(), T.int64(), T.int64()
        A = T.match_buffer(a, (n, k), "float32")
        I = T.match_buffer(places, (m,), "int64")
        C = T.match_buffer(c, (n,), "float32")
        for i, r, j in T.grid(n, m, k):
            with T.block("s"):
                vi, vr, vj = T.axis.remap("SRR", [i, r, j])
                with T.init():
                    C[vi] = T.float32(0)
                C[vi] = C[vi] + T.exp(A[I[vr], vj])
    @R.function
    def main(x: R.Tensor(("n", "k"), "float32"), places: R.Tensor(("m",), "int64")) -> R.Tensor(("n",), "float32"):
        n = T.int64()
        cls = Module
        y = R.call_tir(cls.f, (x, places), out_sinfo=R.Tensor((n,), "float32"))
        return y
""")
    run = pliant.testing.interpret if machine == "interpreter" else None
    vm = None if run else pliant.compile(module, exec_mode=machine)
    call = (lambda *args: run(module, *args)) if run else vm
    x = np.linspace(-1, 1, 3 * 700).reshape(3, 700).astype("float32")
    got = call(x, np.array([2, 0, 2])).numpy()
    np.testing.assert_allclose(got, [np.exp(x[[2, 0, 2]]).sum()] * 3, rtol=1e-5)
    with pytest.raises(Exception, match="out of bounds|outside"):
        call(x, np.array([2, 3]))
    # If there is nothing to read, no position is invalid.
    assert call(np.zeros((2, 0), "float32"), np.array([5])).numpy().tolist() == [0, 0]
