"""Tests ``@R.macro``: named groups of statements that scripts can reuse."""

from __future__ import annotations

import numpy as np
import pytest

import pliant
from pliant import _core, relax
from pliant.script import ir as I
from pliant.script import relax as R
from pliant.script import tir as T

FACTOR = 3.0


@R.macro
def scaled(x, factor=None):
    return x


def run(func: relax.Function, *args: np.ndarray) -> np.ndarray:
    return relax.VirtualMachine(relax.build(pliant.IRModule({"main": func})), pliant.cpu())["main"](*args).numpy()


def same(a: relax.Function, b: relax.Function) -> None:
    pliant.ir.assert_structural_equal(a.without_attr("global_symbol"), b.without_attr("global_symbol"))


def test_hygienic_macros_capture_their_definition_scope() -> None:
    size = 2

    @R.macro(hygienic=True)
    def alloc_and_shape(dtype: str):
        alloc = R.builtin.alloc_tensor(R.shape([size]), runtime_device_index=0, dtype=dtype)
        shape = R.shape_of(alloc)
        return shape

    size = 1

    @R.function(private=True, pure=False)
    def used(z: R.Tensor((4, 4), "float32")):
        shape = alloc_and_shape(dtype="float32")
        return shape

    @R.function(private=True, pure=False)
    def expected(z: R.Tensor((4, 4), "float32")):
        alloc = R.builtin.alloc_tensor(R.shape([2]), runtime_device_index=0, dtype="float32")
        inner = R.shape_of(alloc)
        shape = inner
        return shape

    assert size == 1
    same(used, expected)


def test_non_hygienic_macros_capture_the_call_scope() -> None:
    size = 2

    @R.macro(hygienic=False)
    def filled(dtype):
        return R.full((size,), R.const(FACTOR, dtype), dtype)

    size = 1

    @R.function(private=True)
    def used(z: R.Tensor((4, 4), "float32")):
        a = filled("float32")
        return a

    @R.function(private=True)
    def expected(z: R.Tensor((4, 4), "float32")):
        a = R.full((1,), R.const(3.0, "float32"), "float32")
        return a

    assert size == 1
    same(used, expected)


@R.macro(hygienic=False)
def plus_local(x):
    t = R.add(x, y)
    return t


@R.macro
def plus_hidden(x):
    return R.add(x, y)


def test_non_hygienic_macros_see_local_variables() -> None:
    @R.function
    def main(x: R.Tensor((3,), "float32"), c: R.Tensor((), "bool")) -> R.Tensor((3,), "float32"):
        if c:
            y = R.exp(x)
        else:
            y = R.negative(x)
        t = R.sqrt(x)
        u = plus_local(t)
        return R.multiply(u, t)

    x = np.array([0.5, 1, 2], "float32")
    want = (np.sqrt(x) + np.exp(x)) * np.sqrt(x)
    np.testing.assert_allclose(run(main, x, np.array(True)), want, rtol=1e-6)

    with pytest.raises(pliant.error.ScriptError, match="unknown name 'y'") as error:

        @R.function
        def other(x: R.Tensor((3,), "float32")):
            y = R.exp(x)
            return plus_hidden(y)

    # The reported line is the macro's own.
    assert error.value.text is not None and "return R.add(x, y)" in error.value.text


@R.macro
def scale(x, factor):
    y = R.multiply(x, R.const(factor, "float32"))
    return y


@R.macro
def both(x, names):
    a = scale(x, FACTOR)
    b = scale(a, factor=2)
    return (a, b, names)


def test_macros_use_macros_and_return_any_value() -> None:
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
            with R.dataflow():
                y = scale(R.exp(x), 0.5)
                a, b, axis = both(y, -1)
                s = R.cumsum(R.add(a, b), axis=axis)
                R.output(s)
            return s

    x = np.arange(4, dtype="float32") / 4
    want = np.cumsum(np.exp(x) * 0.5 * 3 * 3, dtype="float32")
    vm = relax.VirtualMachine(relax.build(Module), pliant.cpu())
    np.testing.assert_allclose(vm["main"](x).numpy(), want, rtol=1e-5)
    pliant.ir.assert_structural_equal(pliant.script.from_source(Module.script(show_meta=True)), Module)


@R.macro
def log_it(x, name):
    _ = R.call_packed(name, x, sinfo_args=R.Tuple())


@R.macro
def absolute(x):
    if R.less(x, R.const(0, "float32")):
        y = R.negative(x)
    else:
        y = x
    return y


def test_macros_contain_side_effects_and_branches() -> None:
    seen = []
    pliant.register_func("test.macros.log", lambda x: seen.append(float(x.numpy())), override=True)

    @R.function(pure=False)
    def main(x: R.Tensor((), "float32")) -> R.Tensor((), "float32"):
        log_it(x, "test.macros.log")
        y = absolute(x)
        for i in R.range(2):
            y = R.add(y, absolute(x))
        log_it(y, "test.macros.log")
        return y

    assert float(run(main, np.array(-2, "float32"))) == 6
    assert seen == [-2, 6]


def test_macros_in_script_text_are_local() -> None:
    module = pliant.script.from_source(
        """
@R.macro
def twice(x):
    y = R.add(x, x)
    return y

@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2,), "float32")):
        y = twice(twice(x))
        return y
"""
    )
    assert "R.add(x, x)" in module.script() and "twice" not in module.script()
    np.testing.assert_array_equal(run(module["main"], np.ones(2, "float32")), [4, 4])


def refuse(match: str, text: str) -> None:
    with pytest.raises(pliant.error.ScriptError, match=match):
        pliant.script.from_source(text)


HEAD = "@R.macro\ndef m(a, b):\n    return R.add(a, b)\n@R.function\ndef main(x: R.Tensor((2,), 'float32')):\n"


def test_macro_errors() -> None:
    refuse("the call of macro 'm' does not pass the parameter 'b'", HEAD + "    return m(x)\n")
    refuse("takes 2 arguments, but 3", HEAD + "    return m(x, x, x)\n")
    refuse("has no parameter 'c'", HEAD + "    return m(x, c=x)\n")
    refuse("passes the parameter 'a' twice", HEAD + "    return m(x, a=x)\n")
    refuse("hygienic", HEAD.replace("@R.macro", "@R.macro(hygenic=True)") + "    return m(x, x)\n")
    refuse("'m' uses itself: macros cannot recurse", HEAD.replace("R.add(a, b)", "m(b, a)") + "    return m(x, x)\n")
    with pytest.raises(pliant.error.ScriptError, match="neither default"):

        @R.function
        def second(x: R.Tensor((2,), "float32")):
            return scaled(x)

    with pytest.raises(TypeError, match="inside a script"):
        scale(1, 2)
    with pytest.raises(TypeError, match="@R.macro"):
        R.macro(True)


def test_recursive_macros_are_reported() -> None:
    @R.macro
    def again(a):
        return again(a)

    with pytest.raises(pliant.error.ScriptError, match="macro 'again' uses itself: macros cannot recurse"):

        @R.function
        def main(x: R.Tensor((2,), "float32")):
            return again(x)


def test_an_error_in_a_macro_names_its_use() -> None:
    text = HEAD.replace("R.add(a, b)", "R.add(a, R.shape([1]))") + "    y = R.exp(x)\n    return m(y, x)\n"
    with pytest.raises(pliant.error.ScriptError, match=r"\(macro 'm' is used here: <str>:7\)") as info:
        pliant.script.from_source(text)
    assert info.value.lineno == 3
    outer = "@R.macro\ndef n(a):\n    return m(a, a)\n"
    text = text.replace("@R.function", outer + "@R.function").replace("m(y, x)", "n(y)")
    with pytest.raises(pliant.error.ScriptError, match=r"'m' is used here: <str>:6\) \(macro 'n' is used here: <str>:10\)"):
        pliant.script.from_source(text)

    @R.macro
    def wrong(a):
        return R.add(a, R.shape([1]))

    def use() -> None:
        @R.function
        def main(x: R.Tensor((2,), "float32")):
            return wrong(x)  # here

    lines = open(__file__, encoding="utf-8").read().split("\n")
    at = next(i for i, line in enumerate(lines, 1) if line.endswith("wrong(x)  # here"))
    with pytest.raises(pliant.error.ScriptError, match=rf"macro 'wrong' is used here: .*:{at}\)"):
        use()


def test_macro_sources_are_stored_once() -> None:
    @R.macro
    def twice(x):
        return R.add(x, x)

    text = HEAD + "    return m(x, x)\n"
    pliant.script.from_source(text)
    before = _core.source_texts()
    for _ in range(3):
        pliant.script.from_source(text)

        @R.function
        def main(x: R.Tensor((2,), "float32")):
            return twice(x)

    after = _core.source_texts()
    # The function's text and that of its macro.
    assert after[0] - before[0] <= 2


@R.macro(hygienic=False)
def increased(x):
    return R.call_tir(Module.increase, (x,), out_sinfo=R.Tensor((3,), "float32"))


def test_loop_functions_are_called_from_macros() -> None:
    @I.ir_module
    class Module:
        @T.prim_func(private=True)
        def increase(A: T.Buffer((3,), "float32"), B: T.Buffer((3,), "float32")):
            for i in range(3):
                with T.block("increase"):
                    vi = T.axis.spatial(3, i)
                    B[vi] = A[vi] + T.float32(1)

        @R.function
        def main(x: R.Tensor((3,), "float32")):
            return increased(increased(x))

    vm = relax.VirtualMachine(relax.build(Module), pliant.cpu())
    np.testing.assert_array_equal(vm["main"](np.zeros(3, "float32")).numpy(), [2, 2, 2])
