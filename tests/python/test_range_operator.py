"""Tests that ``R.range`` counts with integers of any sign, not only with sizes, from scalars and from tensors, in all
executors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pliant
import pytest
from pliant import relax
from pliant.script import from_source
from pliant.testing import interpret

RANGES = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((), "int64"), start: TYPE, stop: TYPE, step: TYPE) -> R.Tensor((), "int64"):
        y = x
        for i in R.range(start, stop, step):
            y = R.add(R.multiply(y, R.const(7, "int64")), i)
        return y

    @R.function
    def down(x: R.Tensor((), "int64"), stop: TYPE) -> R.Tensor((), "int64"):
        y = x
        for i in R.range(3, stop, -2):
            y = R.add(R.multiply(y, R.const(7, "int64")), i)
        return y
"""

TYPES = ["R.Prim('int64')", "R.Tensor((), 'int64')", "R.Tensor((), 'int32')", "R.Prim('int32')", "R.Tensor((), 'int8')"]
CASES = [(0, 5, 2), (0, 6, 2), (5, -5, -3), (0, -3, 1), (-3, 2, 1), (4, 4, -1), (-1, -2, -9), (2, -7, 4)]


def executors(module: pliant.IRModule) -> dict[str, Any]:
    def machine(mode: str) -> Any:
        vm = relax.VirtualMachine(relax.build(module, exec_mode=mode), pliant.cpu())
        return lambda name, *args: vm[name](*args)

    run = {mode: machine(mode) for mode in ("bytecode", "compiled")}
    run["interpreter"] = lambda name, *args: interpret(module, *args, func=name)
    return run


def arguments(ty: str, values: tuple[int, ...]) -> list[Any]:
    dtype = ty.split("'")[1]
    return [np.array(v, dtype) if "Tensor" in ty else v for v in values]


def expected(values: range) -> int:
    y = 1
    for i in values:
        y = 7 * y + i
    return y


@pytest.mark.parametrize("ty", TYPES)
def test_ranges_equal_python(ty: str) -> None:
    module = from_source(RANGES.replace("TYPE", ty))
    again = from_source(module.script())
    pliant.ir.assert_structural_equal(module, again)
    assert again.script() == module.script()
    one = np.array(1, "int64")
    for name, run in executors(module).items():
        for case in CASES:
            assert run("main", one, *arguments(ty, case)).numpy() == expected(range(*case)), (name, case)
        for stop in (-4, 3, 9):
            assert run("down", one, *arguments(ty, (stop,))).numpy() == expected(range(3, stop, -2)), (name, stop)


@pytest.mark.parametrize("ty", TYPES)
def test_a_step_of_zero_names_the_range_and_its_line(ty: str) -> None:
    text = RANGES.replace("TYPE", ty)
    line = text.split("\n").index(next(t for t in text.split("\n") if "range(start" in t)) + 1
    for name, run in executors(from_source(text)).items():
        with pytest.raises(pliant.error.PliantError) as info:
            run("main", np.array(1, "int64"), *arguments(ty, (2, 5, 0)))
        message = str(info.value)
        assert "R.range(2, 5, 0): the step must not be 0" in message, name
        assert [part for part in message.split("\n") if f"<str>:{line}," in part], (name, message)


def test_iteration_counts_beyond_int64_are_rejected() -> None:
    low, high = -(2**63), 2**63 - 1
    for name, run in executors(from_source(RANGES.replace("TYPE", "R.Prim('int64')"))).items():
        with pytest.raises(pliant.error.PliantError, match=r"has more than 2\^63 iterations"):
            run("main", np.array(1, "int64"), low, high, 1)
        assert run("main", np.array(1, "int64"), -2, high, high).numpy() == 7 * (7 - 2) + high - 2 - 2**64, name


ITEM = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(ndim=NDIM, dtype="DTYPE")) -> R.Prim("DTYPE"):
        return R.item(x)

    @R.function
    def any(x: R.Tensor()) -> R.Object:
        return R.item(x)
"""


def test_tensor_elements_as_range_bounds() -> None:
    for dtype, value in [("int64", -5), ("int8", -128), ("uint8", 255), ("float32", 1.5), ("float16", 0.5), ("bool", True)]:
        run = executors(from_source(ITEM.replace("NDIM", "1").replace("DTYPE", dtype)))
        for name, call in run.items():
            for func in ("main", "any"):
                got = call(func, np.full((1,), value, dtype))
                assert (got, type(got)) == (value, type(value)), (name, func, dtype)
            with pytest.raises(pliant.error.PliantError, match="one element"):
                call("main", np.zeros((2,), dtype))
    for name, call in executors(from_source(ITEM.replace("NDIM", "0").replace("DTYPE", "uint64"))).items():
        assert call("main", np.array(2**63 - 1, "uint64")) == 2**63 - 1, name
        with pytest.raises(pliant.error.PliantError, match="does not fit a signed 64-bit integer"):
            call("main", np.array(2**63, "uint64"))
    with pytest.raises(pliant.error.ScriptError, match="x must have one element"):
        from_source(ITEM.replace("ndim=NDIM", "(2,)").replace("DTYPE", "int64"))
    with pytest.raises(pliant.error.ScriptError, match="step must be an integer scalar"):
        from_source("""
@R.function
def main(x: R.Tensor((2,), "int64")):
    return R.trip_count(0, 1, x)
""")
