"""Tests errors in programs with control flow and effects: each names its location, and none ends the process."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pliant
from pliant import relax, te
from pliant.script import from_source

pytestmark = pytest.mark.usefixtures("exec_mode")

Register = Callable[[str, Callable[..., Any]], None]
SMALL_STACK = 256 << 10


def machine(text: str) -> Any:
    return relax.VirtualMachine(relax.build(from_source(text)), pliant.cpu())


def in_small_thread(work: Callable[[], Any]) -> Any:
    """Returns the result or the exception of ``work`` in a thread with a small stack."""
    outcome: list[Any] = []

    def run() -> None:
        try:
            outcome.append(work())
        except Exception as error:
            outcome.append(error)

    before = threading.stack_size(SMALL_STACK)
    try:
        thread = threading.Thread(target=run)
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join(timeout=120)
    assert not thread.is_alive() and outcome
    return outcome[0]


RECURSIVE = """
@I.ir_module
class Module:
    @R.function
    def itself(x: R.Tensor((), "int64")) -> R.Tensor((), "int64"):
        return R.add(Module.itself(x), x)

    @R.function
    def even(x: R.Tensor((), "int64")) -> R.Tensor((), "int64"):
        return R.add(Module.odd(x), x)

    @R.function
    def odd(x: R.Tensor((), "int64")) -> R.Tensor((), "int64"):
        return R.add(Module.even(x), x)

    @R.function
    def closure(x: R.Tensor((), "int64")) -> R.Tensor((), "int64"):
        @R.function
        def again(y: R.Tensor((), "int64")) -> R.Tensor((), "int64"):
            return R.add(again(R.add(y, x)), x)

        return again(x)

    @R.function(pure=False)
    def through_python(x: R.Object) -> R.Object:
        y = R.call_packed("errors.back", x, sinfo_args=R.Object)
        return (y, y)
"""


@pytest.mark.parametrize("name", ["itself", "even", "closure"])
@pytest.mark.parametrize("small", [False, True])
def test_endless_recursion_is_an_error(name: str, small: bool) -> None:
    vm = machine_of_recursion()
    x = np.array(1)
    if small:
        error = in_small_thread(lambda: vm[name](x))
        assert "calls are nested too deeply" in str(error)
    else:
        with pytest.raises(Exception, match="calls are nested too deeply"):
            vm[name](x)


def machine_of_recursion() -> Any:
    if pliant.get_global_func("errors.back", allow_missing=True) is None:
        pliant.register_func("errors.back", lambda x: x)
    return machine(RECURSIVE)


def test_endless_recursion_through_python_is_an_error(packed: Register) -> None:
    vms: list[Any] = []
    packed("errors.back", lambda x: vms[0]["through_python"](x))
    vms.append(machine(RECURSIVE))
    error = in_small_thread(lambda: vms[0]["through_python"](1))
    assert isinstance(error, (RecursionError, pliant.PliantError)), error
    with pytest.raises((RecursionError, pliant.PliantError), match="nested too deeply|recursion"):
        vms[0]["through_python"](1)


PACKED = """
@I.ir_module
class Module:
    @T.prim_func
    def kernel(a: T.handle, b: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n,), "float32")
        B = T.match_buffer(b, (n,), "float32")
        for i in range(n):
            B[i] = A[i]
        T.evaluate(T.call_packed("errors.fail", n))

    @R.function
    def from_kernel(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        n = T.int64()
        return R.call_tir(Module.kernel, (x,), out_sinfo=R.Tensor((n,), "float32"))

    @R.function(pure=False)
    def from_graph(x: R.Tensor(("n",), "float32")) -> R.Object:
        return R.call_packed("errors.fail", x, sinfo_args=R.Object)
"""


@pytest.mark.parametrize("name", ["from_kernel", "from_graph"])
def test_a_packed_function_that_raises_is_named(name: str, packed: Register) -> None:
    def fail(x: Any) -> Any:
        raise KeyError("inside")

    packed("errors.fail", fail)
    vm = machine(PACKED)
    with pytest.raises(KeyError, match="inside") as info:
        vm[name](np.ones(3, "float32"))
    first, place = info.value.__notes__
    assert first == "in packed function 'errors.fail'"
    assert place.startswith("  at <str>:") and place.endswith(f", in {name}")
    # The traceback is that of the function.
    assert info.traceback[-1].name == "fail"


def test_calls_of_non_functions_are_named() -> None:
    vm = machine("""
@R.function(pure=False)
def main(f: R.Object, x: R.Tensor(("n",), "float32")) -> R.Object:
    return R.invoke_closure(f, (x,), sinfo_args=R.Object)
""")
    with pytest.raises(TypeError, match=r"main: 'f', which is called, must be a function, but is a float32 tensor"):
        vm["main"](np.ones(3, "float32"), np.ones(3, "float32"))


def test_incompatible_branch_types_are_both_shown() -> None:
    with pytest.raises(pliant.PliantError, match=r"R\.Tensor\(\(n,\).*in one branch and R\.Tuple\(.*in the other"):
        from_source("""
@R.function
def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(ndim=1):
    n = T.int64()
    if n > 1:
        y = x
    else:
        y = (x, x)
    return y
""")


def test_te_definitions_cannot_use_their_own_function() -> None:
    seen: list[Any] = []

    @relax.op.register_op("errors.reads")
    def reads(x: te.Tensor) -> te.Tensor:
        seen.append(holder[0].struct_info)
        return te.compute(x.shape, lambda *i: x(*i))

    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((3,), "float32"))
    holder: list[Any] = [x]
    with builder.function("main", [x]):
        holder[0] = builder.emit(relax.op.add(x, x))
        with pytest.raises(ValueError, match="cannot be read inside the definition of an operator"):
            builder.emit(reads(holder[0]))
        builder.emit_func_output(holder[0])
    assert not seen
    # The builder keeps working.
    assert len(builder.get()["main"].params) == 1


@pytest.mark.parametrize("mode", ["bytecode", "compiled"])
def test_closure_argument_errors_name_the_argument(mode: str) -> None:
    module = from_source("""
@I.ir_module
class Module:
    @R.function
    def mk(x: R.Tensor(("n",), "float32")):
        n = T.int64()
        @R.function
        def g(a: R.Tensor((n,), "float32")) -> R.Tensor((n,), "float32"):
            return R.add(x, a)
        return g
""")
    add = relax.VirtualMachine(relax.build(module, exec_mode=mode))["mk"](np.ones(3, "float32"))
    np.testing.assert_array_equal(add(np.ones(3, "float32")).numpy(), np.full(3, 2))
    with pytest.raises(pliant.PliantError, match=r"'a' dim 0 must equal n = 3 \(from 'x' dim 0\), but is 4"):
        add(np.ones(4, "float32"))
