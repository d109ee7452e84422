"""``tir.Schedule``: relations of blocks, ``transform_layout``, ``transform_block_layout``, ``reindex`` and ``pad_einsum`` preserve the
results at every size, replay, and fail with a message that names the block."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scheduled_functions import matmul

import pliant
from pliant import tir
from pliant.script import tir as T
from pliant.testing import interpret
from pliant.tir import Schedule, ScheduleError

SIZES = [0, 1, 2, 5, 8, 17, 32]


@T.prim_func
def chain(a: T.handle, c: T.handle):
    n, m = T.int64(), T.int64()
    A = T.match_buffer(a, (n, m), "float32")
    C = T.match_buffer(c, (n, m), "float32")
    B = T.alloc_buffer((n, m), "float32")
    for i, j in T.grid(n, m):
        with T.block("double"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(n, m):
        with T.block("add"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + T.float32(1)


@T.prim_func
def convolution(a: T.handle, w: T.handle, c: T.handle):
    n = T.int64()
    A = T.match_buffer(a, (n + 2,), "float32")
    W = T.match_buffer(w, (3,), "float32")
    C = T.match_buffer(c, (n,), "float32")
    for i, r in T.grid(n, 3):
        with T.block("conv"):
            vi, vr = T.axis.remap("SR", [i, r])
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + A[vi + vr] * W[vr]


@T.prim_func
def rows(a: T.handle, c: T.handle):
    n = T.int64()
    A = T.match_buffer(a, (n, 12), "float32")
    C = T.match_buffer(c, (n,), "float32")
    for i, j in T.grid(n, 12):
        with T.block("sum"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + A[vi, vj]


def matmul_case(n: int, rng: np.random.Generator) -> tuple[list[np.ndarray], np.ndarray]:
    a, b = rng.normal(size=(n, n + 1)).astype("f4"), rng.normal(size=(n + 1, n + 2)).astype("f4")
    return [a, b], a @ b


def chain_case(n: int, rng: np.random.Generator) -> tuple[list[np.ndarray], np.ndarray]:
    a = rng.normal(size=(n, n + 3)).astype("f4")
    return [a], a * 2 + 1


def convolution_case(n: int, rng: np.random.Generator) -> tuple[list[np.ndarray], np.ndarray]:
    a, w = rng.normal(size=n + 2).astype("f4"), rng.normal(size=3).astype("f4")
    return [a, w], a[:-2] * w[0] + a[1:-1] * w[1] + a[2:] * w[2]


def rows_case(n: int, rng: np.random.Generator) -> tuple[list[np.ndarray], np.ndarray]:
    a = rng.normal(size=(n, 12)).astype("f4")
    return [a], a.sum(axis=1)


CASES: dict[Any, Callable[[int, np.random.Generator], tuple[list[np.ndarray], np.ndarray]]] = {
    matmul: matmul_case,
    chain: chain_case,
    convolution: convolution_case,
    rows: rows_case,
}


def check(sch: Schedule, func: Any) -> None:
    """Compares the scheduled function, interpreted and compiled, with the result of NumPy and of the unscheduled function."""
    compiled, unscheduled = pliant.build(sch.mod)["main"], pliant.build(pliant.IRModule({"main": func}))["main"]
    rng = np.random.default_rng(0)
    for size in SIZES:
        inputs, expected = CASES[func](size, rng)
        for run in (compiled, unscheduled, lambda *args: interpret(sch.mod, *args)):
            result = np.full(expected.shape, np.nan, "f4")
            run(*inputs, result)
            np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4, err_msg=f"size {size}")


def tiled_temporary(sch: Schedule) -> None:
    sch.transform_layout(sch.get_block("double"), ("write", 0), lambda i, j: (i // 4, j // 8, i % 4, j % 8), pad_value=0.0)


def transposed_temporary(sch: Schedule) -> None:
    sch.transform_layout(sch.get_block("add"), "B", lambda i, j: (j, i))


def fused_temporary(sch: Schedule) -> None:
    m = tir.Var("m", "int64")
    sch.transform_layout(sch.get_block("add"), ("read", 0), lambda i, j: (i * m + j,))


def packed_operand(sch: Schedule) -> None:
    copy = sch.cache_read(sch.get_block("C"), 1, "global")
    sch.transform_layout(copy, ("write", 0), lambda k, j: (j // 16, k, j % 16), pad_value=0)


def fused_axes(sch: Schedule) -> None:
    m = tir.Var("m", "int64")
    block = sch.get_block("C")
    sch.transform_block_layout(block, lambda i, j, k: (i * m + j, k))
    loop, _ = sch.get_loops(block)
    sch.parallel(sch.split(loop, [None, 8])[0])


def swapped_axes(sch: Schedule) -> None:
    sch.transform_block_layout(sch.get_block("C"), lambda i, j, k: (k, j, i))


def split_reduction(sch: Schedule) -> None:
    block = sch.get_block("sum")
    sch.transform_block_layout(block, lambda i, j: (i, j // 4, j % 4))
    assert len(sch.get_loops(block)) == 3


def im2col(sch: Schedule) -> None:
    block = sch.get_block("conv")
    assert sch.reindex(block, ("read", 0)).name == "A_reindex"
    sch.reindex(block, "C")


def padded(sch: Schedule) -> None:
    block = sch.get_block("C")
    sch.pad_einsum(block, [4, 8, 2])
    i, j, k = sch.get_loops(block)
    sch.split(i, [None, 4])
    j0, j1 = sch.split(j, [None, 8])
    assert "T.where" not in sch.mod.script()
    sch.vectorize(j1)
    sch.reorder(j0, k, j1)


def padded_rows(sch: Schedule) -> None:
    sch.pad_einsum(sch.get_block("sum"), [8, 5])


def padded_elementwise(sch: Schedule) -> None:
    sch.pad_einsum(sch.get_block("double"), [3, 16])


SCHEDULES = [
    (chain, tiled_temporary),
    (chain, transposed_temporary),
    (chain, fused_temporary),
    (matmul, packed_operand),
    (matmul, fused_axes),
    (matmul, swapped_axes),
    (rows, split_reduction),
    (convolution, im2col),
    (matmul, padded),
    (rows, padded_rows),
    (chain, padded_elementwise),
]


@pytest.mark.parametrize(("func", "steps"), SCHEDULES, ids=[steps.__name__ for _, steps in SCHEDULES])
def test_primitives_preserve_the_results(func: Any, steps: Callable[[Schedule], None]) -> None:
    sch = Schedule(func)
    steps(sch)
    check(sch, func)


@pytest.mark.parametrize(("func", "steps"), SCHEDULES, ids=[steps.__name__ for _, steps in SCHEDULES])
def test_traces_replay(func: Any, steps: Callable[[Schedule], None]) -> None:
    sch = Schedule(func)
    steps(sch)
    again, printed = Schedule(func), Schedule(func)
    sch.trace.apply_to_schedule(again)
    assert again.mod.script() == sch.mod.script() != pliant.IRModule({"main": func}).script()
    names: dict[str, Any] = {}
    exec(str(sch.trace), names)  # noqa: S102
    names["apply_trace"](printed)
    assert printed.mod.script() == sch.mod.script()


def error(call: Callable[[], object]) -> str:
    with pytest.raises(ScheduleError) as raised:
        call()
    return str(raised.value)


def test_relations_of_blocks() -> None:
    sch = Schedule(chain)
    first, second = sch.get_block("double"), sch.get_block("add")
    assert sch.get_producers(second) == [first] and sch.get_producers(first) == []
    assert sch.get_consumers(first) == [second] and sch.get_consumers(second) == []
    assert sch.get_child_blocks(sch.get_loops(second)[0]) == [second]
    assert sch.get_child_blocks(second) == []
    assert "blocks0" not in str(sch.trace) and "sch.get_producers(block=b1)" in str(sch.trace)


def test_the_root_block_contains_all_outermost_blocks() -> None:
    sch = Schedule(chain)
    root = sch.get_block("root")
    assert [block.name for block in sch.get_child_blocks(root)] == ["double", "add"]
    assert sch.get_loops(root) == []
    assert "there is no block 'root'; the blocks are 'double', 'add'" in error(lambda: sch.compute_inline(root))


def test_relations_do_not_include_earlier_readers_and_later_writers() -> None:
    sch = Schedule(matmul)
    block = sch.get_block("C")
    init = sch.decompose_reduction(block, sch.get_loops(block)[-1])
    copy = sch.cache_read(block, 0, "global")
    assert sch.get_producers(block) == [copy, init]
    assert sch.get_consumers(init) == [block]
    assert sch.get_consumers(block) == []


def test_a_removed_block_has_no_relations() -> None:
    sch = Schedule(chain)
    block = sch.get_block("double")
    sch.compute_inline(block)
    for relation in (sch.get_producers, sch.get_consumers, sch.get_child_blocks):
        assert "there is no block 'double'; the blocks are 'add'" in error(lambda relation=relation: relation(block))


def test_the_padding_has_the_pad_value() -> None:
    sch = Schedule(chain)
    sch.transform_layout(sch.get_block("double"), ("write", 0), lambda i, j: (i // 4, i % 4, j), pad_value=7)
    block = sch.get_block("B_padding")
    assert sch.get_consumers(block)[0].name == "double"
    assert "B[v0, v1, v2] = T.float32(7.0)" in sch.mod.script()


def test_a_layout_whose_tiles_divide_the_sizes_needs_no_pad_value() -> None:
    sch = Schedule(matmul)
    block = sch.get_block("C")
    sch.pad_einsum(block, [16, 1, 1])
    sch.transform_layout(block, "A_pad", lambda i, k: (i // 16, k, i % 16))
    check(sch, matmul)
    assert "A_pad_padding" not in sch.mod.script()


def test_layout_errors_name_the_block_and_the_reason() -> None:
    sch = Schedule(chain)
    block = sch.get_block("add")
    before = sch.mod.script()
    layout = sch.transform_layout
    expected = [
        (lambda: layout(block, "X", lambda i, j: (j, i)), "the block 'add' neither reads nor writes a buffer 'X'; its buffers are B, C"),
        (lambda: layout(block, ("read", 3), lambda i, j: (j, i)), "the block 'add' reads 1 buffers (B)"),
        (lambda: layout(block, "C", lambda i, j: (j, i)), "the layout of 'C' cannot change, because the buffer is a parameter"),
        (lambda: layout(block, "B", lambda i: i), "the index map takes 1 indices, but there are 2: B[dim 0], B[dim 1]"),
        (lambda: layout(block, "B", lambda i, j: (i * j,)), "the output 'i * j' of the index map is not affine"),
        (lambda: layout(block, "B", lambda i, j: (i, j * j)), "of the index map is not affine"),
        (lambda: layout(block, "B", lambda i, j: (i + 1, j)), "of the index map is not affine"),
        (lambda: layout(block, "B", lambda i, j: (i, j * 2)), "output 'j * 2' skips or repeats values"),
        (lambda: layout(block, "B", lambda i, j: (i + j,)), "output 'i + j' skips or repeats values"),
        (lambda: layout(block, "B", lambda i, j: (i, i)), "the outputs do not determine the index 'B[dim 0]'"),
        (lambda: layout(block, "B", lambda i, j: (i, j % 4)), "the outputs do not determine the index 'B[dim 1]'"),
        (lambda: layout(block, "B", lambda i, j: (i // 4, i % 4, j)), "has padding, because the size 'n' of the dim 0 may be no"),
        (lambda: layout(block, "B", lambda i, j: (i // 4, i % 4, j), pad_value="x"), "the pad_value must be a number"),
        (lambda: layout(block, "B", lambda i, j: (j, i), pad_value=lambda i, j: 0), "functions of indices are not supported"),
        (lambda: layout(block, "B", lambda i, j: (i * tir.Var("q", "int64") + j,)), "the function has no variable of this name"),
    ]
    for call, message in expected:
        assert message in error(call)
    assert sch.mod.script() == before
    with pytest.raises(TypeError, match="a buffer is selected by its name"):
        layout(block, ("both", 0), lambda i, j: (j, i))


def test_axis_separators_are_checked_and_have_no_effect() -> None:
    sch = Schedule(chain)
    block = sch.get_block("add")
    before = sch.mod.script()
    sch.set_axis_separator(block, "B", [1])
    assert sch.mod.script() == before and "axis_separators=[1]" in str(sch.trace)
    message = error(lambda: sch.set_axis_separator(block, "B", [1, 2]))
    assert "set_axis_separator in 'main': the separators of a buffer with 2 dims must be ascending positions from 1 to 1" in message


def test_block_layout_errors_name_the_block_and_the_reason() -> None:
    sch = Schedule(matmul)
    block = sch.get_block("C")
    layout = sch.transform_block_layout
    expected = [
        (lambda: layout(block, lambda i, j: (j, i)), "the index map takes 2 indices, but there are 3: vi, vj, vk"),
        (lambda: layout(block, lambda i, j, k: (i, j)), "the outputs do not determine the index 'vk'"),
        (lambda: layout(block, lambda i, j, k: (i // 4, i % 4, j, k)), "the extent 'n' of the axis 'vi' may be no multiple of its tile"),
        (
            lambda: layout(block, lambda i, j, k: (i, j * tir.Var("k", "int64") + k)),
            "the output 1 of the index map combines spatial and reduction axes of the block 'C' ('vk', 'vj')",
        ),
    ]
    for call, message in expected:
        assert message in error(call)
    i, _, _ = sch.get_loops(block)
    outer, _ = sch.split(i, [None, 4])
    assert "the block 'C' has a predicate" in error(lambda: layout(block, lambda i, j, k: (j, i, k)))
    sch = Schedule(matmul)
    block = sch.get_block("C")
    sch.parallel(sch.get_loops(block)[0])
    assert "the loop 'i' around the block 'C' is parallel" in error(
        lambda: sch.transform_block_layout(block, lambda i, j, k: (j, i, k))
    )


@T.prim_func
def not_einsums(a: T.handle, b: T.handle, c: T.handle, d: T.handle, x: T.handle):
    n = T.int64()
    A = T.match_buffer(a, (n, n), "float32")
    B = T.match_buffer(b, (n,), "float32")
    C = T.match_buffer(c, (n,), "float32")
    D = T.match_buffer(d, (n,), "float32")
    X = T.match_buffer(x, (n,), "float32")
    for i, j in T.grid(n, n):
        with T.block("factor_outside"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + A[vi, vj] * B[vi]
    for i, j in T.grid(n, n):
        with T.block("largest"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                D[vi] = T.float32(0)
            D[vi] = T.max(D[vi], A[vi, vj])
    for i in range(n):
        with T.block("reversed"):
            vi = T.axis.spatial(n, i)
            X[vi] = B[n - 1 - vi]
    for i in range(n):
        with T.block("quotient"):
            vi = T.axis.spatial(n, i)
            X[vi] = B[vi] / C[vi]
    for i in range(n):
        with T.block("update"):
            vi = T.axis.spatial(n, i)
            X[vi] = X[vi] + T.float32(1)


def test_pad_einsum_errors_name_the_block_and_the_reason() -> None:
    sch = Schedule(not_einsums)

    def pad(name: str, *padding: int) -> str:
        return error(lambda: sch.pad_einsum(sch.get_block(name), padding))

    assert "one number for each of the 2 axes of the block 'largest', but has 1" in pad("largest", 4)
    assert "the padding must be from 1 to" in pad("largest", 4, 0)
    assert "the block 'factor_outside' is no einsum" in pad("factor_outside", 1, 4)
    assert "must be a product whose operands all have 'vj' as an index" in pad("factor_outside", 1, 4)
    assert "must be a sum C[..] = C[..] + value with an init" in pad("largest", 1, 4)
    assert "each index of 'B' must be an axis or a constant, but one is 'n - 1 - vi'" in pad("reversed", 4)
    assert "but not 'B[vi] / C[vi]'" in pad("quotient", 4)
    assert "it reads the old contents of its result" in pad("update", 4)


def test_padding_does_not_turn_infinities_into_nan() -> None:
    sch = Schedule(matmul)
    sch.pad_einsum(sch.get_block("C"), [8, 8, 8])
    a, b = np.full((3, 5), np.inf, "f4"), np.ones((5, 2), "f4")
    c = np.zeros((3, 2), "f4")
    pliant.build(sch.mod)["main"](a, b, c)
    assert np.isposinf(c).all()


@T.prim_func
def not_reindexed(a: T.handle, b: T.handle, c: T.handle):
    n = T.int64()
    A = T.match_buffer(a, (n,), "float32")
    B = T.match_buffer(b, (n + 1,), "float32")
    C = T.match_buffer(c, (n,), "float32")
    for i in range(n):
        with T.block("several"):
            vi = T.axis.spatial(n, i)
            B[vi] = A[vi] + A[n - 1 - vi]
    for i in range(n):
        with T.block("shifted"):
            vi = T.axis.spatial(n, i)
            B[vi + 1] = A[vi]
    for i in range(n):
        with T.block("guarded"):
            vi = T.axis.spatial(n, i)
            C[vi] = T.if_then_else(vi > 0, A[vi - 1], T.float32(0))


def test_reindex_errors_name_the_block_and_the_reason() -> None:
    sch = Schedule(not_reindexed)

    def reindex(name: str, buffer: str) -> str:
        return error(lambda: sch.reindex(sch.get_block(name), buffer))

    assert "the block 'several' must access 'A' with one list of indices, but uses 2" in reindex("several", "A")
    assert "the block 'shifted' may write an element of 'B' several times" in reindex("shifted", "B")
    assert "the block 'guarded' accesses 'A' under a condition" in reindex("guarded", "A")
    assert "the block 'guarded' neither reads nor writes a buffer 'B'" in reindex("guarded", "B")
