"""``tir.Schedule.blockize`` and ``tensorize``: they preserve the results at every size, replay, and fail with a message that names the
block and the difference from the intrinsic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scheduled_functions import matmul

import pliant
from pliant.script import tir as T
from pliant.testing import interpret
from pliant.tir import BlockRV, Schedule, ScheduleError, TensorIntrin

SIZES = [(0, 0, 0), (1, 1, 1), (4, 8, 0), (4, 8, 2), (5, 9, 3), (16, 32, 7), (17, 1, 12)]


@T.prim_func
def outer_product_4x8(a: T.handle, b: T.handle, c: T.handle):
    A = T.match_buffer(a, (4, 2), "float32")
    B = T.match_buffer(b, (2, 8), "float32")
    C = T.match_buffer(c, (4, 8), "float32")
    with T.block("root"):
        for i, j, k in T.grid(4, 8, 2):
            with T.block("update"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


@T.prim_func
def outer_product_4x8_vectorized(a: T.handle, b: T.handle, c: T.handle):
    A = T.match_buffer(a, (4, 2), "float32")
    B = T.match_buffer(b, (2, 8), "float32")
    C = T.match_buffer(c, (4, 8), "float32")
    with T.block("root"):
        for k, i in T.grid(2, 4):
            for j in T.vectorized(8):
                with T.block("update"):
                    vk, vi, vj = T.axis.remap("SSS", [k, i, j])
                    C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


TensorIntrin.register("outer_product_4x8", outer_product_4x8, outer_product_4x8_vectorized, override=True)


def check(sch: Schedule) -> None:
    """Compares the scheduled function, interpreted and compiled, with NumPy and the unscheduled function."""
    compiled, unscheduled = pliant.build(sch.mod)["main"], pliant.build(pliant.IRModule({"main": matmul}))["main"]
    rng = np.random.default_rng(0)
    for n, m, k in SIZES:
        a, b = rng.normal(size=(n, k)).astype("f4"), rng.normal(size=(k, m)).astype("f4")
        for run in (compiled, unscheduled, lambda *args: interpret(sch.mod, *args)):
            result = np.full((n, m), np.nan, "f4")
            run(a, b, result)
            np.testing.assert_allclose(result, a @ b, rtol=1e-4, atol=1e-4, err_msg=f"{n}, {m}, {k}")


def tiles(sch: Schedule, factors: tuple[int, int, int] = (4, 8, 2)) -> tuple[BlockRV, list[Any]]:
    """Splits the loops of the product into tiles. Returns its block and the loops, those of a tile last."""
    block = sch.get_block("C")
    pairs = [sch.split(loop, [None, factor]) for loop, factor in zip(sch.get_loops(block), factors, strict=True)]
    loops = [outer for outer, _ in pairs] + [inner for _, inner in pairs]
    sch.reorder(*loops)
    return block, loops


def predicated_tiles(sch: Schedule) -> None:
    _, loops = tiles(sch)
    outer = sch.blockize(loops[3])
    assert outer.name == "C_o"
    assert len(sch.get_loops(outer)) == 3
    sch.parallel(loops[0])


def parallel_rows(sch: Schedule) -> None:
    block = sch.get_block("C")
    i, j, l = sch.get_loops(block)
    outer = sch.blockize(j)
    assert sch.get_loops(outer) == [i] and sch.get_loops(block) == [j, l]
    assert sch.get_child_blocks(outer) == [sch.get_block("C_init"), block]
    sch.parallel(i)
    sch.reorder(l, j)


def whole_nest(sch: Schedule) -> None:
    sch.blockize(sch.get_loops(sch.get_block("C"))[0])


def without_unit_axes(sch: Schedule) -> None:
    _, j, _ = sch.get_loops(sch.get_block("C"))
    outer = sch.blockize(j, preserve_unit_iters=False)
    assert "vj_o" not in sch.mod.script() and sch.get_loops(outer)


def tiles_of_split_tiles(sch: Schedule) -> None:
    i, _, _ = sch.get_loops(sch.get_block("C"))
    i0, i1 = sch.split(i, [None, 4])
    sch.split(i0, [None, 2])
    sch.blockize(i1)
    assert "T.where(i_0_0 * 2 + i_0_1 < (n + 3) // 4)" in sch.mod.script()


def packed_for_a_tile(sch: Schedule) -> None:
    _, loops = tiles(sch)
    outer = sch.blockize(loops[3])
    sch.compute_at(sch.cache_read(outer, 1, "global"), loops[1])


def accumulated_locally(sch: Schedule) -> None:
    block, loops = tiles(sch)
    write = sch.cache_write(block, 0, "local")
    sch.reverse_compute_at(write, loops[1])
    sch.blockize(loops[3])


def init_moved_out(sch: Schedule) -> None:
    _, loops = tiles(sch)
    outer = sch.blockize(loops[3])
    init = sch.decompose_reduction(outer, loops[2])
    assert init.name == "C_o_init"


def tensorized(sch: Schedule) -> None:
    sch.pad_einsum(sch.get_block("C"), [4, 8, 2])
    _, loops = tiles(sch)
    outer = sch.blockize(loops[3])
    sch.decompose_reduction(outer, loops[2])
    sch.tensorize(outer, "outer_product_4x8")
    sch.parallel(loops[0])


def tensorized_loop(sch: Schedule) -> None:
    sch.pad_einsum(sch.get_block("C"), [4, 8, 2])
    _, loops = tiles(sch)
    sch.tensorize(loops[3], "outer_product_4x8")


SCHEDULES = [
    predicated_tiles,
    parallel_rows,
    whole_nest,
    without_unit_axes,
    tiles_of_split_tiles,
    packed_for_a_tile,
    accumulated_locally,
    init_moved_out,
    tensorized,
    tensorized_loop,
]


@pytest.mark.parametrize("steps", SCHEDULES)
def test_primitives_preserve_the_results(steps: Callable[[Schedule], None]) -> None:
    sch = Schedule(matmul)
    steps(sch)
    check(sch)


@pytest.mark.parametrize("steps", SCHEDULES)
def test_traces_replay(steps: Callable[[Schedule], None]) -> None:
    sch = Schedule(matmul)
    steps(sch)
    again, printed = Schedule(matmul), Schedule(matmul)
    sch.trace.apply_to_schedule(again)
    assert again.mod.script() == sch.mod.script()
    names: dict[str, Any] = {}
    exec(str(sch.trace), names)  # noqa: S102
    names["apply_trace"](printed)
    assert printed.mod.script() == sch.mod.script()


def test_a_tensorized_block_contains_the_implementation() -> None:
    sch = Schedule(matmul)
    tensorized(sch)
    text = sch.mod.script()
    assert "T.vectorized(8)" in text
    assert 'T.block("update")' in text
    assert 'T.block("C")' not in text


def error(call: Callable[[], object]) -> str:
    with pytest.raises(ScheduleError) as raised:
        call()
    return str(raised.value)


@T.prim_func
def two_blocks(a: T.handle, c: T.handle):
    n = T.int64()
    A = T.match_buffer(a, (n, 8), "float32")
    C = T.match_buffer(c, (n, 8), "float32")
    B = T.alloc_buffer((n, 8), "float32")
    for i in range(n):
        for j in range(8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj]
        for j in range(8):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vi, vj]


@T.prim_func
def strange_axes(a: T.handle, c: T.handle):
    A = T.match_buffer(a, (64,), "float32")
    C = T.match_buffer(c, (64,), "float32")
    for i, j in T.grid(8, 8):
        with T.block("strided"):
            vi = T.axis.spatial(64, i + j * 8)
            C[vi] = A[vi]
    for i, j in T.grid(8, 8):
        with T.block("product"):
            vi = T.axis.spatial(64, i * j)
            C[vi] = A[vi]


def test_blockize_errors_name_the_block_and_the_reason() -> None:
    sch = Schedule(two_blocks)
    i, j = sch.get_loops(sch.get_block("C"))
    assert "the loop 'i' must contain exactly one block, but it contains 2 ('B', 'C')" in error(lambda: sch.blockize(i))
    assert "the target must be a loop" in error(lambda: sch.blockize(sch.get_block("C")))
    sch.unroll(j)
    outer = sch.blockize(j)
    assert "the loop 'j' must contain exactly one block" not in error(lambda: sch.split(i, [None, None]))
    assert outer.name == "C_o"
    sch = Schedule(strange_axes)
    for name, binding in [("strided", "i + j * 8"), ("product", "i * j")]:
        loop = sch.get_loops(sch.get_block(name))[1]
        message = error(lambda loop=loop: sch.blockize(loop))
        assert f"the axis 'vi' of the block '{name}' is bound to '{binding}', which is not affine" in message


def test_blocks_of_a_tile_cannot_be_moved_out_of_it_by_loops() -> None:
    sch = Schedule(matmul)
    block = sch.get_block("C")
    i, j, l = sch.get_loops(block)
    sch.blockize(j)
    assert "cannot be reordered" in error(lambda: sch.reorder(j, i))
    assert "the body of the loop 'i' consists only of the loop 'j'" in error(lambda: sch.fuse(i, j))
    assert "'l' runs over 'vk'" in error(lambda: sch.parallel(l))


def description(loops: tuple[int, int, int], statement: str, dtype: str = "float32") -> Any:
    """Returns a loop function over a 4 x 2, a 2 x 8 and a 4 x 8 tile with a statement."""
    n, m, k = loops
    return pliant.script.from_source(f'''
@T.prim_func
def func(a: T.handle, b: T.handle, c: T.handle):
    A = T.match_buffer(a, (4, 2), "{dtype}")
    B = T.match_buffer(b, (2, 8), "{dtype}")
    C = T.match_buffer(c, (4, 8), "{dtype}")
    for i, j, k in T.grid({n}, {m}, {k}):
        with T.block("update"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            {statement}
''')


MISMATCHES = [
    ((4, 4, 2), "C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]", "float32", "extent: the expression differs: 8 on the left, 4"),
    ((4, 8, 2), "C[vi, vj] = C[vi, vj] + A[vi, vk] + B[vk, vj]", "float32", "the expression differs"),
    ((4, 8, 2), "C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, 0]", "float32", "the expression differs"),
    ((4, 8, 2), "C[vi, vj] = C[vi, vj] + A[vi, vk]", "float32", "it uses 3 buffers, but the description uses 2"),
    ((4, 8, 2), "C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]", "float64", "the dtype differs: float32 on the left, float64"),
]


@pytest.mark.parametrize(("loops", "statement", "dtype", "reason"), MISMATCHES)
def test_a_block_that_differs_from_the_description_is_rejected(
    loops: tuple[int, int, int], statement: str, dtype: str, reason: str
) -> None:
    func = description(loops, statement, dtype)
    TensorIntrin.register("other", func, func, override=True)
    sch = Schedule(matmul)
    sch.pad_einsum(sch.get_block("C"), [4, 8, 2])
    _, inner = tiles(sch)
    outer = sch.blockize(inner[3])
    before = sch.mod.script()
    message = error(lambda: sch.tensorize(outer, "other"))
    assert "tensorize in 'main': the block 'C_o' does not match the description of the intrinsic 'other'" in message
    assert reason in message
    assert sch.mod.script() == before


def test_incomplete_tiles_are_rejected() -> None:
    sch = Schedule(matmul)
    _, loops = tiles(sch)
    assert "the block 'C' in the tile has a predicate" in error(lambda: sch.tensorize(loops[3], "outer_product_4x8"))


def test_intrinsics_are_registered_once() -> None:
    with pytest.raises(ValueError, match="a tensor intrinsic named 'outer_product_4x8' is registered already"):
        TensorIntrin.register("outer_product_4x8", outer_product_4x8, outer_product_4x8)
    with pytest.raises(ValueError, match="no tensor intrinsic named 'missing' is registered"):
        TensorIntrin.get("missing")
    assert TensorIntrin.get("missing", allow_missing=True) is None
    with pytest.raises(ScheduleError, match=r"parameter 0 is float32 \[4, 2\] in its description, but float64 \[4, 2\]"):
        TensorIntrin.register("bad", outer_product_4x8, description((4, 8, 2), "C[vi, vj] = A[vi, vk]", "float64"))
    with pytest.raises(ScheduleError, match="the sizes of parameter 0 must be constant"):
        TensorIntrin.register("bad", matmul, matmul)
    with pytest.raises(ValueError, match="no tensor intrinsic named 'missing'"):
        Schedule(matmul).tensorize(Schedule(matmul).get_block("C"), "missing")


@T.prim_func
def batched(a: T.handle, c: T.handle):
    n = T.int64()
    A = T.match_buffer(a, (n, 3, 8), "float32")
    C = T.match_buffer(c, (3, n, 8), "float32")
    for i, j, k in T.grid(n, 3, 8):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSS", [i, j, k])
            C[vj, vi, vk] = A[vi, vj, vk] * T.float32(2)


@T.prim_func
def double_row(a: T.handle, c: T.handle):
    A = T.match_buffer(a, (8,), "float32")
    C = T.match_buffer(c, (8,), "float32")
    for i in range(8):
        with T.block("row"):
            vi = T.axis.spatial(8, i)
            C[vi] = A[vi] * T.float32(2)


@T.prim_func
def double_row_by_address(a: T.handle, c: T.handle):
    offset, stride = T.int64(), T.int64()
    A = T.match_buffer(a, (8,), "float32", strides=(stride,), elem_offset=offset)
    C = T.match_buffer(c, (8,), "float32")
    for i in T.vectorized(8):
        with T.block("row"):
            vi = T.axis.spatial(8, i)
            C[vi] = A[vi] * T.float32(2) + T.cast((stride - 1) * offset, "float32")


@pytest.mark.parametrize("implementation", [double_row, double_row_by_address])
def test_a_tile_may_have_fewer_dims_than_its_buffer(implementation: Any) -> None:
    TensorIntrin.register("double_row", double_row, implementation, override=True)
    sch = Schedule(batched)
    sch.tensorize(sch.get_loops(sch.get_block("C"))[2], "double_row")
    run = pliant.build(sch.mod)["main"]
    for n in (0, 1, 5):
        a = np.random.default_rng(0).normal(size=(n, 3, 8)).astype("f4")
        c = np.full((3, n, 8), np.nan, "f4")
        run(a, c)
        np.testing.assert_array_equal(c, a.transpose(1, 0, 2) * 2)
        interpreted = np.full((3, n, 8), np.nan, "f4")
        interpret(sch.mod, a, interpreted)
        np.testing.assert_array_equal(interpreted, c)


@T.prim_func
def double_row_extern(a: T.handle, c: T.handle):
    A = T.match_buffer(a, (8,), "float32")
    C = T.match_buffer(c, (8,), "float32")
    T.evaluate(T.call_extern("int32", "double_row", T.address_of(A[0]), T.address_of(C[0]), 8))


def test_an_implementation_may_pass_addresses_in_the_tile_to_a_linked_function() -> None:
    TensorIntrin.register("double_row", double_row, double_row_extern, override=True)
    sch = Schedule(batched)
    sch.tensorize(sch.get_loops(sch.get_block("C"))[2], "double_row")
    assert "T.address_of(A[vi_o, vj_o, vk_o * 8]), T.address_of(C[vj_o, vi_o, vk_o * 8]), 8)" in sch.mod.script()
