"""Tests corners of the script language that TVM programs use: scalars as sizes, callable objects, interrupts, the interpreter."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pliant
from pliant import relax
from pliant.script import from_source, relax as R
from pliant.testing import interpret

Register = Callable[[str, Callable[..., Any]], None]


def machine(text: str) -> Any:
    return relax.VirtualMachine(relax.build(from_source(text)), pliant.cpu())


COUNTED = """
@I.ir_module
class Module:
    @R.function
    def down(x: R.Tensor(("n",), "float32"), t: R.Prim("int64")) -> R.Tensor(("n",), "float32"):
        n = T.int64()
        cls = Module
        if t <= 0:
            return x
        return cls.down(R.add(x, x), t - 1)

    @R.function
    def zeros(t: R.Prim("int64")):
        return R.zeros((t + 1, t * 2), "float32")

    @R.function
    def part(x: R.Tensor(("n",), "float32"), t: R.Prim("int64")):
        return R.strided_slice(x, axes=[0], begin=[t], end=[t + 2])

    @R.function
    def value(t: R.Prim("int64"), u: R.Prim("int64")) -> R.Prim("int64"):
        return R.prim_value(t * 3 - u)

    @R.function
    def negative(t: R.Prim("int64")) -> R.Tensor((), "int64"):
        if t < 0:
            r = R.const(1, "int64")
        else:
            r = R.const(2, "int64")
        return r
"""


def test_scalar_parameters_as_sizes(exec_mode: str) -> None:
    vm = machine(COUNTED)
    x = np.arange(5, dtype="float32")
    assert np.array_equal(vm["down"](x, 3).numpy(), 8 * x)
    assert vm["zeros"](3).shape == (4, 6)
    assert vm["part"](x, 1).numpy().tolist() == [1, 2]
    assert vm["value"](5, 7) == 8
    assert [int(vm["negative"](t).numpy()) for t in (-3, 0, 3)] == [1, 2, 2]


def test_callable_objects_as_packed_functions(exec_mode: str) -> None:
    class Twice:
        def __call__(self, x: Any) -> Any:
            return pliant.nd.array(2 * x.numpy())

    vm = machine("""
@R.function(pure=False)
def main(f: R.Callable((R.Tensor(("n",), "float32"),), R.Tensor(("n",), "float32")), x: R.Tensor(("m",), "float32")):
    return f(x)
""")
    assert vm["main"](Twice(), np.ones(3, "float32")).numpy().tolist() == [2, 2, 2]


def test_the_interpreter_calls_registered_functions(packed: Register) -> None:
    packed("test.state", lambda: {"n": 0})
    packed("test.count", lambda state: state.update(n=state["n"] + 1) or np.int64(state["n"]))

    def fails() -> None:
        raise KeyError("what went wrong")

    packed("test.fails", fails)
    mod = from_source("""
@I.ir_module
class Module:
    @R.function(pure=False)
    def main() -> R.Tensor((), "int64"):
        s = R.call_packed("test.state", sinfo_args=R.Object)
        R.call_packed("test.count", s, sinfo_args=R.Tensor((), "int64"))
        return R.call_packed("test.count", s, sinfo_args=R.Tensor((), "int64"))

    @R.function(pure=False)
    def fails() -> R.Object:
        return R.call_packed("test.fails", sinfo_args=R.Object)
""")
    assert interpret(mod).numpy() == 2
    with pytest.raises(pliant.VMError, match="packed function 'test.fails' failed: .*what went wrong"):
        interpret(mod, func="fails")


ENDLESS = """
@I.ir_module
class Module:
    @R.function
    def main() -> R.Tensor((), "int64"):
        i = R.const(0, "int64")
        while R.less(i, R.const(-1, "int64")) or R.less(R.const(-1, "int64"), i):
            i = R.add(i, R.const(0, "int64"))
        return i
"""
LONG = """
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def long(out: T.Buffer((1,), "int64")):
        out[0] = T.int64(0)
        for i in range(1000000000000):
            out[0] = out[0] * T.int64(3) + i

    @R.function
    def main() -> R.Tensor((1,), "int64"):
        cls = Module
        return R.call_tir(cls.long, (), out_sinfo=R.Tensor((1,), "int64"))
"""


@pytest.mark.skipif(os.name != "posix", reason="signals are sent with kill")
@pytest.mark.parametrize(
    "work",
    [lambda: interpret(from_source(ENDLESS)), lambda: relax.build(from_source(LONG))],
    ids=["interpreter", "folding"],
)
def test_ctrl_c_ends_infinite_programs(work: Callable[[], Any]) -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))
    try:
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            work()
    finally:
        timer.cancel()
        signal.signal(signal.SIGINT, before)


def test_functions_added_to_a_builder_serve_its_module() -> None:
    x = relax.Var("x", R.Tensor((4,), "float32"))
    bb = relax.BlockBuilder()
    gv = bb.add_func(relax.Function([x], relax.SeqExpr([], x), R.Tensor((4,), "float32")), "helper")
    with bb.function("main", [y := relax.Var("y", R.Tensor((4,), "float32"))]):
        bb.emit_func_output(bb.emit(relax.Call(gv, [y])))
    assert bb.get()["helper"].private and not bb.get()["main"].private
    inlined = relax.transform.InlinePrivateFunctions()(bb.get())
    assert "helper" not in inlined


def test_time_evaluator_with_saved_inputs() -> None:
    vm = machine('@R.function\ndef main(x: R.Tensor(("n",), "float32")):\n    return R.add(x, x)\n')
    vm.set_input("main", np.ones(3, "float32"))
    assert vm.time_evaluator("invoke_stateful", pliant.cpu(), number=2)("main").mean > 0


def test_pass_results_round_trip() -> None:
    mod = from_source('@R.function\ndef main(x: R.Tensor(("n", 4), "float32")):\n    return R.split(x, 2, axis=1)\n')
    mod = relax.transform.LegalizeOps()(pliant.IRModule({"main": mod}) if isinstance(mod, relax.Function) else mod)
    pliant.ir.assert_structural_equal(mod, from_source(mod.script(show_meta=True)))


def test_matmul_passes_preserve_values() -> None:
    rng = np.random.default_rng(5)
    mod = from_source("""
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 6), "float32"), q: R.Tensor((6, 4), "float32"), k: R.Tensor((4, 6), "float32"), v: R.Tensor((6,), "float32"), i: R.Tensor((3,), "int64")):
        n = T.int64()
        with R.dataflow():
            a = R.matmul(x, q)
            b = R.matmul(x, R.permute_dims(k))
            c = R.matmul(x, R.take(q, i, axis=1))
            d = R.matmul(x, R.add(R.matmul(q, k), R.matmul(q, k)))
            e = R.matmul(R.matmul(q, k), v)
            f = R.concat((R.permute_dims(a), R.permute_dims(b)), axis=0)
            out = (a, b, c, d, e, f)
            R.output(out)
        return out
""")
    args = [rng.standard_normal(s).astype("float32") for s in ((5, 6), (6, 4), (4, 6), (6,))] + [np.array([2, 0, 2])]
    want = pliant.compile(mod)(*args)
    names = ["AdjustMatmulOrder", "CombineParallelMatmul", "ExpandMatmulOfSum", "FuseTransposeMatmul"]
    names += ["ReorderPermuteDimsAfterConcat", "ReorderTakeAfterMatmul"]
    for name in names:
        made = getattr(relax.transform, name)()(mod)
        assert not pliant.ir.structural_equal(made, mod), name
        for a, b in zip(pliant.compile(made)(*args), want, strict=True):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-4, atol=1e-4, err_msg=name)


@pytest.mark.parametrize("mode", ["bytecode", "compiled"])
def test_call_depth_setting(mode: str) -> None:
    module = from_source("""
@I.ir_module
class Module:
    @R.function
    def main(n: R.Prim("int64"), x: R.Tensor((), "int64")) -> R.Tensor((), "int64"):
        cls = Module
        if n > 0:
            r = R.add(cls.main(n - 1, x), x)
        else:
            r = R.const(0, "int64")
        return r
""")
    program = relax.build(module, exec_mode=mode)
    shallow = relax.VirtualMachine(program, pliant.cpu(), max_depth=100)
    one = np.array(1)
    assert shallow["main"](99, one).numpy() == 99
    with pytest.raises(pliant.VMError, match=r"nested too deeply \(more than 100 levels\) at a call of 'main'"):
        shallow["main"](101, one)
    deep = relax.VirtualMachine(program, pliant.cpu(), max_depth=250_000)
    assert deep["main"](200_000, one).numpy() == 200_000
    assert (shallow.max_depth, deep.max_depth) == (100, 250_000)
    assert relax.VirtualMachine(program).max_depth == 100_000
    shallow.max_depth = 102
    assert shallow["main"](101, one).numpy() == 101
    with pytest.raises(pliant.VMError, match="more than 102"):
        shallow["main"](103, one)
    for bad, error in [(-1, ValueError), (0, ValueError), (2**70, ValueError), ("x", TypeError), (1.5, TypeError), (True, TypeError)]:
        with pytest.raises(error, match="'max_depth' must be"):
            relax.VirtualMachine(program, max_depth=bad)  # type: ignore[arg-type]
        with pytest.raises(error, match="'max_depth' must be"):
            shallow.max_depth = bad  # type: ignore[assignment]
    assert shallow.max_depth == 102
    with pytest.raises(AttributeError, match="max_dept"):
        shallow.max_dept = 7  # type: ignore[attr-defined]


def test_callable_objects_as_arguments() -> None:
    class Scale:
        def __init__(self, by: float) -> None:
            self.by = by

        def __call__(self, x: Any) -> Any:
            return x.numpy() * self.by

    module = from_source("""
@I.ir_module
class Module:
    @R.function(pure=False)
    def main(f: R.Object, x: R.Tensor((2,), "float32")) -> R.Tuple(R.Object, R.Object):
        y = R.invoke_closure(f, (x,), sinfo_args=R.Object)
        return (f, y)
""")
    scale = Scale(3)
    same, y = relax.VirtualMachine(relax.build(module), pliant.cpu())["main"](scale, np.ones(2, "float32"))
    assert same is scale
    np.testing.assert_array_equal(y.numpy(), [3, 3])


BOUNDED = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n", 4), "float32"):
        R.func_attr({"tir_var_upper_bound": BOUNDS})
        a = R.sum(R.exp(x), axis=1, keepdims=True)
        b = R.divide(R.exp(x), a)
        return b
"""


@pytest.mark.parametrize("mode", ["bytecode", "compiled"])
def test_size_bound_errors_name_the_bound(mode: str) -> None:
    module = from_source(BOUNDED.replace("BOUNDS", '{"n": 10}'))
    vm = relax.VirtualMachine(relax.build(module, exec_mode=mode), pliant.cpu())
    assert vm["main"](np.ones((10, 4), "float32")).shape == (10, 4)
    text = r"main: the size n is 11, but its bound \(tir_var_upper_bound\) is 10"
    with pytest.raises(pliant.VMError, match=text):
        vm["main"](np.ones((11, 4), "float32"))


@pytest.mark.parametrize(
    ("bounds", "text"),
    [
        ("5", "a dict from size names"),
        ('{"n": "x"}', "the bound of size 'n' must be a non-negative integer"),
        ('{"n": -1}', "the bound of size 'n' must be a non-negative integer"),
        ('{"q": 5}', "no size in the types of the parameters is called 'q'"),
    ],
)
def test_invalid_size_bounds_are_rejected(bounds: str, text: str) -> None:
    with pytest.raises(pliant.error.ScriptError, match=text):
        from_source(BOUNDED.replace("BOUNDS", bounds))


def test_packed_call_results_convert_to_the_context_type() -> None:
    pliant.register_func("corners.square", lambda i: i * i, override=True)
    module = from_source("""
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def k(o: T.Buffer((4,), "int32"), p: T.Buffer((4,), "float32")):
        for i in range(4):
            o[i] = T.call_packed("corners.square", i)
            p[i] = T.call_packed("corners.square", i)

    @R.function
    def main():
        cls = Module
        return R.call_tir(cls.k, (), out_sinfo=[R.Tensor((4,), "int32"), R.Tensor((4,), "float32")])
""")
    pliant.ir.assert_structural_equal(module, from_source(module.script()))
    o, p = relax.VirtualMachine(relax.build(module), pliant.cpu())["main"]()
    np.testing.assert_array_equal(o.numpy(), [0, 1, 4, 9])
    np.testing.assert_array_equal(p.numpy(), [0, 1, 4, 9])


def test_invalid_packed_call_arguments_are_rejected() -> None:
    with pytest.raises(pliant.error.ScriptError, match="tvm_stack_make_array is not supported: T.call_packed creates"):
        from_source("""
@T.prim_func
def k(A: T.Buffer((4,), "float32")):
    T.evaluate(T.tvm_call_packed("f", T.tvm_stack_make_array(A.data, 0, 0, 1, T.float32(0), 0)))
""")


@pytest.mark.parametrize("mode", ["bytecode", "compiled"])
def test_a_step_of_0_is_an_error(mode: str) -> None:
    module = from_source("""
@I.ir_module
class Module:
    @R.function
    def main(step: R.Prim("int64")) -> R.Prim("int64"):
        s = R.prim_value(0)
        for i in R.range(10, 0, step):
            s = s + i
        return s
""")
    vm = relax.VirtualMachine(relax.build(module, exec_mode=mode), pliant.cpu())
    assert [vm["main"](step) for step in (-1, -3, -20, 1)] == [55, 10 + 7 + 4 + 1, 10, 0]
    with pytest.raises(pliant.DivisionError, match="step must not be 0"):
        vm["main"](0)


def test_a_loop_prints_and_parses_back_after_each_lowering() -> None:
    module = from_source("""
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n",), "float32"), n: R.Prim("int64")) -> R.Tensor(("n",), "float32"):
        s = x
        for i in R.range(n):
            s = R.add(s, s)
            if R.greater(R.sum(s), R.const(100.0, "float32")):
                break
        return s
""")
    steps = ["LegalizeOps", "LambdaLift", "ToNonDataflow", "CallTIRRewrite"]
    for step in steps:
        module = getattr(relax.transform, step)()(module)
        pliant.ir.assert_structural_equal(module, from_source(module.script(show_meta=True)))
    vm = relax.VirtualMachine(relax.build(module), pliant.cpu())
    np.testing.assert_array_equal(vm["main"](np.ones(3, "float32"), 3).numpy(), np.full(3, 8, "float32"))


PACKED = """
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def k(a: T.handle, b: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n,), "{dtype}")
        B = T.match_buffer(b, (n,), "{dtype}")
        for i in range(n):
            T.evaluate(T.call_packed("test.nothing"))
            B[i] = A[i] + T.call_packed("test.returns", i, dtype="{dtype}")

    @R.function
    def main(x: R.Tensor(("n",), "{dtype}")):
        n = T.int64()
        cls = Module
        return R.call_tir(cls.k, (x,), out_sinfo=R.Tensor((n,), "{dtype}"))
"""


def packed_result(returned: Any, dtype: str, mode: str) -> Any:
    pliant.register_func("test.returns", lambda i: returned, override=True)
    pliant.register_func("test.nothing", lambda: None, override=True)
    module = from_source(PACKED.format(dtype=dtype))
    x = np.ones(1, dtype)
    if mode == "interpreter":
        return pliant.testing.interpret(module, x).numpy()[0]
    return relax.VirtualMachine(relax.build(module, exec_mode=mode))["main"](x).numpy()[0]


@pytest.mark.parametrize("mode", ["bytecode", "compiled", "interpreter"])
def test_packed_function_results_in_loop_functions(mode: str) -> None:
    for returned in (5, np.int64(5), np.array(5), np.int8(5)):
        assert packed_result(returned, "int32", mode) == 6
        assert packed_result(returned, "float32", mode) == 6
    for returned in (2.5, np.float32(2.5), np.array(2.5)):
        assert packed_result(returned, "float32", mode) == 3.5
        with pytest.raises(pliant.PliantError, match="test.returns.*expects an integer"):
            packed_result(returned, "int32", mode)
    assert packed_result(True, "int32", mode) == 2
    for returned in ("x", None, (1, 2), np.ones(3)):
        with pytest.raises(pliant.PliantError, match="test.returns.*expects a number"):
            packed_result(returned, "float32", mode)


@pytest.mark.parametrize("mode", ["bytecode", "compiled"])
@pytest.mark.parametrize(
    "value",
    [
        "T.bitwise_xor(A[i], s)",
        "T.shift_right(s, T.int64(3))",
        "T.Select(A[i] < s, A[i], s)",
        "T.if_then_else(i < s, A[i], T.int64(0))",
        'T.call_packed("test.same", s)',
    ],
)
def test_scalars_not_used_as_sizes_have_any_value(value: str, mode: str) -> None:
    pliant.register_func("test.same", lambda s: s, override=True)
    module = from_source(f"""
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def k(a: T.handle, s: T.int64, b: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n,), "int64")
        B = T.match_buffer(b, (n,), "int64")
        for i in range(n):
            if s > i:
                B[i] = {value}
            else:
                B[i] = {value}

    @R.function
    def main(x: R.Tensor(("n",), "int64"), s: R.Prim("int64")):
        n = T.int64()
        cls = Module
        return R.call_tir(cls.k, (x, s), out_sinfo=R.Tensor((n,), "int64"))
""")
    run = relax.VirtualMachine(relax.build(module, exec_mode=mode))["main"]
    x = np.array([1, 5, -(2**50)])
    for s in (2**41, -(2**62), 3):
        np.testing.assert_array_equal(run(x, s).numpy(), pliant.testing.interpret(module, x, s).numpy())


def calling(*lines: str) -> pliant.IRModule:
    """Returns a module whose ``main`` has a local function ``f``."""
    body = "\n        ".join(lines)
    module: pliant.IRModule = from_source(f"""
@I.ir_module
class Module:
    @R.function
    def g(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        return R.exp(x)

    @R.function
    def main(x: R.Tensor(("n",), "float32")):
        cls = Module
        f = cls.g
        {body}
""")
    return module


def test_tuples_of_functions_round_trip() -> None:
    module = calling("return (x, (f, f))")
    text = module.script()
    assert from_source(text).script() == text


def test_single_output_tuples_round_trip() -> None:
    module = from_source("""
@R.function
def main(p: R.Tensor(("n",), "float32")):
    s = R.split(p, 1)
    return s[0]
""")
    legal = relax.transform.LegalizeOps()(pliant.IRModule({"main": module}))
    text = legal.script()
    again = from_source(text)
    assert "out_sinfo=R.Tuple(" in text and again.script() == text
    x = np.arange(3, dtype="float32")
    np.testing.assert_array_equal(relax.VirtualMachine(relax.build(again))["main"](x).numpy(), x)


def test_user_defined_list_classes_are_returned_unchanged() -> None:
    class Stack(list[int]):
        pass

    pliant.register_func("test.stack", lambda: Stack([1]), override=True)
    module = from_source("""
@R.function(pure=False)
def main():
    s = R.call_packed("test.stack", sinfo_args=R.Object)
    return s
""")
    result = relax.VirtualMachine(relax.build(pliant.IRModule({"main": module})))["main"]()
    assert isinstance(result, Stack) and result == [1]


def test_discarded_closure_calls_round_trip() -> None:
    module = calling("y = f(x)", "return y")
    main = module["main"]
    renamed = relax.Var("_", main.body.blocks[0].bindings[0].var.struct_info)

    @relax.expr_functor.mutator
    class Rename(relax.PyExprMutator):
        def visit_var_def_(self, var: relax.Var) -> relax.Var:
            return renamed if var.name_hint == "f" else var

    module["main"] = Rename().visit_expr(main)
    text = module.script()
    assert from_source(text).script() == text


def test_out_of_range_integers_are_reported() -> None:
    module = from_source("""
@R.function
def main(s: R.Prim("int8")):
    return s
""")
    run = relax.VirtualMachine(relax.build(pliant.IRModule({"main": module})))["main"]
    assert run(127) == 127
    with pytest.raises(pliant.PliantError, match="int8 scalar, but 128 is out of the range of this type"):
        run(128)


def test_an_init_without_a_reduction_axis_runs_at_every_point() -> None:
    module = from_source(
        """@I.ir_module
class Module:
    @T.prim_func
    def f(a: T.handle, b: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n,), "float32")
        B = T.match_buffer(b, (n,), "float32")
        for i in range(n):
            with T.block("b"):
                v = T.axis.spatial(n, i)
                T.where(i % 2 == 0)
                with T.init():
                    B[v] = T.float32(10)
                B[v] = B[v] + A[v]
"""
    )
    run = pliant.build(module)["f"]
    for size in (0, 1, 2, 5, 64):
        a, b = np.arange(size, dtype="float32"), np.full(size, -1, "float32")
        run(a, b)
        np.testing.assert_array_equal(b, np.where(np.arange(size) % 2 == 0, a + 10, -1))


def test_a_packed_function_computes_an_output_shape_of_any_rank(packed: Any, exec_mode: str) -> None:
    def fill(x: Any, out: Any) -> None:
        np.from_dlpack(out)[...] = x.numpy().sum()

    packed("test.corners.shape", lambda x: pliant.runtime.ShapeTuple([int(v) for v in x.numpy()]))
    packed("test.corners.fill", fill)
    module = from_source(
        """@R.function
def main(x: R.Tensor(("n",), "int64")):
    s = R.call_pure_packed("test.corners.shape", x, sinfo_args=R.Shape())
    with R.dataflow():
        y = R.call_dps_packed("test.corners.fill", (x,), out_sinfo=R.Tensor(s, "float32"))
        z = R.call_dps_packed("test.corners.fill", (x,), out_sinfo=R.Tensor(s, "float32"))
        w = R.add(y, z)
        R.output(w)
    return w
"""
    )
    vm = relax.VirtualMachine(relax.build(module))
    for dims in ((), (3,), (2, 3), (1, 2, 3, 4), (2, 0)):
        out = vm["main"](np.array(dims, "int64")).numpy()
        assert out.shape == dims and np.all(out == 2 * sum(dims))
