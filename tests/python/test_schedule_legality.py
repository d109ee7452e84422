"""``tir.Schedule`` rejects every transformation that might change a result, with the reason, and accepts the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pliant
from pliant.script import tir as T
from pliant.tir import LoopRV, Schedule, ScheduleError


def loop(sch: Schedule, block: str, index: int = 0) -> LoopRV:
    """Returns a loop of a block, counted from the outside."""
    return sch.get_loops(sch.get_block(block))[index]


@T.prim_func
def two_inputs(a: T.handle, c: T.handle):
    n = T.int64()
    A = T.match_buffer(a, (n,), "float32")
    C = T.match_buffer(c, (n,), "float32")
    X = T.alloc_buffer((n,), "float32")
    D = T.alloc_buffer((n,), "float32")
    for i in range(n):
        with T.block("X"):
            vi = T.axis.spatial(n, i)
            X[vi] = A[vi] + T.float32(1)
    for i in range(n):
        with T.block("D"):
            vi = T.axis.spatial(n, i)
            D[vi] = A[vi] * T.float32(3)
    for i in range(n):
        with T.block("C"):
            vi = T.axis.spatial(n, i)
            C[vi] = X[vi] + D[vi]


@T.prim_func
def two_readers(a: T.handle, d: T.handle, c: T.handle):
    n = T.int64()
    A = T.match_buffer(a, (n,), "float32")
    D = T.match_buffer(d, (n,), "float32")
    C = T.match_buffer(c, (n,), "float32")
    X = T.alloc_buffer((n,), "float32")
    for i in range(n):
        with T.block("X"):
            vi = T.axis.spatial(n, i)
            X[vi] = A[vi]
    for i in range(n):
        with T.block("D"):
            vi = T.axis.spatial(n, i)
            D[vi] = A[vi] * T.float32(3)
    for i in range(n):
        with T.block("C"):
            vi = T.axis.spatial(n, i)
            C[vi] = X[vi] + D[vi]


@T.prim_func
def two_writers(a: T.handle, c: T.handle):
    n = T.int64()
    A = T.match_buffer(a, (n,), "float32")
    C = T.match_buffer(c, (n,), "float32")
    X = T.alloc_buffer((n,), "float32")
    for i in range(n):
        with T.block("X"):
            vi = T.axis.spatial(n, i)
            X[vi] = A[vi] + T.float32(1)
    for i in range(n):
        with T.block("X2"):
            vi = T.axis.spatial(n, i)
            X[vi] = X[vi] * T.float32(3)
    for i in range(n):
        with T.block("C"):
            vi = T.axis.spatial(n, i)
            C[vi] = X[vi]


@T.prim_func
def larger_temporary(a: T.handle, c: T.handle):
    n = T.int64()
    A = T.match_buffer(a, (n + 2,), "float32")
    C = T.match_buffer(c, (n,), "float32")
    X = T.alloc_buffer((n + 2,), "float32")
    for i in range(n + 2):
        with T.block("X"):
            vi = T.axis.spatial(n + 2, i)
            X[vi] = A[vi]
    for i in range(n):
        with T.block("C"):
            vi = T.axis.spatial(n, i)
            C[vi] = X[vi] * T.float32(2)


@T.prim_func
def stencil_of_sums(a: T.handle, c: T.handle):
    n = T.int64()
    k = T.int64()
    A = T.match_buffer(a, (n + 2, k), "float32")
    C = T.match_buffer(c, (n,), "float32")
    S = T.alloc_buffer((n + 2,), "float32")
    for i, j in T.grid(n + 2, k):
        with T.block("S"):
            vi, vk = T.axis.remap("SR", [i, j])
            with T.init():
                S[vi] = T.float32(0)
            S[vi] = S[vi] + A[vi, vk]
    for i in range(n):
        with T.block("C"):
            vi = T.axis.spatial(n, i)
            C[vi] = S[vi] + S[vi + 1] * T.float32(2) + S[vi + 2]


@T.prim_func
def row_sums(a: T.handle, c: T.handle):
    n = T.int64()
    k = T.int64()
    A = T.match_buffer(a, (n, k), "float32")
    C = T.match_buffer(c, (n,), "float32")
    for i, j in T.grid(n, k):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, j])
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + A[vi, vk]


@T.prim_func
def row_sums_from_three(a: T.handle, c: T.handle):
    n = T.int64()
    k = T.int64()
    A = T.match_buffer(a, (n, k), "float32")
    C = T.match_buffer(c, (n,), "float32")
    for i, j in T.grid(n, k):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, j])
            with T.init():
                C[vi] = T.float32(3)
            C[vi] = C[vi] + A[vi, vk]


@T.prim_func
def softened_rows(a: T.handle, c: T.handle):
    n = T.int64()
    k = T.int64()
    A = T.match_buffer(a, (n, k), "float32")
    C = T.match_buffer(c, (n, k), "float32")
    S = T.alloc_buffer((n,), "float32")
    for i in range(n):
        for j in range(k):
            with T.block("S"):
                vi, vk = T.axis.remap("SR", [i, j])
                with T.init():
                    S[vi] = T.float32(0)
                S[vi] = S[vi] + A[vi, vk]
        for j in range(k):
            with T.block("C"):
                vi, vk = T.axis.remap("SS", [i, j])
                C[vi, vk] = A[vi, vk] / S[vi]


@T.prim_func
def reversed_in_the_same_loop(a: T.handle, c: T.handle):
    n = T.int64()
    A = T.match_buffer(a, (n,), "float32")
    C = T.match_buffer(c, (n,), "float32")
    X = T.alloc_buffer((n,), "float32")
    for i in range(n):
        with T.block("X"):
            vi = T.axis.spatial(n, i)
            X[vi] = A[vi]
        with T.block("C"):
            vi = T.axis.spatial(n, i)
            C[vi] = C[vi] + X[n - 1 - vi]


@T.prim_func
def overwritten_temporary(a: T.handle, c: T.handle):
    n = T.int64()
    A = T.match_buffer(a, (n,), "float32")
    C = T.match_buffer(c, (n,), "float32")
    X = T.alloc_buffer((1,), "float32")
    Y = T.alloc_buffer((n,), "float32")
    for i in range(n):
        with T.block("X"):
            vi = T.axis.spatial(n, i)
            X[0] = A[vi]
        with T.block("Y"):
            vi = T.axis.spatial(n, i)
            Y[vi] = X[0]
    for i in range(n):
        with T.block("C"):
            vi = T.axis.spatial(n, i)
            C[vi] = Y[vi]


@T.prim_func
def overwritten_input(a: T.handle, c: T.handle):
    n = T.int64()
    A = T.match_buffer(a, (n,), "float32")
    C = T.match_buffer(c, (n,), "float32")
    X = T.alloc_buffer((n,), "float32")
    for i in range(n):
        with T.block("X"):
            vi = T.axis.spatial(n, i)
            X[vi] = A[vi]
    for i in range(n):
        A[i] = T.float32(7)
    for i in range(n):
        with T.block("C"):
            vi = T.axis.spatial(n, i)
            C[vi] = X[vi]


@T.prim_func
def in_place(a: T.handle, c: T.handle):
    n = T.int64()
    A = T.match_buffer(a, (n,), "float32")
    C = T.match_buffer(c, (n,), "float32")
    for i in range(n):
        with T.block("C"):
            vi = T.axis.spatial(n, i)
            C[vi] = C[vi] + A[vi]


@T.prim_func
def every_second_element(a: T.handle, c: T.handle):
    n = T.int64()
    A = T.match_buffer(a, (n,), "float32")
    C = T.match_buffer(c, (n * 2,), "float32")
    for i in range(n):
        with T.block("C"):
            vi = T.axis.spatial(n, i)
            C[vi * 2] = A[vi]


@T.prim_func
def inner_rows(a: T.handle, c: T.handle):
    n = T.int64()
    k = T.int64()
    A = T.match_buffer(a, (n, k), "float32")
    C = T.match_buffer(c, (n, k), "float32")
    for i, j in T.grid(n - 2, k - 2):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi + 2, vj + 1]


@T.prim_func
def large_elements(a: T.handle, c: T.handle):
    n = T.int64()
    A = T.match_buffer(a, (n,), "float32")
    C = T.match_buffer(c, (n,), "float32")
    for i in range(n):
        with T.block("C"):
            vi = T.axis.spatial(n, i)
            T.where(A[i] > T.float32(4))
            C[vi] = A[vi]


@T.prim_func
def smallest_element(a: T.handle, c: T.handle):
    n = T.int64()
    A = T.match_buffer(a, (n,), "float32")
    C = T.match_buffer(c, (2,), "float32")
    for i in range(n):
        with T.block("C"):
            vk = T.axis.reduce(n, i)
            with T.init():
                C[0] = T.float32(1000)
                C[1] = T.float32(-1)
            if A[vk] < C[0]:
                C[0] = A[vk]
                C[1] = T.cast(vk, "float32")


@T.prim_func
def rows_of_four(a: T.handle, c: T.handle):
    n = T.int64()
    A = T.match_buffer(a, (n,), "float32")
    C = T.match_buffer(c, (n,), "float32")
    X = T.alloc_buffer((n,), "float32")
    for i, j in T.grid((n + 3) // 4, 4):
        with T.block("X"):
            vi = T.axis.spatial(n, i * 4 + j)
            T.where(i * 4 + j < n)
            X[vi] = A[vi] * T.float32(3)
    for i in range(n):
        with T.block("C"):
            vi = T.axis.spatial(n, i)
            C[vi] = X[vi] + T.float32(2)


@T.prim_func
def shorter_temporary(a: T.handle, c: T.handle):
    n = T.int64()
    A = T.match_buffer(a, (n,), "float32")
    C = T.match_buffer(c, (n,), "float32")
    Y = T.alloc_buffer((n,), "float32")
    for i in range(n - 1):
        with T.block("Y"):
            vi = T.axis.spatial(n - 1, i)
            Y[vi] = A[vi + 1]
    for i in range(n):
        with T.block("C"):
            vi = T.axis.spatial(n, i)
            C[vi] = T.if_then_else(vi < n - 1, Y[vi], T.float32(7))


def tail_then_reverse(sch: Schedule) -> None:
    """Splits the producer into a full part and a tail, and moves the consumer into the full part."""
    sch.split(loop(sch, "X"), [None, 4], tail=True)
    sch.reverse_compute_at(sch.get_block("C"), loop(sch, "X"))


def recompute_then_decompose(sch: Schedule) -> None:
    """Recomputes sums for every consumer, then splits off their init."""
    sch.compute_at(sch.get_block("S"), loop(sch, "C"))
    sch.decompose_reduction(sch.get_block("S"), loop(sch, "S"))


def split_beyond_the_row(sch: Schedule) -> None:
    """Splits rows of 4 elements by 64, then moves the consumer into the split loop."""
    sch.split(loop(sch, "X", 1), [None, 64])
    sch.reverse_compute_at(sch.get_block("C"), loop(sch, "X"))


REJECTED: list[tuple[Any, Callable[[Schedule], object], str]] = [
    (two_inputs, lambda s: s.reverse_compute_at(s.get_block("C"), loop(s, "X")), "the block 'D' writes 'D'"),
    (two_inputs, lambda s: s.reverse_compute_inline(s.get_block("C")), "exactly one temporary"),
    (two_readers, lambda s: s.reverse_compute_inline(s.get_block("C")), "the block 'D' uses a buffer"),
    (two_writers, lambda s: s.reverse_compute_at(s.get_block("C"), loop(s, "X")), "the block 'X2' writes its operand 'X' outside of this loop"),
    (two_writers, tail_then_reverse, "writes its operand 'X' outside of this loop"),
    (larger_temporary, lambda s: s.reverse_compute_inline(s.get_block("C")), "must equal the dims of its operand 'X'"),
    (stencil_of_sums, recompute_then_decompose, "would run only once"),
    (row_sums, lambda s: s.fuse(*s.get_loops(s.get_block("C"))), "spatial and reduction axes"),
    (row_sums, lambda s: s.parallel(loop(s, "C", 1)), "that is not spatial"),
    (row_sums_from_three, lambda s: s.rfactor(loop(s, "C", 1), 0), "must be the identity"),
    (softened_rows, lambda s: s.rfactor(loop(s, "S", 1), 0), "contains no other statements"),
    (reversed_in_the_same_loop, lambda s: s.parallel(loop(s, "X")), "the same elements of 'X'"),
    (reversed_in_the_same_loop, lambda s: s.vectorize(s.split(loop(s, "X"), [None, 8])[1]), "the same elements of 'X'"),
    (reversed_in_the_same_loop, lambda s: s.reorder(*s.split(loop(s, "X"), [None, 8])[::-1]), "the same elements of 'X'"),
    (overwritten_temporary, lambda s: s.compute_inline(s.get_block("Y")), "the block 'X' writes 'X'"),
    (overwritten_temporary, lambda s: s.compute_at(s.get_block("Y"), loop(s, "C")), "the block 'X' writes 'X'"),
    (overwritten_input, lambda s: s.compute_inline(s.get_block("X")), "a store to 'A' outside of blocks"),
    (overwritten_input, lambda s: s.compute_at(s.get_block("X"), loop(s, "C")), "a store to 'A' outside of blocks"),
    (in_place, lambda s: s.cache_write(s.get_block("C"), 0, "local"), "reads the old contents of 'C'"),
    (every_second_element, lambda s: s.cache_write(s.get_block("C"), 0, "local"), "a different spatial axis as each index"),
    (smallest_element, lambda s: s.reorder(*s.split(loop(s, "C"), [None, 5])[::-1]), "may depend on the order"),
    (rows_of_four, split_beyond_the_row, "a condition other than the bounds"),
    (in_place, lambda s: s.split(loop(s, "C"), [None, 2**63 - 1]), "the product of the factors"),
]


@pytest.mark.parametrize(("func", "step", "reason"), REJECTED, ids=[f"{i}-{row[2]}" for i, row in enumerate(REJECTED)])
def test_steps_that_may_change_results_are_rejected(
    func: Any, step: Callable[[Schedule], object], reason: str
) -> None:
    sch = Schedule(func)
    with pytest.raises(ScheduleError) as failure:
        step(sch)
    assert reason in str(failure.value)


def test_a_rejected_step_leaves_the_module_unchanged() -> None:
    sch = Schedule(reversed_in_the_same_loop)
    before = sch.mod.script()
    with pytest.raises(ScheduleError):
        sch.parallel(loop(sch, "X"))
    assert sch.mod.script() == before


def parallel_stencil(sch: Schedule) -> None:
    """Recomputes overlapping sums in the iterations of a parallel loop."""
    target = loop(sch, "C")
    sch.compute_at(sch.get_block("S"), target)
    sch.parallel(target)


ACCEPTED: list[tuple[Any, Callable[[Schedule], object], Callable[[int], tuple[tuple[int, ...], tuple[int, ...]]]]] = [
    (larger_temporary, lambda s: s.reverse_compute_at(s.get_block("C"), loop(s, "X")), lambda n: ((n + 2,), (n,))),
    (stencil_of_sums, parallel_stencil, lambda n: ((n + 2, 9), (n,))),
    (row_sums, lambda s: s.rfactor(loop(s, "C", 1), 0), lambda n: ((n, 5), (n,))),
    (inner_rows, lambda s: s.fuse(*s.get_loops(s.get_block("C"))), lambda n: ((n, 5), (n, 5))),
    (inner_rows, lambda s: s.split(loop(s, "C", 1), [None, 4], tail=True), lambda n: ((5, n), (5, n))),
    (rows_of_four, lambda s: s.reverse_compute_at(s.get_block("C"), loop(s, "X")), lambda n: ((n,), (n,))),
    (large_elements, lambda s: s.split(loop(s, "C"), [None, 4]), lambda n: ((n,), (n,))),
    (shorter_temporary, lambda s: s.compute_at(s.get_block("Y"), loop(s, "C")), lambda n: ((n,), (n,))),
]


@pytest.mark.parametrize(("func", "step", "shapes"), ACCEPTED, ids=[str(i) for i in range(len(ACCEPTED))])
def test_accepted_steps_keep_results_at_every_size(
    func: Any, step: Callable[[Schedule], object], shapes: Callable[[int], tuple[tuple[int, ...], tuple[int, ...]]]
) -> None:
    sch = Schedule(func)
    step(sch)
    expected_run = pliant.build(Schedule(func).mod)["main"]
    actual_run = pliant.build(sch.mod)["main"]
    rng = np.random.default_rng(0)
    for n in [0, 1, 2, 3, 5, 8, 17, 300]:
        input_shape, output_shape = shapes(n)
        a = rng.integers(1, 9, input_shape).astype("float32")
        expected = np.zeros(output_shape, "float32")
        actual = np.zeros(output_shape, "float32")
        expected_run(a, expected)
        actual_run(a, actual)
        np.testing.assert_allclose(actual, expected, rtol=1e-5, err_msg=f"n = {n}")
