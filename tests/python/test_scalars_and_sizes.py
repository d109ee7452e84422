"""Tests scalars of other libraries, constants that their types cannot represent, and invalid divisions and sizes."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pliant
import pliant.testing
from pliant import relax, te, tir
from pliant.script import from_source, ir as I, relax as R, tir as T

SCALARS = """
@I.ir_module
class Module:
    @R.function
    def whole(k: R.Prim("int64")) -> R.Prim("int64"):
        return k

    @R.function
    def real(k: R.Prim("float32")) -> R.Prim("float32"):
        return k

    @R.function
    def flag(k: R.Prim("bool")) -> R.Prim("bool"):
        return k

    @R.function
    def tensor(k: R.Tensor((), "int64")) -> R.Tensor((), "int64"):
        return k

    @R.function
    def shape(s: R.Shape(ndim=2)) -> R.Shape(ndim=2):
        return s
"""


def test_numpy_scalars_for_scalar_parameters() -> None:
    model = pliant.compile(from_source(SCALARS))
    for value in (np.int64(2), np.int8(2), np.uint32(2), np.array(2)):
        assert model.whole(value) == 2
    assert model.real(np.float32(2.5)) == 2.5 and model.real(np.float64(2.5)) == 2.5
    assert model.flag(np.bool_(True)) is True
    assert model.tensor(np.int64(7)).numpy() == 7
    assert tuple(model.shape((np.int64(3), 4))) == (3, 4) and tuple(model.shape(tuple(np.array([5, 6])))) == (5, 6)
    vm = relax.VirtualMachine(relax.build(from_source(SCALARS)))
    vm.set_input("whole", np.int64(9))
    vm.invoke_stateful("whole")
    assert vm.get_outputs("whole") == 9
    for bad, error in ((np.float32(2), pliant.DTypeError), (np.ones(1, "int64"), TypeError), (np.uint64(2**63), TypeError)):
        with pytest.raises(error, match="whole: 'k'"):
            model.whole(bad)


def test_negative_sizes_and_unknown_types_are_rejected_outside_scripts() -> None:
    with pytest.raises(pliant.ShapeError, match="a dim of a (shape|tensor) must be a non-negative integer, not -2"):
        R.Tensor((-2,), "float32")
    with pytest.raises(pliant.DTypeError):
        R.Tensor((2,), "floaty")


@pytest.mark.parametrize(("dtype", "value"), [("int8", 300), ("int8", -129), ("uint8", -1), ("uint64", -1), ("int32", 2**31)])
def test_constants_fit_their_types(dtype: str, value: int) -> None:
    makers: list[Callable[..., Any]] = [tir.IntImm, lambda dtype, value: tir.const(value, dtype)]
    for make in makers:
        with pytest.raises(ValueError, match=f"the data type {dtype} cannot represent the value {value}"):
            make(dtype, value)
    assert int(tir.IntImm("int8", -128)) == -128 and int(tir.const(255, "uint8")) == 255


def test_ceildiv_rounds_up_whatever_the_sign() -> None:
    n = te.var("n")
    for by in (3, -3, 1, -1):
        f = tir.ceildiv(n, by)
        for value in range(-7, 8):
            assert int(pliant.arith.Analyzer().simplify(tir.stmt_functor.substitute(f, {n: value}))) == -(-value // by)
    with pytest.raises(ZeroDivisionError):
        tir.ceildiv(n, 0)


CEILDIV = """
@T.prim_func
def main(A: T.Buffer((7,), "int64"), B: T.Buffer((7,), "int64")):
    for i in range(7):
        B[i] = T.ceildiv(A[i], {})
"""


def test_ceildiv_in_scripts() -> None:
    values = np.arange(-3, 4)
    for by in (2, -2):
        out = pliant.nd.empty((7,), "int64")
        pliant.compile(from_source(CEILDIV.format(by)))(values, out)
        assert out.numpy().tolist() == [-(-int(v) // by) for v in values]
    with pytest.raises(pliant.ScriptError, match="division by zero"):
        from_source(CEILDIV.format(0))


def graph(dtype: str, call: str) -> Any:
    return from_source(f'@R.function\ndef main(x: R.Tensor(("n", "m"), "{dtype}")):\n    return {call}\n')


def test_sums_of_bools_are_counts() -> None:
    x = np.random.default_rng(3).integers(0, 2, (4, 5)).astype(bool)
    for name in ("sum", "prod"):
        for axis in (None, 0, 1):
            got = pliant.compile(graph("bool", f"R.{name}(x, axis={axis})"))(x).numpy()
            want = getattr(np, name)(x, axis=axis)
            assert got.dtype == want.dtype and np.array_equal(got, want)


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_max_of_empty_tensors_is_an_error(name: str, exec_mode: str) -> None:
    vm = relax.VirtualMachine(relax.build(graph("float32", f"R.{name}(x, axis=1)")))
    assert vm["main"](np.zeros((0, 3), "float32")).shape == (0,)
    with pytest.raises(pliant.ShapeError, match=f"relax.{name}: the reduced axis of x has size 0"):
        vm["main"](np.zeros((3, 0), "float32"))
    with pytest.raises(pliant.PliantError, match="the reduced axis of x has size 0"):
        pliant.compile(from_source(f'@R.function\ndef main(x: R.Tensor((3, 0), "float32")):\n    return R.{name}(x, axis=1)\n'))


def test_error_classes_of_generated_code(exec_mode: str) -> None:
    source = """
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def positive(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            assert A[i] > T.float32(0), "all are positive"
            B[i] = A[i]

    @R.function
    def divide(x: R.Tensor(("n",), "int32"), y: R.Tensor(("n",), "int32")):
        return R.floor_divide(x, y)

    @R.function
    def checked(x: R.Tensor((4,), "float32")):
        cls = Module
        return R.call_tir(cls.positive, (x,), out_sinfo=R.Tensor((4,), "float32"))

    @R.function
    def taken(x: R.Tensor(("n",), "float32"), i: R.Tensor(("m",), "int64")):
        return R.take(x, i, axis=0)

    @R.function
    def sizes(x: R.Tensor(("n", "m"), "float32")):
        n, m = T.int64(), T.int64()
        return R.shape([n // m])
"""
    vm = relax.VirtualMachine(relax.build(from_source(source)))
    ints, floats = np.arange(3, dtype="int32"), np.arange(4, dtype="float32")
    with pytest.raises(pliant.DivisionError, match="division by zero") as divided:
        vm["divide"](ints, ints)
    with pytest.raises(pliant.AssertionFailed, match="all are positive") as asserted:
        vm["checked"](floats)
    with pytest.raises(pliant.BoundsError, match="index 9 is out of range for axis 0 of size 4"):
        vm["taken"](floats, np.int64([9]))
    with pytest.raises(pliant.DivisionError, match="n // m divides by zero"):
        vm["sizes"](np.zeros((3, 0), "float32"))
    for failure in (divided, asserted):
        assert not isinstance(failure.value, pliant.ShapeError) and isinstance(failure.value, pliant.VMError)
    assert issubclass(pliant.DivisionError, ZeroDivisionError) and issubclass(pliant.AssertionFailed, AssertionError)
    assert issubclass(pliant.BoundsError, IndexError) and issubclass(pliant.BoundsError, pliant.ShapeError)


def test_size_errors_name_their_origin() -> None:
    def model(params: str, result: str) -> Any:
        return pliant.compile(from_source(f"@R.function\ndef main({params}):\n    return {result}\n"))

    two = model('x: R.Tensor(("n",), "int32"), y: R.Tensor(("n*2",), "int32")', "y")
    with pytest.raises(pliant.ShapeError, match=r"main: 'y' dim 0 must equal n \* 2 = 6 \(from 'x' dim 0\), but is 7"):
        two(np.zeros(3, "int32"), np.zeros(7, "int32"))
    one = model('y: R.Tensor(("n*2",), "int32")', "y")
    with pytest.raises(pliant.ShapeError, match=r"'y' dim 0 must equal n \* 2 = 6 \(from this dim itself: no value of n matches\), but is 7"):
        one(np.zeros(7, "int32"))
    product = model('x: R.Tensor(("m",), "int32"), y: R.Tensor(("n*m",), "int32")', "y")
    with pytest.raises(pliant.DivisionError, match=r"main: 'y' dim 0 // m divides by zero"):
        product(np.zeros(0, "int32"), np.zeros(7, "int32"))


def test_existing_and_missing_functions() -> None:
    model = pliant.compile(from_source(SCALARS))
    names = "whole, real, flag, tensor, shape"
    with pytest.raises(KeyError) as missing:
        model["nope"]
    assert missing.value.args[0] == f"the model has no function 'nope' (it has: {names})"
    with pytest.raises(AttributeError, match="the model has no function 'nope'"):
        model.nope
    vm = relax.VirtualMachine(model.executable)
    with pytest.raises(KeyError, match=f"the program has no function 'nope' .it has: {names}"):
        vm["nope"]
    assert "whole" in model and "nope" not in model


def test_copies() -> None:
    mod = from_source(SCALARS)
    for one in (copy.copy(mod), copy.deepcopy(mod)):
        assert one is not mod
        pliant.ir.assert_structural_equal(one, mod)
        del one["whole"]
        assert "whole" in mod
    func, n = mod["whole"], te.var("n")
    for thing in (func, func.params[0], func.params[0].struct_info, n, n + 1):
        assert copy.deepcopy(thing) is thing and copy.copy(thing) is thing
    assert copy.deepcopy({"f": [func]})["f"][0] is func


def test_dataflow_variables_stay_in_their_blocks() -> None:
    x = relax.Var("x", R.Tensor((4,), "float32"))
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        with bb.dataflow():
            lv = bb.emit(relax.op.add(x, x))
            out = bb.emit_output(relax.op.exp(lv))
        with pytest.raises(ValueError, match="'lv' is visible only in its dataflow block: make it an output"):
            bb.emit_func_output(lv)
        with pytest.raises(ValueError, match="'lv' is visible only in its dataflow block"):
            bb.emit(relax.op.exp(lv))
        bb.emit_func_output(out)
    assert relax.analysis.well_formed(bb.get())


@I.ir_module
class Wraps:
    @T.prim_func(private=True)
    def kernel(s: T.int64, b: T.int32, o: T.handle):
        O = T.match_buffer(o, (3,), "int64")
        for i in range(3):
            with T.block("wraps"):
                vi = T.axis.spatial(3, i)
                O[vi] = (s * 4) // 4 + T.int64(b * 4) // 4 + (vi * T.int64(2**62)) // T.int64(2**62)

    @R.function
    def main(s: R.Prim("int64"), b: R.Prim("int32")) -> R.Tensor((3,), "int64"):
        cls = Wraps
        return R.call_tir(cls.kernel, (s, b), out_sinfo=R.Tensor((3,), "int64"))


@pytest.mark.parametrize("mode", ["bytecode", "compiled"])
@pytest.mark.parametrize(("s", "b"), [(5, 7), (2**62, 2**30), (-(2**63), -(2**31)), (2**61, 2**29), (-3, -5)])
def test_integer_arithmetic_wraps_around(mode: str, s: int, b: int) -> None:
    with np.errstate(over="ignore"):
        first = np.int64(s) * np.int64(4) // np.int64(4) + np.int64(np.int32(b) * np.int32(4)) // np.int64(4)
        expected = first + np.arange(3) * np.int64(2**62) // np.int64(2**62)
    run = relax.VirtualMachine(relax.build(Wraps, exec_mode=mode), pliant.cpu())["main"]
    np.testing.assert_array_equal(run(s, b).numpy(), expected)
    np.testing.assert_array_equal(pliant.testing.interpret(Wraps, s, b).numpy(), expected)
