"""Cases of loop functions whose accesses or kernel calls are out of bounds, with the expected errors."""

from __future__ import annotations

from dataclasses import dataclass, field

SECRETS = """
    @T.prim_func(private=True)
    def secret(var_a: T.handle, var_c: T.handle):
        n = T.int64()
        A = T.match_buffer(var_a, (n,), "float32")
        C = T.match_buffer(var_c, (n,), "float32")
        for i in range(n):
            C[i] = A[i] * T.float32(0) + T.float32(77)
"""

PROGRAM = """
import numpy as np
import pliant
from pliant.script import ir as I, relax as R, tir as T

@I.ir_module
class Module:
{secrets}
    @T.prim_func(private=True)
    def f(var_a: T.handle, var_j: T.handle, var_c: T.handle, c: T.int64):
        n = T.int64()
        m = T.int64()
        A = T.match_buffer(var_a, {a}, "float32")
        J = T.match_buffer(var_j, (m,), "int64")
        C = T.match_buffer(var_c, {c}, "{dtype}")
{loops}

    @R.function
    def main(s: R.Tensor((1000,), "float32"), a: R.Tensor({sa}, "float32"), j: R.Tensor(("m",), "int64")):
        n = T.int64()
        m = T.int64()
        cls = Module
        s1 = R.call_tir(cls.secret, (s,), out_sinfo=R.Tensor((1000,), "float32"))
        s2 = R.call_tir(cls.secret, (s1,), out_sinfo=R.Tensor((1000,), "float32"))
        s3 = R.call_tir(cls.secret, (s2,), out_sinfo=R.Tensor((1000,), "float32"))
        y = R.call_tir(cls.f, (a, j), out_sinfo=R.Tensor({c}, "{dtype}"), tir_vars=R.shape([{size}]))
        return (R.sum(s3), y)

model = pliant.compile(Module)
n = {n}
a, j = np.ones({a}, "float32"), np.array({j}, "int64")
for _ in range(3):
    y = np.asarray(model(np.zeros(1000, "float32"), a, j)[1])
    assert (y == ({expected})).all(), y
"""


@dataclass
class Case:
    """A loop function with its inputs, and the expected result: the value of its output as an
    expression, or the error of the call.
    """

    name: str
    loops: str
    n: int
    j: list[int] = field(default_factory=list)
    a: str = "(n,)"
    c: str = "(n,)"
    dtype: str = "float32"
    size: int = 0
    expected: str = "0"
    error: str = ""


CASES = [
    Case(
        "an extent that only another loop keeps from being negative",
        """
        for i in range(n - 1000):
            for j in range(n - 1001):
                for k in range(n - 1001):
                    with T.block("c"):
                        vj = T.axis.spatial(n - 1001, j)
                        vk = T.axis.spatial(n - 1001, k)
                        vi = T.axis.reduce(n - 1000, i)
                        with T.init():
                            C[vj, vk] = T.float32(3)
                        C[vj, vk] = C[vj, vk] + A[vj, vk, vi]
        """,
        n=1,
        a="(n, n, n)",
        c="(n, n)",
    ),
    Case(
        "columns of a reduction over a negative number of rows",
        """
        for b in range(4):
            for i in range(n - 1000):
                for j in range(n - 1001):
                    with T.block("c"):
                        vb = T.axis.spatial(4, b)
                        vj = T.axis.spatial(n - 1001, j)
                        vi = T.axis.reduce(n - 1000, i)
                        with T.init():
                            C[vb, vj] = T.float32(3)
                        C[vb, vj] = C[vb, vj] + A[vb, vi, vj]
        """,
        n=1,
        a="(4, n, n)",
        c="(4, n)",
    ),
    Case(
        "the init of an empty reduction at an axis that leaves its range",
        """
        for i in range(n):
            for r in range(m):
                with T.block("c"):
                    v = T.axis.spatial(n, i + 8589934592)
                    vr = T.axis.reduce(m, r)
                    with T.init():
                        C[v] = T.float32(3)
                    C[v] = C[v] + T.Cast("float32", J[vr])
        """,
        n=8,
        error="BoundsError: the value of axis 'v' of block 'c' is outside its range",
    ),
    Case(
        "a let between the loops of an empty reduction that reads far outside",
        """
        for i in range(n):
            for r in range(m):
                t: T.float32 = A[i + 8589934592]
                with T.block("c"):
                    v = T.axis.spatial(n, i)
                    vr = T.axis.reduce(m, r)
                    with T.init():
                        C[v] = t
                    C[v] = C[v] + T.Cast("float32", J[vr])
        """,
        n=4,
    ),
    Case(
        "a load in the index of an accumulator, in bounds only where the loop has an iteration",
        """
        for i in range(n):
            with T.block("z"):
                vi = T.axis.spatial(n, i)
                C[vi] = T.float32(0)
        for i in range(1):
            for r in range(m - 1000000000):
                with T.block("c"):
                    vi = T.axis.spatial(1, i)
                    vr = T.axis.reduce(m - 1000000000, r)
                    C[J[1000000000] % n + vi * 0] = C[J[1000000000] % n + vi * 0] + T.Cast("float32", J[vr])
        """,
        n=4,
        j=[0, 0, 0, 0],
    ),
    *(
        Case(
            f"a comparison with a value from memory whose split point wraps around ({k})",
            """
            for i in range(n):
                with T.block("c"):
                    v = T.axis.spatial(n, i)
                    k: T.int64 = J[0]
                    C[v] = T.if_then_else(v + c <= k and k < n + c, A[k - c - v], T.float32(0))
            """,
            n=4,
            j=[k],
            size=1 << 40,
        )
        for k in (-(2**63) + 2**40 - 1000, -(2**63) + 2**40 - 2**33, -(2**63), 2**63 - 1)
    ),
    Case(
        "scratch memory under a loop whose extent wraps around to 0",
        """
        S = T.alloc_buffer((512,), "int64")
        for i in range((n * T.int64(4611686018427387904)) // T.int64(4611686018427387904) - n + 512):
            S[i] = T.int64(0)
        for i in range(512):
            C[i] = S[511 - i]
        """,
        n=512,
        c="(512,)",
        dtype="int64",
    ),
    Case(
        "an output under a loop whose extent wraps around to 0",
        """
        for i in range((n * T.int64(4611686018427387904)) // T.int64(4611686018427387904)):
            C[i] = T.float32(0)
        """,
        n=1000,
    ),
    Case(
        "an init that does not run in an empty reduction: a let",
        """
        for i in range(n):
            for r in range(m):
                t: T.int64 = r + 1
                with T.block("c"):
                    v = T.axis.spatial(n, i)
                    vr = T.axis.reduce(m, r)
                    with T.init():
                        C[v] = T.float32(0)
                    C[v] = C[v] + A[v] * T.Cast("float32", t)
        """,
        n=1000,
    ),
    Case(
        "an init that does not run in an empty reduction: an allocation",
        """
        for i in range(n):
            for r in range(m):
                scr = T.decl_buffer((1,), "float32")
                scr[0] = T.float32(1)
                with T.block("c"):
                    v = T.axis.spatial(n, i)
                    vr = T.axis.reduce(m, r)
                    with T.init():
                        C[v] = T.float32(0)
                    C[v] = C[v] + A[v] * scr[0]
        """,
        n=1000,
    ),
    Case(
        "an init that does not run in an empty reduction: a let as its extent",
        """
        for i in range(n):
            for r in range(1):
                k: T.int64 = m
                for q in range(k):
                    with T.block("c"):
                        v = T.axis.spatial(n, i)
                        vr = T.axis.reduce(1, r)
                        vq = T.axis.reduce(k, q)
                        with T.init():
                            C[v] = T.float32(0)
                        C[v] = C[v] + A[v]
        """,
        n=1000,
    ),
    Case(
        "an init that does not run in an empty reduction: a condition around the block",
        """
        for i in range(n):
            for r in range(m):
                if n > 5:
                    with T.block("c"):
                        v = T.axis.spatial(n, i)
                        vr = T.axis.reduce(m, r)
                        with T.init():
                            C[v] = T.float32(0)
                        C[v] = C[v] + A[v]
                else:
                    with T.block("d"):
                        v = T.axis.spatial(n, i)
                        vr = T.axis.reduce(m, r)
                        with T.init():
                            C[v] = T.float32(0)
                        C[v] = C[v] + A[v]
        """,
        n=1000,
    ),
    Case(
        "an init that does not run in an empty reduction: a block around the block",
        """
        for i in range(n):
            for r in range(m):
                with T.block("outer"):
                    with T.block("c"):
                        v = T.axis.spatial(n, i)
                        vr = T.axis.reduce(m, r)
                        with T.init():
                            C[v] = T.float32(0)
                        C[v] = C[v] + A[v] + T.Cast("float32", J[vr])
        """,
        n=1000,
    ),
    Case(
        "a row that memory selects, as the operand of an elementary function",
        """
        for i in range(n):
            with T.block("c"):
                v = T.axis.spatial(n, i)
                C[v] = T.sqrt(A[J[0] % 4, v])
        """,
        n=2000,
        j=[7],
        a="(4, n)",
        expected="1",
    ),
    Case(
        "an index whose normal form overflows",
        """
        for i in range(100):
            C[i] = A[(c * 3 + i // 16777216) // 2 - c - c // 2 + 2]
        """,
        n=1,
        a="(100,)",
        c="(100,)",
        size=1 << 40,
        expected="1",
    ),
    Case(
        "an index of a store whose normal form overflows",
        """
        for i in range(100):
            C[(c * 3 + i // 16777216) // 2 - c - c // 2 + 2] = A[i]
        """,
        n=1,
        a="(100,)",
        c="(100,)",
        size=1 << 40,
        expected="np.arange(100) == 2",
    ),
    Case(
        "a load in the binding of an axis of an empty reduction",
        """
        for i in range(n):
            for r in range(m - 1073741824):
                with T.block("c"):
                    v = T.axis.spatial(n, J[1073741824] % n)
                    vr = T.axis.reduce(m - 1073741824, r)
                    with T.init():
                        C[v] = T.float32(3)
                    C[v] = C[v] + A[v]
        """,
        n=1000,
        j=[0, 0, 0, 0],
    ),
    Case(
        "a load in the binding of an axis, in bounds only under the predicate",
        """
        for i in range(n):
            with T.block("c"):
                v = T.axis.spatial(n, J[i * 1048576] % n)
                T.where(i * 1048576 < m)
                C[v] = A[v]
        """,
        n=20000,
        j=[0, 0, 0, 0],
        expected="np.arange(20000) == 0",
    ),
    Case(
        "loops whose number of iterations wraps around to 0",
        """
        for a in range(4294967296):
            for b in range(4294967296):
                for i in range(n):
                    with T.block("c"):
                        va = T.axis.spatial(4294967296, a)
                        vb = T.axis.spatial(4294967296, b)
                        v = T.axis.spatial(n, i)
                        C[v] = A[v] + T.Cast("float32", va * 0 + vb * 0)
        """,
        n=1000,
        j=[0],
    ),
    Case(
        "an init under loops whose number of iterations wraps around to 0",
        """
        for a in range(4294967296):
            for b in range(4294967296):
                for i in range(n):
                    for r in range(m):
                        with T.block("c"):
                            va = T.axis.spatial(4294967296, a)
                            vb = T.axis.spatial(4294967296, b)
                            v = T.axis.spatial(n, i)
                            vr = T.axis.reduce(m, r)
                            with T.init():
                                C[v] = T.float32(1)
                            C[v] = C[v] + A[v]
        """,
        n=1000,
        j=[0, 0, 0],
    ),
    Case(
        "a product that accumulates into scratch memory and becomes the output",
        """
        T.func_attr({"tir.noalias": True})
        S = T.alloc_buffer((n, n), "float32")
        for i in range(n):
            for j in range(n):
                for k in range(n):
                    with T.block("p"):
                        vi = T.axis.spatial(n, i)
                        vj = T.axis.spatial(n, j)
                        vk = T.axis.reduce(n, k)
                        S[vi, vj] = S[vi, vj] + A[vi, vk] * A[vk, vj]
        for i in range(n):
            for j in range(n):
                with T.block("e"):
                    vi = T.axis.spatial(n, i)
                    vj = T.axis.spatial(n, j)
                    C[vi, vj] = S[vi, vj] * T.float32(2)
        """,
        n=32,
        j=[0],
        a="(n, n)",
        c="(n, n)",
        expected="64",
    ),
    Case(
        "a product of a part of its rows that becomes the output",
        """
        T.func_attr({"tir.noalias": True})
        S = T.alloc_buffer((n, n), "float32")
        for i in range(n // 2):
            for j in range(n):
                for k in range(n):
                    with T.block("p"):
                        vi = T.axis.spatial(n // 2, i)
                        vj = T.axis.spatial(n, j)
                        vk = T.axis.reduce(n, k)
                        with T.init():
                            S[vi, vj] = T.float32(0)
                        S[vi, vj] = S[vi, vj] + A[vi, vk] * A[vk, vj]
        for i in range(n):
            for j in range(n):
                with T.block("e"):
                    vi = T.axis.spatial(n, i)
                    vj = T.axis.spatial(n, j)
                    C[vi, vj] = S[vi, vj] * T.float32(2)
        """,
        n=32,
        j=[0],
        a="(n, n)",
        c="(n, n)",
        expected="np.where(np.arange(32)[:, None] < 16, 64, 0)",
    ),
    Case(
        "an init that does not run in an empty reduction: an axis out of its range",
        """
        for i in range(n):
            for r in range(m):
                with T.block("c"):
                    v = T.axis.spatial(n, i)
                    w = T.axis.spatial(m, 0)
                    vr = T.axis.reduce(m, r)
                    with T.init():
                        C[v] = T.float32(0)
                    C[v] = C[v] + A[v] * T.Cast("float32", w)
        """,
        n=1000,
    ),
    Case(
        "a row of the result that memory selects",
        """
        for i in range(n):
            with T.block("c"):
                v = T.axis.spatial(n, i)
                C[J[0] % 4, v] = T.sqrt(A[v])
        """,
        n=2000,
        j=[7],
        c="(4, n)",
        expected="np.arange(4)[:, None] == 3",
    ),
    Case(
        "a block under triangular loops",
        """
        for i, j in T.grid(n, n):
            with T.block("z"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = T.float32(0)
        for i in range(n):
            for j in range(i + 1):
                with T.block("c"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    C[vi, vj] = A[vi, vj]
        """,
        n=4,
        j=[0],
        a="(n, n)",
        c="(n, n)",
        expected="np.tri(4)",
    ),
    Case(
        "branches that write transposed elements",
        """
        for i, k in T.grid(n, n):
            if i < k:
                C[i, k] = T.float32(1)
            else:
                C[k, i] = T.float32(1)
        """,
        n=30,
        j=[0],
        a="(n, n)",
        c="(n, n)",
        expected="1 - np.tri(n, k=-1)",
    ),
    Case(
        "an elementwise stage in front of one whose axis does not start at 0",
        """
        for i in range(n):
            with T.block("x"):
                v = T.axis.spatial(n, i)
                C[v] = T.sqrt(A[v])
        for i in range(1, n):
            with T.block("y"):
                v = T.axis.spatial((1, n), i)
                C[v] = A[v]
        """,
        n=8,
        j=[0],
        expected="1",
    ),
    Case(
        "a local buffer that is read at the greatest integer",
        """
        for i in T.parallel(n):
            x = T.alloc_buffer((1,), "int64", scope="local")
            x[0] = J[i] + 1
            while x[0] > 1:
                if x[0] % 2 == 0:
                    x[0] = x[0] // 2
                else:
                    x[0] = x[9223372036854775807] * 3 + 1
        """,
        n=4,
        j=[2, 2, 2, 2],
        error="BoundsError",
    ),
    Case(
        "an index that both sides of a choice share",
        """
        for i in range(n):
            C[i] = T.Select(J[0] > 0, A[c], A[i] + A[c])
        """,
        n=8,
        j=[0],
        size=1 << 39,
        error="BoundsError",
    ),
    Case(
        "an index that a statement checks in one side of a choice, and the next one does not",
        """
        C[0] = T.Select(J[0] > 0, A[c] + A[c] * T.float32(2), T.float32(0))
        C[1] = A[c] * T.float32(2)
        """,
        n=8,
        j=[0],
        size=1 << 39,
        error="BoundsError",
    ),
    Case(
        "an index that only the second operand of a conjunction checks",
        """
        if J[0] > 0 and A[c] + A[c] * T.float32(2) > T.float32(0):
            C[0] = T.float32(1)
        C[1] = A[c] * T.float32(2)
        """,
        n=8,
        j=[0],
        size=1 << 39,
        error="BoundsError",
    ),
    Case(
        "a stride of a product that a parameter determines",
        """
        for i, j, k in T.grid(n, n, 1):
            with T.block("b"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + A[vi, vk * c] * A[vk, vj]
        """,
        n=20,
        a="(n, n)",
        c="(n, n)",
        size=1 << 39,
        expected="1",
    ),
    Case(
        "a spatial axis inside of a reduction over columns",
        """
        for j in range(n):
            for r in range(3):
                for i in range(n):
                    with T.block("b"):
                        vj = T.axis.spatial(n, j)
                        vr = T.axis.reduce(3, r)
                        vi = T.axis.spatial(n, i)
                        with T.init():
                            C[vi, vj] = T.float32(0)
                        C[vi, vj] = C[vi, vj] + A[vi]
        """,
        n=7,
        c="(n, n)",
        expected="3",
    ),
    Case(
        "a product whose rows are in reverse order",
        """
        for i, j, k in T.grid(n, n, n):
            with T.block("b"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + A[n - 1 + vi * T.int64(-1), vk] * A[vj, vk]
        """,
        n=20,
        a="(n, n)",
        c="(n, n)",
        expected="20",
    ),
    Case(
        "an axis that is divided by the greatest integer",
        """
        for i in range(n):
            with T.block("b"):
                vi = T.axis.spatial(n, i)
                C[vi] = A[vi] + T.Cast("float32", vi // c)
        """,
        n=70,
        size=2**63 - 1,
        expected="1",
    ),
    Case(
        "a kernel that reads rows which the row loop around it has not written yet",
        """
        S = T.alloc_buffer((n, 8), "float32")
        E = T.alloc_buffer((n,), "float32")
        for i, j in T.grid(n, 8):
            with T.block("w"):
                vi, vj = T.axis.remap("SS", [i, j])
                S[vi, vj] = A[vi]
        for i in range(n):
            with T.block("k"):
                vi = T.axis.spatial(n, i)
                T.evaluate(
                    T.call_extern(
                        "int64",
                        "pliant_vec_maximum_f32",
                        T.address_of(C[vi, 0, 0]),
                        T.address_of(S[vi, 0]),
                        T.address_of(S[vi, 0]),
                        (n - vi) * 8,
                    )
                )
        for i, j in T.grid(n, 8):
            with T.block("r"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    E[vi] = T.float32(0)
                E[vi] = E[vi] + S[vi, vj]
        """,
        n=9,
        c="(n, n, 8)",
        expected="(np.arange(n * 8)[None] < 8 * (n - np.arange(n))[:, None]).reshape(n, n, 8)",
    ),
    Case(
        "a stage that writes a part of its scratch buffer and is computed inside its reader",
        """
        S = T.alloc_buffer((n,), "float32")
        for i in range(n // 2):
            with T.block("s"):
                v = T.axis.spatial(n // 2, i)
                S[v] = A[v]
        for i in range(n):
            with T.block("c"):
                v = T.axis.spatial(n, i)
                C[v] = S[v] + T.float32(1)
        """,
        n=9,
        expected="np.where(np.arange(n) < n // 2, 2, 1)",
    ),
]
