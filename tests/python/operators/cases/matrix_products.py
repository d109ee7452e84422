"""Cases of matrix products."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .operator_case import *  # the vocabulary of cases


matmul = rounded(np.matmul)


def matmul_if_equal(a: Array, b: Array) -> Array | Refusal:
    return matmul(a, b) if a.shape[1] == b.shape[0] else Refusal("k", "the contracted dims differ")


PRODUCTS: list[Case] = [
    Case("matmul", (x("n", "k"), y("k", "m")), "R.matmul(x, y)", matmul, runs=20),
    Case("matmul_weight", (x("b", "s", 16), y(16, 24)), "R.matmul(x, y)", matmul, runs=20),
    Case(
        "matmul_batched", (x("b", "n", "k"), y("b", "k", "m")), "R.matmul(x, y)", matmul, sizes=(0, 1, 2, 3, 8), runs=20
    ),
    Case("matmul_heads", (x("b", 4, "s", 8), y("b", 4, 8, "s")), "R.matmul(x, y)", matmul, runs=20),
    Case(
        "matmul_broadcast", (x("b", 1, "n", "k"), y(3, "k", 5)), "R.matmul(x, y)", matmul, sizes=(0, 1, 2, 7), runs=20
    ),
    Case("matmul_vectors", (x("k"), y("k")), "R.matmul(x, y)", matmul),
    Case("matmul_vector_matrix", (x("k"), y("k", "m")), "R.matmul(x, y)", matmul),
    Case("matmul_matrix_vector", (x("n", "k"), y("k")), "R.matmul(x, y)", matmul),
    *(
        Case(
            f"matmul_{dtype}",
            (Param("x", dtype, ("n", "k")), Param("y", dtype, ("k", "m"))),
            "R.matmul(x, y)",
            np.matmul,
        )
        for dtype in ("float64", "int32")
    ),
    Case(
        "matmul_of_unequal_sizes",
        (x("n", "k"), y("j", "m")),
        "R.matmul(x, y)",
        matmul_if_equal,
        sizes=(0, 1, 2, 3),
        runs=30,
    ),
    Case(
        "linear",
        (x("n", "k"), y("m", "k"), f32("z", "m")),
        "R.linear(x, y, z)",
        rounded(lambda a, w, b: np.matmul(a, w.T) + b),
    ),
    Case("outer", (x("n"), y("m")), "R.outer(x, y)", np.outer),
]
LINEAR = [replace(case, cancels=True) for case in PRODUCTS]


CASES = LINEAR
