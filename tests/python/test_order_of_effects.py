"""Tests the order of effects: calls nested in other expressions are made once, and in the order of Python."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import pliant
from pliant import relax
from pliant.script import from_source
from pliant.script import ir as I
from pliant.script import relax as R
from pliant.script import tir as T

HEADER = "from pliant.script import ir as I, relax as R, tir as T\n"


def say_called(log: list[int], name: str) -> None:
    def call(k: int) -> Any:
        log.append(int(k))
        return pliant.nd.array(np.array(k, "float32"))

    pliant.register_func(name, call, override=True)


@pytest.mark.parametrize(
    ("expression", "order"),
    [
        ("R.multiply(N(0), R.exp(N(1)))", [0, 1]),
        ("R.multiply(R.exp(N(0)), N(1))", [0, 1]),
        ("R.multiply(N(0), R.add(N(1), N(2)))", [0, 1, 2]),
        ("N(0) * (N(1) + N(2))", [0, 1, 2]),
        ("R.where(R.less(N(0), N(1)), N(2), N(3))", [0, 1, 2, 3]),
        ("R.add(N(0), (N(1), N(2))[0])", [0, 1, 2]),
        ("(N(0), R.exp(N(1)), N(2), R.exp(R.add(N(3), N(4))))", [0, 1, 2, 3, 4]),
    ],
)
def test_nested_calls_run_in_the_order_of_python(expression: str, order: list[int]) -> None:
    log: list[int] = []
    say_called(log, "test.effects.order")
    text = re.sub(
        r"N\((\d)\)",
        r"R.call_packed('test.effects.order', R.prim_value(\1), sinfo_args=R.Tensor((), 'float32'))",
        expression,
    )
    module = from_source(
        f"{HEADER}@I.ir_module\nclass Module:\n    @R.function(pure=False)\n    def main(x: R.Tensor((), 'float32')):\n        return {text}\n"
    )
    x = np.array(1, "float32")
    for mode in ("bytecode", "compiled"):
        log.clear()
        pliant.compile(module, exec_mode=mode)(x)
        assert log == order
    log.clear()
    pliant.testing.interpret(module, x)
    assert log == order


def test_reads_before_a_write_are_computed_before_it() -> None:
    @I.ir_module
    class Module:
        @T.prim_func(private=True)
        def inc(A: T.Buffer((), "float32")):
            A[()] = A[()] + T.float32(1)

        @R.function(pure=False)
        def after(x: R.Tensor((), "float32")):
            cls = Module
            new = R.call_tir_inplace(cls.inc, (x,), inplace_indices=[0], out_sinfo=R.Tensor((), "float32"))
            return (new, R.exp(R.add(x, x)))

        @R.function(pure=False)
        def before(x: R.Tensor((), "float32")):
            cls = Module
            return R.add(
                R.exp(x),
                R.call_tir_inplace(cls.inc, (x,), inplace_indices=[0], out_sinfo=R.Tensor((), "float32")),
            )

    for mode in ("bytecode", "compiled"):
        vm = relax.VirtualMachine(relax.build(Module, exec_mode=mode), pliant.cpu())
        np.testing.assert_allclose(vm["after"](pliant.nd.array(np.array(1, "float32")))[1].numpy(), np.exp(4), 1e-6)
        np.testing.assert_allclose(vm["before"](pliant.nd.array(np.array(1, "float32"))).numpy(), np.e + 2, 1e-6)


@pytest.mark.parametrize(
    ("statement", "values", "calls"),
    [
        ("B[i] = F(i) + F(i + 1)", [1, 3, 5, 7], [0, 1, 1, 2, 2, 3, 3, 4]),
        ("B[i] = F(i) * T.int64(10) + F(i)", [0, 11, 22, 33], [0, 0, 1, 1, 2, 2, 3, 3]),
        ("B[F(i)] = i + 1", [1, 2, 3, 4], [0, 1, 2, 3]),
        ("B[F(i)] = F(i + 4)", [4, 5, 6, 7], [4, 0, 5, 1, 6, 2, 7, 3]),
        ("B[i] = A[F(i)] + 1", [1, 2, 3, 4], [0, 1, 2, 3]),
        ("B[i] = F(F(i))", [0, 1, 2, 3], [0, 0, 1, 1, 2, 2, 3, 3]),
        ("B[i] = F(i) * T.int64(0)", [0, 0, 0, 0], [0, 1, 2, 3]),
        ("B[i] = T.Select(i < 2, F(i), T.int64(7))", [0, 1, 7, 7], [0, 1, 2, 3]),
        ("B[i] = T.if_then_else(i < 2, F(i), T.int64(7))", [0, 1, 7, 7], [0, 1]),
        ("B[i] = F(i) * 10 + T.if_then_else(i < 2, F(i + 1), 0)", [1, 12, 20, 30], [0, 1, 1, 2, 2, 3]),
        ("B[i] = T.if_then_else(i < 2, F(i) * 10 + F(i), 0)", [0, 11, 0, 0], [0, 0, 1, 1]),
        ("B[i] = T.Cast('int64', i < 2 and F(i) > 0)", [0, 1, 0, 0], [0, 1]),
        ("B[i] = T.Cast('int64', i < 2 or F(i) > 2)", [1, 1, 0, 1], [2, 3]),
        ("B[i] = T.Cast('int64', F(i) < 2) % 3", [1, 1, 0, 0], [0, 1, 2, 3]),
    ],
)
def test_calls_in_loop_functions_run_once_and_in_order(statement: str, values: list[int], calls: list[int]) -> None:
    log: list[int] = []

    def same(k: int) -> int:
        log.append(k)
        return k

    pliant.register_func("test.effects.same", same, override=True)
    text = re.sub(r"\bF\(", "T.call_packed('test.effects.same', ", statement)
    module = from_source(f"""{HEADER}
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def f(A: T.Buffer((4,), "int64"), B: T.Buffer((4,), "int64")):
        for i in range(4):
            {text}
    @R.function(pure=False)
    def main(x: R.Tensor((4,), "int64")):
        cls = Module
        y = R.call_tir(cls.f, (x,), out_sinfo=R.Tensor((4,), "int64"))
        return y
""")
    assert from_source(module.script()).script() == module.script()
    for mode in ("bytecode", "compiled", "interpreter"):
        log.clear()
        x = np.arange(4)
        out = pliant.testing.interpret(module, x) if mode == "interpreter" else pliant.compile(module, exec_mode=mode)(x)
        assert (out.numpy().tolist(), log) == (values, calls), mode


def test_reads_keep_their_order_with_writing_calls() -> None:
    def add_one(array: Any) -> int:
        np.from_dlpack(array)[...] += 1
        return 0

    pliant.register_func("test.effects.add_one", add_one, override=True)

    @I.ir_module
    class Module:
        @T.prim_func(private=True)
        def f(A: T.Buffer((4,), "int64"), B: T.Buffer((4,), "int64"), W: T.Buffer((4,), "int64")):
            for i in range(4):
                W[i] = A[i]
            for i in range(4):
                B[i] = W[0] * T.int64(100) + (T.call_packed("test.effects.add_one", W.data) + W[0])

        @R.function(pure=False)
        def main(x: R.Tensor((4,), "int64")):
            cls = Module
            y = R.call_tir(cls.f, (x,), out_sinfo=[R.Tensor((4,), "int64"), R.Tensor((4,), "int64")])
            return y[0]

    for mode in ("bytecode", "compiled"):
        out = pliant.compile(Module, exec_mode=mode)(np.zeros(4, "int64"))
        assert out.numpy().tolist() == [1, 102, 203, 304]


def test_vectorized_loops_call_once_per_iteration() -> None:
    log: list[int] = []
    pliant.register_func("test.effects.count", lambda: log.append(1) or len(log), override=True)

    @I.ir_module
    class Module:
        @T.prim_func(private=True)
        def f(A: T.Buffer((4,), "int64"), B: T.Buffer((4,), "int64")):
            for i in T.vectorized(4):
                B[i] = T.call_packed("test.effects.count")

        @R.function(pure=False)
        def main(x: R.Tensor((4,), "int64")):
            cls = Module
            y = R.call_tir(cls.f, (x,), out_sinfo=R.Tensor((4,), "int64"))
            return y

    for mode in ("bytecode", "compiled"):
        log.clear()
        assert pliant.compile(Module, exec_mode=mode)(np.zeros(4, "int64")).numpy().tolist() == [1, 2, 3, 4]


def test_deep_expressions() -> None:
    call = pliant.tir.call_packed("test.effects.same", pliant.tir.IntImm("int64", 1))
    deep = shared = pliant.tir.Cast("int64", call)
    for _ in range(50_000):
        deep = deep + 1
    for _ in range(40):
        shared = shared * shared
    buffer = pliant.tir.decl_buffer((1,), "int64", "B")
    handle = pliant.tir.Var("b", "handle")
    for value, told in ((deep, "nested deeper"), (shared, "more than 500")):
        with pytest.raises((ValueError, NotImplementedError), match=told):
            pliant.tir.PrimFunc([handle], buffer.vstore([0], value), buffer_map={handle: buffer})


@pytest.mark.parametrize(
    ("body", "values", "calls"),
    [
        ("for i in range(4):\n    B[i] = i\nfor i in range(4):\n    B[F(i)] += T.int64(10)", [10, 11, 12, 13], [0, 1, 2, 3]),
        ("for i in range(4):\n    B[i] = 0\nfor i in range(F(1), F(3)):\n    B[i] = i", [0, 1, 2, 0], [1, 3]),
        ("for i in range(4):\n    B[i] = 0\nfor i in range(F(1), F(4), 2):\n    B[i] = i", [0, 1, 0, 3], [1, 4]),
        (
            "B[0] = 0\nB[1] = 0\nB[2] = 0\nB[3] = 0\nwhile F(B[0]) * 10 + F(B[0] + 1) < 30:\n    B[0] += 1",
            [3, 0, 0, 0],
            [0, 1, 1, 2, 2, 3, 3, 4],
        ),
        (
            "B[0] = 0\nB[1] = 0\nB[2] = 0\nB[3] = 0\nwhile B[0] < 2 or F(B[0]) < 3:\n    B[0] += 1",
            [3, 0, 0, 0],
            [2, 3],
        ),
        ("for i in range(4):\n    T.evaluate(F(A[i] * 2 + A[i]))\n    B[i] = i", [0, 1, 2, 3], [0, 3, 6, 9]),
        (
            "with T.block('root'):\n    t = T.alloc_buffer((4,), 'int64')\n    for i in range(4):\n        with T.block('a'):\n"
            "            v = T.axis.spatial(4, i)\n            t[v] = F(v)\n    for i in range(4):\n        with T.block('b'):\n"
            "            v = T.axis.spatial(4, i)\n            B[v] = T.if_then_else(v < 2, t[3 - v], T.int64(7))",
            [3, 2, 7, 7],
            [0, 1, 2, 3],
        ),
        (
            "for i, k in T.grid(2, 2):\n    with T.block('b'):\n        u, v = T.axis.remap('SS', [k, i])\n        B[u * 2 + v] = F(v * 2 + u)",
            [0, 2, 1, 3],
            [0, 1, 2, 3],
        ),
    ],
)
def test_calls_in_statements_run_in_order(body: str, values: list[int], calls: list[int]) -> None:
    log: list[int] = []

    def same(k: int) -> int:
        log.append(k)
        return k

    pliant.register_func("test.effects.same", same, override=True)
    module = loop_function(body)
    assert from_source(module.script()).script() == module.script()
    for mode in ("bytecode", "compiled", "interpreter"):
        log.clear()
        x = np.arange(4)
        out = pliant.testing.interpret(module, x) if mode == "interpreter" else pliant.compile(module, exec_mode=mode)(x)
        assert (out.numpy().tolist(), log) == (values, calls), mode


def loop_function(body: str) -> pliant.IRModule:
    """Returns a module that calls a loop function with this body, in which ``F`` is a packed
    function.
    """
    text = re.sub(r"\bF\(", "T.call_packed('test.effects.same', ", body)
    lines = "\n".join("            " + line for line in text.splitlines())
    return from_source(f"""{HEADER}
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def f(A: T.Buffer((4,), "int64"), B: T.Buffer((4,), "int64")):
        if True:
{lines}
    @R.function(pure=False)
    def main(x: R.Tensor((4,), "int64")):
        cls = Module
        y = R.call_tir(cls.f, (x,), out_sinfo=R.Tensor((4,), "int64"))
        return y
""")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("for i in range(4):\n    B[i] = T.Cast('int64', 0 < F(i) < 3)", "evaluated twice"),
        (
            "for i in range(4):\n    with T.block('b'):\n        v = T.axis.spatial(4, i)\n        T.where(F(v) > 1)\n        B[v] = 1",
            "in T.where or in the range of an axis",
        ),
        ("B[0] = " + " + ".join(["F(0)"] * 600), "contains 600 function calls, more than 500"),
    ],
)
def test_calls_in_unsupported_positions_are_rejected(body: str, message: str) -> None:
    with pytest.raises(Exception, match=message):
        loop_function(body)


def test_store_indices_are_read_after_the_call_in_the_value() -> None:
    def move(array: Any) -> int:
        np.from_dlpack(array)[0] = 2
        return 9

    pliant.register_func("test.effects.move", move, override=True)

    @I.ir_module
    class Module:
        @T.prim_func(private=True)
        def f(A: T.Buffer((4,), "int64"), B: T.Buffer((4,), "int64"), W: T.Buffer((1,), "int64")):
            for i in range(4):
                B[i] = 0
            W[0] = 1
            B[W[0]] = T.call_packed("test.effects.move", W.data)

        @R.function(pure=False)
        def main(x: R.Tensor((4,), "int64")):
            cls = Module
            y = R.call_tir(cls.f, (x,), out_sinfo=[R.Tensor((4,), "int64"), R.Tensor((1,), "int64")])
            return y[0]

    for mode in ("bytecode", "compiled"):
        assert pliant.compile(Module, exec_mode=mode)(np.zeros(4, "int64")).numpy().tolist() == [0, 0, 9, 0]


def test_calls_in_blocks_run_in_sequence() -> None:
    log: list[int] = []
    pliant.register_func("test.effects.log", lambda k: log.append(k) or k, override=True)

    @I.ir_module
    class Module:
        @T.prim_func(private=True)
        def f(A: T.Buffer((5000,), "int64"), B: T.Buffer((5000,), "int64")):
            for i in range(5000):
                with T.block("b"):
                    v = T.axis.spatial(5000, i)
                    B[v] = T.call_packed("test.effects.log", v)

        @R.function(pure=False)
        def main(x: R.Tensor((5000,), "int64")):
            cls = Module
            y = R.call_tir(cls.f, (x,), out_sinfo=R.Tensor((5000,), "int64"))
            return y

    for mode in ("bytecode", "compiled"):
        log.clear()
        pliant.compile(Module, exec_mode=mode)(np.zeros(5000, "int64"))
        assert log == list(range(5000))


def test_tensor_expressions_run_every_call() -> None:
    log: list[int] = []
    pliant.register_func("test.effects.te", lambda k: log.append(k) or len(log), override=True)
    value = pliant.te.compute(
        (3,), lambda i: pliant.tir.call_packed("test.effects.te", i) * 10 + pliant.tir.call_packed("test.effects.te", i)
    )
    func = pliant.te.create_prim_func([value])
    bb = relax.BlockBuilder()
    gv = bb.add_func(func, "f")
    with bb.function("main", [], pure=False):
        bb.emit_func_output(bb.emit(relax.call_tir(gv, [], relax.TensorStructInfo((3,), value.dtype))))
    for mode in ("bytecode", "compiled"):
        log.clear()
        assert pliant.compile(bb.get(), exec_mode=mode)().numpy().tolist() == [12, 34, 56]
        assert log == [0, 0, 1, 1, 2, 2]


def test_let_of_a_call_is_rejected() -> None:
    var = pliant.tir.Var("v", "int64")
    call = pliant.tir.call_packed("test.effects.same", pliant.tir.IntImm("int64", 1))
    with pytest.raises(NotImplementedError, match="bind it with tir.LetStmt"):
        pliant.tir.Let(var, call, var * 10 + var)
    assert str(pliant.tir.Let(var, pliant.tir.IntImm("int64", 3), var + 1)) == "4"
