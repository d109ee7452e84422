"""``tir.Schedule``: every primitive preserves the results at every size, fails with a message that names the loop or block, and is
recorded in a trace that replays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pliant
from pliant import tir
from pliant.script import tir as T
from pliant.testing import interpret
from pliant.tir import Schedule, ScheduleError

SIZES = [0, 1, 3, 4, 16, 17, 33, 64]


@T.prim_func
def matmul(a: T.handle, b: T.handle, c: T.handle):
    n = T.int64()
    m = T.int64()
    k = T.int64()
    A = T.match_buffer(a, (n, k), "float32")
    B = T.match_buffer(b, (k, m), "float32")
    C = T.match_buffer(c, (n, m), "float32")
    for i, j, l in T.grid(n, m, k):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, l])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


@T.prim_func
def chain(a: T.handle, c: T.handle):
    n = T.int64()
    m = T.int64()
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
def blur(a: T.handle, c: T.handle):
    n = T.int64()
    A = T.match_buffer(a, (n + 2,), "float32")
    C = T.match_buffer(c, (n,), "float32")
    B = T.alloc_buffer((n + 2,), "float32")
    for i in range(n + 2):
        with T.block("square"):
            vi = T.axis.spatial(n + 2, i)
            B[vi] = A[vi] * A[vi]
    for i in range(n):
        with T.block("sum"):
            vi = T.axis.spatial(n, i)
            C[vi] = B[vi] + B[vi + 1] + B[vi + 2]


@T.prim_func
def total(a: T.handle, c: T.handle):
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
def copy_48(a: T.handle, b: T.handle):
    A = T.match_buffer(a, (48,), "float32")
    B = T.match_buffer(b, (48,), "float32")
    for i in range(48):
        with T.block("B"):
            vi = T.axis.spatial(48, i)
            B[vi] = A[vi]


@T.prim_func
def copy_4_4(a: T.handle, b: T.handle):
    A = T.match_buffer(a, (4, 4), "float32")
    B = T.match_buffer(b, (4, 4), "float32")
    for i, j in T.grid(4, 4):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj]


def run_matmul(run: Callable[..., None], size: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    a = rng.normal(size=(size, size + 1)).astype(np.float32)
    b = rng.normal(size=(size + 1, size + 2)).astype(np.float32)
    c = np.full((size, size + 2), 7, np.float32)
    run(a, b, c)
    return c, a @ b


def run_chain(run: Callable[..., None], size: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    a = rng.normal(size=(size, size + 3)).astype(np.float32)
    c = np.full_like(a, 7)
    run(a, c)
    return c, a * 2 + 1


def run_blur(run: Callable[..., None], size: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    a = rng.normal(size=size + 2).astype(np.float32)
    c = np.full(size, 7, np.float32)
    run(a, c)
    squares = a * a
    return c, squares[:-2] + squares[1:-1] + squares[2:]


def run_total(run: Callable[..., None], size: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    a = rng.normal(size=(size, 3 * size)).astype(np.float32)
    c = np.full(size, 7, np.float32)
    run(a, c)
    return c, a.sum(axis=1)


RUNNERS = {matmul: run_matmul, chain: run_chain, blur: run_blur, total: run_total}


def check(sch: Schedule, func: Any) -> None:
    """Compares the results of a scheduled function with NumPy at all sizes."""
    run = pliant.build(sch.mod)["main"]
    rng = np.random.default_rng(0)
    for size in SIZES:
        result, expected = RUNNERS[func](run, size, rng)
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4, err_msg=str(size))


def tiled(sch: Schedule) -> None:
    i, j, l = sch.get_loops(sch.get_block("C"))
    i0, i1 = sch.split(i, [None, 4])
    j0, j1 = sch.split(j, [None, 16])
    sch.reorder(i0, j0, l, i1, j1)
    sch.unroll(i1)
    sch.vectorize(j1)
    sch.parallel(i0)


def register_tiled(sch: Schedule) -> None:
    block = sch.get_block("C")
    i, j, l = sch.get_loops(block)
    copy = sch.cache_write(block, 0, "local")
    panel = sch.cache_read(block, 1, "global")
    i0, i1 = sch.split(i, [None, 4])
    j0, j1, j2 = sch.split(j, [None, 2, 8])
    sch.reorder(j0, i0, l, i1, j1, j2)
    sch.reverse_compute_at(copy, i0)
    sch.compute_at(panel, j0)
    init = sch.decompose_reduction(block, l)
    for loop in (j2, sch.get_loops(init)[-1]):
        sch.vectorize(loop)
    sch.unroll(i1)
    sch.parallel(j0)


def split_with_tails(sch: Schedule) -> None:
    i, j, _ = sch.get_loops(sch.get_block("C"))
    sch.parallel(sch.split(i, [None, 5], tail=True)[0])
    sch.split(j, [None, 8], tail=True)


def fused(sch: Schedule) -> None:
    i, j, _ = sch.get_loops(sch.get_block("C"))
    loop = sch.fuse(i, j)
    sch.parallel(sch.split(loop, [None, 10])[0])


def reduction_outside(sch: Schedule) -> None:
    i, j, l = sch.get_loops(sch.get_block("C"))
    sch.reorder(l, j, i)


def partial_sums(sch: Schedule) -> None:
    i, j, l = sch.get_loops(sch.get_block("C"))
    _, l1 = sch.split(l, [None, 4])
    sch.rfactor(l1, 2)


def inlined(sch: Schedule) -> None:
    sch.compute_inline(sch.get_block("double"))


def inlined_backwards(sch: Schedule) -> None:
    sch.reverse_compute_inline(sch.get_block("add"))


def computed_at_rows(sch: Schedule) -> None:
    i, _ = sch.get_loops(sch.get_block("add"))
    sch.compute_at(sch.get_block("double"), i)
    sch.set_scope(sch.get_block("double"), 0, "local")
    sch.parallel(i)


def computed_back_at_tiles(sch: Schedule) -> None:
    i, j = sch.get_loops(sch.get_block("double"))
    i0, i1 = sch.split(i, [None, 3])
    j0, j1 = sch.split(j, [None, 7])
    sch.reorder(i0, j0, i1, j1)
    sch.reverse_compute_at(sch.get_block("add"), j0)


def halo(sch: Schedule) -> None:
    (i,) = sch.get_loops(sch.get_block("sum"))
    outer, inner = sch.split(i, [None, 8])
    sch.compute_at(sch.get_block("square"), outer)
    sch.vectorize(inner)
    sch.parallel(outer)


def partial_totals(sch: Schedule) -> None:
    _, j = sch.get_loops(sch.get_block("C"))
    j0, j1 = sch.split(j, [None, 8])
    partial = sch.rfactor(j1, 0)
    sch.reorder(sch.get_loops(partial)[-1], sch.get_loops(partial)[0])


def outer_partial_totals(sch: Schedule) -> None:
    _, j = sch.get_loops(sch.get_block("C"))
    j0, _ = sch.split(j, [4, None])
    partial = sch.rfactor(j0, 1)
    sch.parallel(sch.get_loops(partial)[1])


SCHEDULES = [
    (matmul, tiled),
    (matmul, register_tiled),
    (matmul, split_with_tails),
    (matmul, fused),
    (matmul, reduction_outside),
    (matmul, partial_sums),
    (chain, inlined),
    (chain, inlined_backwards),
    (chain, computed_at_rows),
    (chain, computed_back_at_tiles),
    (blur, halo),
    (total, partial_totals),
    (total, outer_partial_totals),
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
    assert again.mod.script() == sch.mod.script()
    assert str(again.trace) == str(sch.trace)
    names: dict[str, Any] = {}
    exec(str(sch.trace), names)  # noqa: S102
    names["apply_trace"](printed)
    assert printed.mod.script() == sch.mod.script()


def test_the_interpreter_does_not_evaluate_axes_without_values() -> None:
    sch = Schedule(matmul)
    i, j, l = sch.get_loops(sch.get_block("C"))
    sch.reorder(l, j, i)
    sch.fuse(j, i)
    assert "// n" in sch.mod.script()
    c = np.zeros((0, 2), np.float32)
    interpret(sch.mod, np.zeros((0, 1), np.float32), np.zeros((1, 2), np.float32), c)
    assert c.shape == (0, 2)


def test_a_tile_is_kept_in_a_small_buffer_without_conditions() -> None:
    sch = Schedule(matmul)
    register_tiled(sch)
    passes = ["LowerInitBlock", "ConvertBlocksToLoops", "CompactBuffers", "PartitionLoops", "Simplify"]
    module = sch.mod
    for name in passes:
        module = getattr(tir.transform, name)()(module)
    lowered = module.script()
    assert 'T.alloc_buffer((4, 16), "float32", scope="local")' in lowered
    # The first nest is that of whole tiles.
    assert " if " not in lowered[: lowered.index("T.parallel", lowered.index("T.parallel") + 1)]


def test_default_passes_leave_scheduled_functions_unchanged() -> None:
    sch = Schedule(chain)
    sch.fuse(*sch.get_loops(sch.get_block("add")))
    for name in ["InlineInjective", "DefaultSchedule"]:
        assert getattr(tir.transform, name)()(sch.mod).script() == sch.mod.script()


def error(call: Callable[[], object]) -> str:
    with pytest.raises(ScheduleError) as raised:
        call()
    return str(raised.value)


def test_errors_name_the_loop_or_block() -> None:
    sch = Schedule(matmul)
    block = sch.get_block("C")
    i, j, l = sch.get_loops(block)
    before = sch.mod.script()
    expected = [
        (lambda: sch.get_block("D"), "get_block in 'main': there is no block 'D'; the blocks are 'C'"),
        (lambda: sch.get_block("C", "other"), "there is no such loop function; the functions are 'main'"),
        (lambda: sch.vectorize(l), "the loop 'l' runs over 'vk', an axis of the block 'C' that is not spatial"),
        (lambda: sch.parallel(l), "so the loop cannot be parallel"),
        (lambda: sch.vectorize(j), "the loop 'j' has a symbolic extent; split it with a constant factor"),
        (lambda: sch.unroll(j), "the loop 'j' has a symbolic extent"),
        (lambda: sch.bind(i, "threadIdx.x"), "CPUs have no such threads"),
        (lambda: sch.split(i, [None, None]), "only one factor of the loop 'i' can be None"),
        (lambda: sch.split(i, [None, 0]), "the factors of the loop 'i' must be positive, but one is 0"),
        (lambda: sch.split(i, [4, 4]), "the factors [4, 4] cover 16 iterations, but the loop 'i' may have more"),
        (lambda: sch.split(l, [None, 4], tail=True), "a tail loop would run the init of the block again"),
        (lambda: sch.fuse(i, l), "the body of the loop 'i' consists only of the loop 'l'"),
        (lambda: sch.reorder(i, i), "contains the loop 'i' twice"),
        (lambda: sch.cache_read(block, 5, "local"), "the buffer index 5 is out of range: the block 'C' reads 2 buffers (A, B)"),
        (lambda: sch.cache_read(block, 0, "shared"), "there is no memory scope 'shared' on a CPU"),
        (lambda: sch.set_scope(block, 0, "local"), "the scope of 'C' cannot be set, because the buffer is a parameter"),
        (lambda: sch.compute_inline(block), "the block 'C' is not elementwise"),
        (lambda: sch.rfactor(i, 0), "the loop 'i' runs over no reduction axis of the block 'C'"),
        (lambda: sch.unannotate(block, "key"), "the loop or block has no annotation 'key'"),
    ]
    for call, message in expected:
        assert message in error(call)
    assert sch.mod.script() == before
    sch.split(i, [None, 4])
    assert "the loop 'i' does not exist any more" in error(lambda: sch.parallel(i))


def test_moves_that_would_change_results_are_rejected() -> None:
    sch = Schedule(chain)
    first, second = sch.get_block("double"), sch.get_block("add")
    i, j = sch.get_loops(first)
    assert "no block reads its result 'C'" in error(lambda: sch.compute_at(second, i)) or "parameter" in error(
        lambda: sch.compute_at(second, i)
    )
    assert "is inside of the loop 'i' already" in error(lambda: sch.compute_at(first, i))
    product = Schedule(matmul)
    block = product.get_block("C")
    copy = product.cache_write(block, 0, "local")
    i, j, l = product.get_loops(block)
    assert "does not complete" in error(lambda: product.reverse_compute_at(copy, l))


def test_annotations() -> None:
    sch = Schedule(chain)
    block = sch.get_block("add")
    loop = sch.get_loops(block)[0]
    sch.annotate(loop, "grain", 4)
    sch.annotate(block, "note", "text")
    assert "grain" in sch.mod.script() and "note" in sch.mod.script()
    sch.unannotate(loop, "grain")
    assert "grain" not in sch.mod.script()
    check(sch, chain)


def test_copies_are_independent() -> None:
    sch = Schedule(chain)
    i, j = sch.get_loops(sch.get_block("add"))
    copy = sch.copy()
    copy.fuse(i, j)
    sch.parallel(i)
    assert "fused" in copy.mod.script() and "fused" not in sch.mod.script()


def test_samples_are_recorded_and_replayed() -> None:
    sch = Schedule(copy_48, seed=3)
    (i,) = sch.get_loops(sch.get_block("B"))
    factors = sch.sample_perfect_tile(i, 3, max_innermost_factor=8)
    assert np.prod(factors) == 48 and factors[-1] <= 8
    sch.split(i, factors)
    chosen = sch.sample_categorical([1, 2, 4], [0.5, 0.25, 0.25])
    assert chosen in (1, 2, 4)
    again = Schedule(copy_48, seed=9)
    sch.trace.apply_to_schedule(again)
    assert again.mod.script() == sch.mod.script()
    assert "decision=" in str(sch.trace)


def test_a_replay_uses_the_samples_that_the_provider_chooses() -> None:
    sch = Schedule(copy_48, seed=3)
    (i,) = sch.get_loops(sch.get_block("B"))
    factors = sch.sample_perfect_tile(i, 2, decision=[12, 4])
    _, inner = sch.split(i, factors)
    sch.annotate(inner, "choice", sch.sample_categorical([4, 8], [0.5, 0.5], decision=0))
    assert "sch.split(loop=l0, factors=[v0, v1])" in str(sch.trace)

    def other(instruction: tir.schedule.Instruction, recorded: Any) -> Any:
        return [6, 8] if instruction.name == "sample_perfect_tile" else 1

    again = Schedule(copy_48)
    sch.trace.apply_to_schedule(again, decision_provider=other)
    text = again.mod.script()
    assert "T.grid(6, 8)" in text or "range(6)" in text
    assert '"choice": 8' in text


def test_samples_that_are_impossible_are_rejected() -> None:
    sch = Schedule(copy_48)
    (i,) = sch.get_loops(sch.get_block("B"))
    steps: list[Callable[[], object]] = [
        lambda: sch.sample_categorical([1], [0.5, 0.5]),
        lambda: sch.sample_categorical([1, 2], [-0.5, 1.5]),
        lambda: sch.sample_categorical([1, 2], [0.0, 0.0]),
        lambda: sch.sample_categorical([1, 2], [float("nan"), 1.0]),
        lambda: sch.sample_categorical([1, 2], [0.5, 0.5], decision=2),
        lambda: sch.sample_perfect_tile(i, 0),
        lambda: sch.sample_perfect_tile(i, 2, max_innermost_factor=0),
        lambda: sch.sample_perfect_tile(i, 2, decision=[-12, -4]),
        lambda: sch.sample_perfect_tile(i, 2, decision=[7, 7]),
    ]
    for step in steps:
        with pytest.raises(ScheduleError):
            step()


def test_a_replay_on_another_nest_fails_with_the_step() -> None:
    sch = Schedule(chain)
    sch.get_loops(sch.get_block("add"))
    with pytest.raises(ScheduleError, match="get_block in 'main'"):
        sch.trace.apply_to_schedule(Schedule(copy_48))
    single = Schedule(copy_48)
    single.get_loops(single.get_block("B"))
    other = Schedule(copy_4_4)
    with pytest.raises(ScheduleError, match="get_loops: returned 2 results, but 1"):
        single.trace.apply_to_schedule(other)


def test_other_functions_of_the_module_stay() -> None:
    module = pliant.IRModule({"first": chain, "second": chain})
    sch = Schedule(module)
    sch.work_on("second")
    sch.compute_inline(sch.get_block("double"))
    assert sch.mod["first"].script() == module["first"].script()
    assert sch.mod["second"].script() != module["second"].script()
