"""Tests that run-time errors name the line of the user's script, and the callers."""

from pathlib import Path
from typing import Any

import numpy as np
import pliant
import pytest
from pliant import relax
from pliant.script import from_source
from pliant.script import ir as I
from pliant.script import relax as R
from pliant.script import tir as T
from pliant.testing import interpret

HERE = __file__


@I.ir_module
class Module:
    @T.prim_func
    def positive(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            assert A[i] > T.float32(0), "not positive"
            B[i] = A[i]

    @R.function
    def helper(x: R.Tensor(("n",), "float32"), y: R.Tensor(("m",), "float32")):
        return R.add(x, y)  # line: helper

    @R.function
    def shapes(x: R.Tensor(("n",), "float32"), y: R.Tensor(("m",), "float32")):
        cls = Module
        a = R.exp(x)
        b = cls.helper(a, y)  # line: shapes
        return R.multiply(b, b)

    @R.function
    def cast(x: R.Tensor(ndim=1, dtype="float32")):
        y = R.exp(x)
        z = R.match_cast(y, R.Tensor((3,), "float32"))  # line: cast
        return z

    @R.function(pure=False)
    def asserted(x: R.Tensor((), "bool")):
        _ = R.assert_op(x, format="no luck")  # line: asserted
        return x

    @R.function
    def kernel(x: R.Tensor((4,), "float32")):
        cls = Module
        a = R.negative(x)
        return R.call_tir(cls.positive, (a,), out_sinfo=R.Tensor((4,), "float32"))  # line: kernel

    @R.function
    def loop(x: R.Tensor(("n",), "float32"), y: R.Tensor(("m",), "float32"), k: R.Prim("int64")):
        s = R.zeros((), "float32")
        for _i in R.range(k):
            t = R.add(x, y)  # line: loop
            s = R.add(s, R.sum(t))
        return s

    @R.function(pure=False)
    def condition(x: R.Tensor((2,), "float32")):
        c = R.call_packed("lines.same", x, sinfo_args=R.Object)
        if R.call_packed("lines.same", c, sinfo_args=R.Tensor((), "bool")):  # line: condition
            y = R.prim_value(1)
        else:
            y = R.prim_value(2)
        return y

    @R.function
    def fused(x: R.Tensor((4,), "int64"), y: R.Tensor((4,), "int64")):
        with R.dataflow():
            q = R.floor_divide(x, y)  # line: fused
            z = R.add(q, x)  # line: fused
            R.output(z)
        return z

    @R.function
    def index(x: R.Tensor((2,), "float32"), i: R.Tensor((3,), "int64")):
        y = R.exp(x)
        return R.take(y, i, axis=0)  # line: index

    @R.function
    def branches(x: R.Tensor(("n",), "float32"), y: R.Tensor(("m",), "float32"), c: R.Tensor((), "bool")):
        z = x
        for _i in R.range(2):
            if c:
                if R.logical_not(c):
                    z = x
                else:
                    z = R.add(x, y)  # line: branches
            else:
                z = R.exp(z)
        return z

    @R.function(pure=False)
    def raises(x: R.Tensor((2,), "float32")):
        @R.function(pure=False)
        def inner(a: R.Tensor((2,), "float32")) -> R.Object:
            return R.call_packed("lines.fail", a, sinfo_args=R.Object)  # line: raises_inner

        y = inner(x)  # line: raises
        return (y, y)


def line(what: str) -> str:
    """Returns the location of a marked line in this file, or of several lines that become one
    kernel.
    """
    lines = enumerate(Path(HERE).read_text(encoding="utf-8").splitlines(), 1)
    numbers = [number for number, text in lines if text.endswith(f"# line: {what}")]
    return f"{HERE}:{'-'.join(map(str, numbers))}, in {what}"


def ones(*shape: int) -> Any:
    return np.ones(shape, "float32")


CASES = [
    ("shapes", (ones(3), ones(4)), pliant.ShapeError, ["helper", "shapes"]),
    ("cast", (ones(4),), pliant.ShapeError, ["cast"]),
    ("asserted", (np.array(False),), pliant.AssertionFailed, ["asserted"]),
    ("kernel", (ones(4),), pliant.AssertionFailed, ["kernel"]),
    ("loop", (ones(3), ones(4), 2), pliant.ShapeError, ["loop"]),
    ("condition", (ones(2),), pliant.DTypeError, ["condition"]),
    ("branches", (ones(3), ones(4), np.array(True)), pliant.ShapeError, ["branches"]),
    ("fused", (np.arange(4), np.array([3, 2, 1, 0])), pliant.DivisionError, ["fused"]),
    ("index", (ones(2), np.array([0, 1, 7])), pliant.BoundsError, ["index"]),
]


@pytest.fixture(scope="module", autouse=True)
def _functions():
    def fail(_x: Any) -> Any:
        raise KeyError("inside")

    pliant.register_func("lines.fail", fail, override=True)
    pliant.register_func("lines.same", lambda x: x, override=True)


@pytest.fixture(scope="module", params=["bytecode", "compiled", "loaded"])
def machine(request: Any, tmp_path_factory: Any) -> relax.VirtualMachine:
    mode = "bytecode" if request.param == "loaded" else request.param
    program = relax.build(Module, exec_mode=mode)
    if request.param == "loaded":
        path = tmp_path_factory.mktemp("lines") / "program"
        program.export_library(path)
        program = pliant.runtime.load_module(str(path))
    return relax.VirtualMachine(program, pliant.cpu())


@pytest.mark.parametrize(("name", "args", "kind", "places"), CASES, ids=[case[0] for case in CASES])
def test_errors_name_their_line(machine: Any, name: str, args: Any, kind: Any, places: list[str]) -> None:
    with pytest.raises(kind) as info:
        machine[name](*args)
    assert str(info.value).split("\n")[1:] == [f"  at {line(place)}" for place in places]


def test_python_exceptions_get_a_note(machine: Any) -> None:
    with pytest.raises(KeyError) as info:
        machine["raises"](ones(2))
    assert str(info.value) == "'inside'"
    note = f"  at {line('raises_inner')}\n  at {line('raises')}"
    assert info.value.__notes__ == ["in packed function 'lines.fail'", note]


def test_argument_errors_name_the_signature_line(machine: Any) -> None:
    with pytest.raises(pliant.ShapeError) as info:
        machine["helper"](ones(3, 3), ones(3))
    where = int(line("helper").split(":")[-1].split(",")[0]) - 1
    assert f"  at {HERE}:{where}, in helper" in str(info.value)


def lines_of(message: str) -> list[str]:
    """Returns the locations in a message that are lines of a file, without the text after them."""
    return [place.split(",")[0] for place in message.split("\n")[1:] if place.startswith(f"  at {HERE}:")]


@pytest.mark.parametrize(("name", "args"), [(c[0], c[1]) for c in CASES], ids=[c[0] for c in CASES])
def test_interpreter_names_the_same_lines(machine: Any, name: str, args: Any) -> None:
    with pytest.raises(pliant.error.PliantError) as info:
        machine[name](*args)
    expected = lines_of(str(info.value))
    with pytest.raises(pliant.VMError) as info:
        interpret(Module, *args, func=name)
    # The interpreter runs only the first of several lines.
    assert lines_of(str(info.value)) == [place.split("-")[0] for place in expected]


RECURSION = """
@R.function
def main(x: R.Tensor((), "int64")) -> R.Tensor((), "int64"):
    y: R.Tensor((), "int64") = main(x)
    return R.add(y, y)
"""


@pytest.mark.parametrize("mode", ["bytecode", "compiled"])
def test_recursive_calls_are_named_once(mode: str) -> None:
    module = pliant.IRModule({"main": from_source(RECURSION)})
    vm = relax.VirtualMachine(relax.build(module, exec_mode=mode), pliant.cpu())
    with pytest.raises(pliant.VMError, match="nested too deeply") as info:
        vm["main"](np.array(1))
    assert str(info.value).split("\n")[1:] == ["  at <str>:4, in main"]


def test_generated_code_has_no_line() -> None:
    x, y = (relax.Var(n, relax.TensorStructInfo(None, "float32", ndim=1)) for n in "xy")
    builder = relax.BlockBuilder()
    with builder.function("main", [x, y]):
        builder.emit_func_output(builder.emit(relax.op.add(x, y)))
    vm = relax.VirtualMachine(relax.build(builder.get()), pliant.cpu())
    with pytest.raises(pliant.ShapeError) as info:
        vm["main"](ones(3), ones(4))
    assert "\n" not in str(info.value)
