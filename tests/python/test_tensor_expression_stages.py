"""Tests stages of tensor expressions that no formula can express: ``te.extern``, ``te.scan``, reductions of several values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pliant
from pliant import relax, te, tir
from pliant.script import ir as I
from pliant.script import relax as R
from pliant.script import tir as T
from pliant.testing import interpret

Array = np.ndarray[Any, Any]


def module(make: Any, *params: tuple[tuple[Any, ...], str]) -> pliant.IRModule:
    """Returns a program of one stage on parameters of these shapes and types."""
    bb = relax.BlockBuilder()
    variables = [relax.Var(f"x{i}", relax.TensorStructInfo(*p)) for i, p in enumerate(params)]
    with bb.function("main", variables):
        bb.emit_func_output(bb.emit_te(make, *variables, primfunc_name_hint="stage"))
    return bb.get()


def values(result: Any) -> list[Array]:
    return [np.asarray(r) for r in result] if isinstance(result, list | tuple) else [np.asarray(result)]


def check(mod: pliant.IRModule, inputs: list[Array], want: list[Array]) -> None:
    """Checks that generated code and the interpreter return the expected results."""
    for got in (pliant.compile(mod)(*inputs), interpret(mod, *inputs)):
        for one, expected in zip(values(got), want, strict=True):
            np.testing.assert_allclose(one, expected, rtol=1e-5)


def make_argmax() -> Any:
    def combine(x: Any, y: Any) -> Any:
        first = tir.any(x[1] > y[1], tir.all(x[1] == y[1], x[0] < y[0]))
        return tir.Select(first, x[0], y[0]), tir.Select(first, x[1], y[1])

    return te.comm_reducer(combine, lambda i, v: (te.max_value(i), te.min_value(v)), name="argmax")


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_argmax_reducer(rows: int, rng: np.random.Generator) -> None:
    n = tir.Var("n", "int64")

    def stage(x: te.Tensor) -> list[te.Tensor]:
        k = te.reduce_axis((0, x.shape[1]), "k")
        index, value = te.compute((x.shape[0],), lambda i: make_argmax()((k.var, x[i, k]), axis=k), name="argmax")
        return [index, value]

    x = rng.integers(-4, 4, (rows, 6)).astype("float32")
    check(module(stage, ((n, 6), "float32")), [x], [x.argmax(1), x.max(1)])


def test_single_result_of_a_tuple_reducer(rng: np.random.Generator) -> None:
    def stage(x: te.Tensor) -> te.Tensor:
        k = te.reduce_axis((1, x.shape[0]), "k")
        return te.compute((), lambda: make_argmax()((k.var, x[k]), axis=k, where=x[k] < 0.5)[0], name="place")

    x = rng.random(9).astype("float32")
    low = np.where(x < 0.5, x, -np.inf)
    low[0] = -np.inf
    check(module(stage, ((9,), "float32")), [x], [low.argmax()])


def test_user_defined_reducer(rng: np.random.Generator) -> None:
    n = tir.Var("n", "int64")
    product = te.comm_reducer(lambda x, y: x * y, lambda t: tir.const(1, t), name="product")

    def stage(x: te.Tensor) -> list[te.Tensor]:
        k, k2 = (te.reduce_axis((0, x.shape[1]), "k") for _ in range(2))
        return [
            te.compute((x.shape[0],), lambda i: product(x[i, k], axis=k, where=x[i, k] > 0.5)),
            te.compute((x.shape[0],), lambda i: te.sum(x[i, k2], axis=k2, init=1.0)),
        ]

    x = rng.random((3, 4)).astype("float32")
    want = [np.where(x > 0.5, x, 1).prod(1), x.sum(1) + 1]
    check(module(stage, ((n, 4), "float32")), [x], want)


def test_several_computes_are_several_stages() -> None:
    x = te.placeholder((te.var("n"),), name="x")
    pair = te.compute(x.shape, lambda i: (x[i] + 1, x[i] * 2), name="pair")
    assert [t.name for t in pair] == ["pair.v0", "pair.v1"]


@pytest.mark.parametrize(("reducer", "message"), [
    (lambda k, x: te.comm_reducer(lambda a, b: a, lambda i, v: (0, 0))((k.var, x[k]), axis=k), "2"),
    (lambda k, x: te.comm_reducer(lambda a, b: (a[0],), lambda i, v: (0, 0))((k.var, x[k]), axis=k), "returns 1 values"),
    (lambda k, x: te.comm_reducer(lambda a, b: a, lambda i: (0,))((x[k],), axis=k)[3], "index 3 is out of range"),
])
def test_invalid_reducers(reducer: Any, message: str) -> None:
    x = te.placeholder((4,), name="x")
    k = te.reduce_axis((0, 4), "k")
    if message == "2":
        assert len(te.compute((), lambda: reducer(k, x))) == 2
        return
    with pytest.raises((ValueError, IndexError), match=message):
        te.compute((), lambda: reducer(k, x))


@pytest.mark.parametrize("steps", [0, 1, 2, 7])
def test_running_sums(steps: int, rng: np.random.Generator) -> None:
    n, m = tir.Var("n", "int64"), tir.Var("m", "int64")

    def stage(x: te.Tensor) -> te.Tensor:
        state = te.placeholder(x.shape, name="state")
        init = te.compute((1, x.shape[1]), lambda _, i: x[0, i], name="init")
        update = te.compute(x.shape, lambda t, i: state[t - 1, i] + x[t, i], name="update")
        made = te.scan(init, update, state, inputs=[x], name="sums")
        assert isinstance(made.op, te.ScanOp) and isinstance(made.op, te.ExternOp)
        return made

    x = rng.random((steps, 3)).astype("float32")
    check(module(stage, ((n, m), "float32")), [x], [np.cumsum(x, 0)])


def test_a_recurrent_network(rng: np.random.Generator) -> None:
    """Tests a recurrent network: a scan with an intermediate stage that reduces, and two states."""
    n = tir.Var("n", "int64")

    def stage(x: te.Tensor, w: te.Tensor) -> list[te.Tensor]:
        steps, hidden = x.shape
        h, count = te.placeholder((steps, hidden), name="h"), te.placeholder((steps,), "int32", name="count")
        k = te.reduce_axis((0, hidden), "k")
        mixed = te.compute((steps, hidden), lambda t, i: te.sum(h[t - 1, k] * w[k, i], axis=k), name="mixed")
        first = te.compute((1, hidden), lambda _, i: x[0, i])
        zero = te.compute((1,), lambda _: tir.const(0, "int32"))
        step = te.compute((steps, hidden), lambda t, i: te.tanh(mixed[t, i] + x[t, i]), name="step")
        counted = te.compute((steps,), lambda t: count[t - 1] + 1, name="counted")
        return te.scan([first, zero], [step, counted], [h, count])

    x, w = rng.standard_normal((5, 3)).astype("float32"), rng.standard_normal((3, 3)).astype("float32")
    want = [x[0]]
    for row in x[1:]:
        want.append(np.tanh(want[-1] @ w + row))
    check(module(stage, ((n, 3), "float32"), ((3, 3), "float32")), [x, w], [np.stack(want), np.arange(5)])


def test_invalid_scans() -> None:
    state, wide = te.placeholder((4, 3), name="s"), te.placeholder((4, 5), name="w")
    first = te.compute((1, 3), lambda t, i: tir.const(0.0))
    with pytest.raises(pliant.CompileError, match="dim 1 of state 's' is 3, dim 1 of its update is 5"):
        te.scan(first, wide, state)
    with pytest.raises(pliant.CompileError, match="the scan has 1 states, 2 initial values"):
        te.scan([first, first], [state], [state])


@pytest.mark.parametrize("size", [0, 1, 8])
def test_statements(size: int, rng: np.random.Generator) -> None:
    """Tests insertion sort as a stage of statements: no formula over output indices can express
    it.
    """
    n = tir.Var("n", "int64")

    def body(ins: list[tir.Buffer], outs: list[tir.Buffer]) -> tir.Stmt:
        ib = tir.ir_builder.create()
        x, y = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        place = ib.allocate("int64", (1,), name="place")
        with ib.for_range(0, x.buffer.shape[0], name="i") as i:
            value = ib.let("value", x[i])
            place[0] = i
            with ib.while_loop(tir.if_then_else(place[0] > 0, y[tir.max(place[0] - 1, 0)] > value, False)):
                y[place[0]] = y[place[0] - 1]
                place[0] = place[0] - 1
            y[place[0]] = value
        return ib.get()

    def stage(x: te.Tensor) -> te.Tensor:
        return te.extern(x.shape, [x], body, name="sorted")

    x = rng.random(size).astype("float32")
    check(module(stage, ((n,), "float32")), [x], [np.sort(x)])


def test_conditionals_and_flat_indices(rng: np.random.Generator) -> None:
    def body(ins: list[tir.Buffer], outs: list[tir.Buffer]) -> tir.Stmt:
        ib = tir.ir_builder.create()
        x, low, high = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0]), ib.buffer_ptr(outs[1])
        with ib.for_range(1, 13, name="i") as i:
            ib.assert_(i < 13, "inside")
            with ib.if_scope(x[i - 1] < 0.5):
                low[i - 1], high[i - 1] = x[i - 1], 0.0
            with ib.else_scope():
                low[i - 1], high[i - 1] = 0.0, x[i - 1]
        return ib.get()

    def stage(x: te.Tensor) -> list[te.Tensor]:
        return te.extern([x.shape, x.shape], [x], body, dtype=["float32", "float32"])

    x = rng.random((3, 4)).astype("float32")
    check(module(stage, ((3, 4), "float32")), [x], [np.where(x < 0.5, x, 0), np.where(x < 0.5, 0, x)])


def test_a_packed_function(rng: np.random.Generator) -> None:
    n = tir.Var("n", "int64")

    @pliant.register_func("te_stages.flip", override=True)
    def flip(x: Any, scale: float, out: Any) -> None:
        out.copyfrom(np.ascontiguousarray(x.numpy()[::-1]) * np.float32(scale))

    def stage(x: te.Tensor) -> te.Tensor:
        call = lambda ins, outs: tir.call_packed("te_stages.flip", ins[0], tir.const(2.0), outs[0])  # noqa: E731
        return te.extern(x.shape, [x], call, name="flipped", dtype="float32")

    mod = module(stage, ((n,), "float32"))
    for size in (1, 5):
        x = rng.random(size).astype("float32")
        np.testing.assert_allclose(pliant.compile(mod)(x).numpy(), 2 * x[::-1], rtol=1e-6)


@T.prim_func
def row_sums(a: T.handle, b: T.handle) -> None:
    n, m = T.int64(), T.int64()
    A = T.match_buffer(a, (n, m), "float32")
    B = T.match_buffer(b, (n,), "float32")
    for i, k in T.grid(n, m):
        with T.block("sum"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi, vk]


def test_a_loop_function_is_a_stage(rng: np.random.Generator) -> None:
    n = tir.Var("n", "int64")

    def stage(x: te.Tensor) -> te.Tensor:
        doubled = te.compute(x.shape, lambda i, j: x[i, j] * 2.0, name="doubled")
        sums = te.extern_primfunc([doubled], row_sums)
        return te.compute(sums.shape, lambda i: sums[i] + 1.0, name="out")

    mod = module(stage, ((n, 3), "float32"))
    for rows in (0, 1, 5):
        x = rng.random((rows, 3)).astype("float32")
        check(mod, [x], [2 * x.sum(1) + 1])
    with pytest.raises(TypeError, match="buffer 'A' of loop function 'row_sums' must have type float32 and 2 dims, but has type int32 and 1 dims"):
        te.extern_primfunc([te.placeholder((4,), "int32")], row_sums)


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda x: te.extern((4,), [x], lambda ins, outs: None), TypeError, "not a statement or a call"),
    (lambda x: te.extern((4,), [], lambda ins, outs: None), ValueError, "pass dtype"),
    (lambda x: te.extern([(4,), (4,)], [x], lambda i, o: None, dtype=["int32"]), ValueError, "that of shapes, 2, got 1"),
    (lambda x: tir.ir_builder.create().else_scope().__enter__(), ValueError, "must follow an if_scope"),
])
def test_invalid_externs(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call(te.placeholder((4,), name="x"))


@pytest.mark.parametrize("machine", ["bytecode", "compiled", "interpreter"])
def test_scans_read_only_computed_steps(machine: str) -> None:
    def make(place: Any) -> Any:
        def stage(x: Any) -> Any:
            (n,) = x.shape
            state = te.placeholder((n,), "float32")
            first = te.compute((1,), lambda i: tir.Cast("float32", x[i]))
            update = te.compute((n,), lambda t: place(state, x, t, n))
            return te.scan(first, update, state, inputs=[x])

        return module(stage, ((tir.SizeVar("n", "int64"),), "int64"))

    def make_between(last: Any) -> Any:
        def stage(x: Any) -> Any:
            (n,) = x.shape
            state = te.placeholder((n,), "float32")
            first = te.compute((1,), lambda i: tir.Cast("float32", x[i]))
            twice = te.compute((n,), lambda t: state[t - 1] * 2)
            return te.scan(first, te.compute((n,), lambda t: last(twice, state, t)), state, inputs=[x])

        return module(stage, ((tir.SizeVar("n", "int64"),), "int64"))

    def run(mod: Any, x: Any) -> Any:
        out = interpret(mod, x) if machine == "interpreter" else pliant.compile(mod, exec_mode=machine)(x)
        return out.numpy().tolist()

    chosen = make(lambda s, x, t, n: s[x[t]] + 1)
    assert run(chosen, np.array([3, 0, 1, 0, 2])) == [3, 4, 5, 4, 6]
    for late in ([0, 1, 0], [0, 2, 0]):
        with pytest.raises(pliant.PliantError, match="a state at its own step or a later one"):
            run(chosen, np.array(late))
    with pytest.raises(pliant.PliantError, match="a state at its own step or a later one"):
        run(make(lambda s, x, t, n: s[n - 1 - t] + 1), np.zeros(4, "int64"))
    # A read that a condition prevents is not an error.
    guarded = make(lambda s, x, t, n: tir.if_then_else(x[t] < t, s[x[t]], tir.const(7, "float32")))
    assert run(guarded, np.array([2, 0, 5, 1])) == [2, 2, 7, 2]
    with pytest.raises(pliant.PliantError, match="a state at its own step or a later one"):
        between = make_between(lambda twice, s, t: twice[t - 1] + s[t - 1])
        run(between, np.zeros(4, "int64"))
    assert run(make_between(lambda twice, s, t: twice[t] + s[t - 1]), np.array([1, 0, 0])) == [1, 3, 9]
    k = te.reduce_axis((0, 2), "k")
    summed = make(lambda s, x, t, n: te.sum(s[t - 1 - k * x[t]], axis=k))
    assert run(summed, np.array([1, 0, 1, 1])) == [1, 2, 3, 5]
    with pytest.raises(pliant.PliantError, match="a state at its own step or a later one"):
        run(summed, np.array([1, -1, 0, 0]))


def test_sums_of_bools_are_rejected() -> None:
    x = te.placeholder((4, 5), "bool", "x")
    k = te.reduce_axis((0, 5), "k")
    with pytest.raises(TypeError, match="convert them"):
        te.compute((4,), lambda i: te.sum(x[i, k], axis=k))
    count = module(lambda x: te.compute((4,), lambda i: te.sum(x[i, k].astype("int64"), axis=k)), ((4, 5), "bool"))
    np.testing.assert_array_equal(pliant.compile(count)(np.ones((4, 5), "bool")).numpy(), [5] * 4)


@pliant.register_func("tests.te_stages.product", override=True)
def product(a: Any, b: Any, out: Any) -> None:
    np.from_dlpack(out)[...] = np.from_dlpack(a) @ np.from_dlpack(b)


def packed_product(a: te.Tensor, b: te.Tensor, name: str = "C") -> te.Tensor:
    shape = (a.shape[0], b.shape[1])
    return te.extern(shape, [a, b], lambda i, o: tir.call_packed("tests.te_stages.product", *i, o[0]), name=name, dtype=a.dtype)


@pytest.mark.parametrize("mode", ["bytecode", "compiled"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_packed_functions_between_other_stages(mode: str, dtype: str) -> None:
    def chain(x: te.Tensor, y: te.Tensor) -> te.Tensor:
        twice = te.compute(x.shape, lambda i, j: x[i, j] * 2)
        first = packed_product(twice, y, "first")
        second = packed_product(first, y, "second")
        return te.compute(second.shape, lambda i, j: second[i, j] + first[i, j])

    n = tir.Var("n", "int64")
    stages = module(chain, ((n, 4), dtype), ((4, 4), dtype))
    run = pliant.compile(stages, exec_mode=mode)
    rng = np.random.default_rng(0)
    y = rng.standard_normal((4, 4)).astype(dtype)
    for rows in (3, 0, 1, 500):
        x = rng.standard_normal((rows, 4)).astype(dtype)
        first = 2 * x @ y
        np.testing.assert_allclose(run(x, y).numpy(), first @ y + first, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(np.asarray(interpret(stages, x, y)), first @ y + first, rtol=1e-4, atol=1e-4)


def test_tensors_kept_by_packed_functions_stay_valid() -> None:
    kept = []

    def keep(a: Any) -> None:
        kept.append(np.from_dlpack(a))

    pliant.register_func("tests.te_stages.keep", keep, override=True)

    @I.ir_module
    class Module:
        @T.prim_func(private=True)
        def stage(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):
            own = T.alloc_buffer((2, 2), "float32")
            for i, j in T.grid(2, 2):
                own[i, j] = x[i * 2 + j] * T.float32(3)
            T.call_packed("tests.te_stages.keep", own)
            for i in range(4):
                y[i] = own[i // 2, i % 2]

        @R.function
        def main(x: R.Tensor((4,), "float32")):
            return R.call_tir(Module.stage, (x,), out_sinfo=R.Tensor((4,), "float32"))

    vm = relax.VirtualMachine(relax.build(Module), pliant.cpu())
    for k in range(3):
        np.testing.assert_array_equal(vm["main"](np.full(4, k, "float32")).numpy(), np.full(4, 3 * k))
    assert [a.tolist() for a in kept] == [[[3.0 * k] * 2] * 2 for k in range(3)]


def test_buffer_passed_twice_is_one_tensor() -> None:
    def write(a: Any, b: Any) -> None:
        np.from_dlpack(a)[0] = 7
        np.from_dlpack(b)[1] = np.from_dlpack(b)[0] + 1

    pliant.register_func("tests.te_stages.write", write, override=True)

    @I.ir_module
    class Module:
        @T.prim_func(private=True)
        def stage(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):
            own = T.alloc_buffer((4,), "float32")
            for i in range(4):
                own[i] = x[i]
            T.call_packed("tests.te_stages.write", own, own)
            for i in range(4):
                y[i] = own[i]

        @R.function
        def main(x: R.Tensor((4,), "float32")):
            return R.call_tir(Module.stage, (x,), out_sinfo=R.Tensor((4,), "float32"))

    x = np.arange(4, dtype="float32")
    for run in (pliant.compile(Module), lambda x: interpret(Module, x)):
        np.testing.assert_array_equal(np.asarray(run(x)), [7, 8, 2, 3])


def test_thread_shared_buffers_are_not_passed() -> None:
    @I.ir_module
    class Module:
        @T.prim_func(private=True)
        def stage(x: T.Buffer((64,), "float32"), y: T.Buffer((64,), "float32")):
            own = T.alloc_buffer((64,), "float32")
            for i in range(64):
                own[i] = x[i]
            for i in T.parallel(64):
                T.call_packed("tests.te_stages.keep", own)
            for i in range(64):
                y[i] = own[i]

        @R.function
        def main(x: R.Tensor((64,), "float32")):
            return R.call_tir(Module.stage, (x,), out_sinfo=R.Tensor((64,), "float32"))

    with pytest.raises(pliant.PliantError, match="parallel loop, whose threads share it"):
        pliant.compile(Module)(np.zeros(64, "float32"))
