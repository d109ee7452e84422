"""Tests that the error for an invalid argument names the argument and says what to write instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pliant
from pliant import relax, te
from pliant.script import from_source

SOURCE = """
@R.function
def main(x: R.Tensor(("n", 4), "float32"), y: R.Tensor(("n", 4), "float32")):
    z = R.add(x, y)
    return z
"""
X = np.ones((2, 4), "float32")


@pytest.fixture(scope="module")
def func() -> relax.Function:
    return from_source(SOURCE)


@pytest.fixture(scope="module")
def ex(func: relax.Function) -> relax.Executable:
    return relax.build(func)


@pytest.mark.parametrize("dtype", ["complex64", ">f4", "U1", "M8[D]", "O", "V4", "longdouble"])
def test_unsupported_array_types_name_the_parameter(dtype: str, func: relax.Function, ex: relax.Executable) -> None:
    odd = np.zeros((2, 4), dtype)
    vm, model = relax.VirtualMachine(ex), pliant.compile(func)
    for call in (lambda: vm["main"](X, odd), lambda: model(X, odd), lambda: model(X, y=odd)):
        with pytest.raises(pliant.DTypeError, match="main: parameter 'y': arrays of .* are not supported"):
            call()


def test_unknown_devices(ex: relax.Executable) -> None:
    for good in (None, "cpu", "cpu:0", pliant.cpu(), [pliant.cpu(0)], pliant.device("llvm")):
        relax.VirtualMachine(ex, good)  # type: ignore[arg-type]
    bad: list[tuple[Any, type[Exception]]] = [
        ("gpu", pliant.UnsupportedError),
        ("cpu:1", ValueError),
        (["cpu", 3], TypeError),
        (3, TypeError),
    ]
    for device, error in bad:
        with pytest.raises(error):
            relax.VirtualMachine(ex, device)
    with pytest.raises(ValueError, match=r"there is no cpu\(5\)"):
        pliant.cpu(5)


def test_time_evaluator_rejects_zero_counts(ex: relax.Executable) -> None:
    vm = relax.VirtualMachine(ex)
    for arguments, name in (({"number": 0}, "number"), ({"repeat": 0}, "repeat")):
        with pytest.raises(ValueError, match=f"'{name}' must be at least 1"):
            vm.time_evaluator("main", **arguments)(X, X)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("run", "error", "text"),
    [
        (lambda f: pliant.compile(f, threads=0), pliant.CompileError, "the option `threads` must be at least 1, but is 0"),
        (lambda f: pliant.compile(f, threads=10_000), pliant.CompileError, "the option `threads` must be at most 1024"),
        (lambda f: pliant.compile(f, verify="no"), TypeError, "option 'verify'"),
        (lambda f: pliant.compile(f, threads=-1), TypeError, "option 'threads'"),
        (lambda f: pliant.compile(f, opt_level=-1), ValueError, "compile option: opt_level must be an int from 0 to 3, got -1"),
        (lambda f: pliant.compile(f, opt_level=99), ValueError, "opt_level must be an int from 0 to 3, got 99"),
        (lambda f: relax.build(f, opt_level=4), ValueError, "opt_level must be an int from 0 to 3, got 4"),
        (lambda f: pliant.compile(f, opt_level="3"), TypeError, "opt_level must be an int from 0 to 3"),
        (lambda f: pliant.compile(f, config={"kep_ir": True}), ValueError, "did you mean 'keep_ir'"),
        (lambda f: relax.build(f, exec_mode="compield"), pliant.CompileError, "there is no exec_mode 'compield'"),
        (lambda f: relax.build(f, relax_pipeline=["LegaliseOps"]), ValueError, "did you mean LegalizeOps"),
        (lambda f: relax.build(f, tir_pipeline="mine"), pliant.UnsupportedError, "the only pipeline"),
        (lambda f: pliant.compile(f, target="cuda"), pliant.UnsupportedError, "target 'cuda'"),
    ],
)
def test_compile_options(
    run: Callable[[Any], Any], error: type[Exception], text: str, func: relax.Function
) -> None:
    with pytest.raises(error, match=text):
        run(func)


def one_call(op: Any) -> relax.Function:
    """Returns a function that calls an operator on its parameter."""
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((3,), "float32"))
    with bb.function("main", [x]):
        bb.emit_func_output(bb.emit(op(x)))
    made: relax.Function = bb.get()["main"]
    return made


def test_invalid_user_operators() -> None:
    def register(func: Any, name: str = "test.bad") -> Any:
        return relax.op.register_op(name)(func)

    with pytest.raises(TypeError, match="the default of operand 'y' must be None"):
        register(lambda x, y=1: x)
    with pytest.raises(TypeError, match=r"\*\*options is not supported; declare each attribute"):
        register(lambda x, **options: x)
    with pytest.raises(ValueError, match="an operator of Pliant already has the name"):
        register(lambda x: x, "add")
    with pytest.raises(ValueError, match="is not a valid operator name"):
        register(lambda x: x, "no name!")
    for name in ("u.class", "u.1x", "u.__init__", "const", "dtype", "function"):
        with pytest.raises(ValueError, match="is not a valid operator name"):
            register(lambda x: x, name)
    with pytest.raises(pliant.PliantError, match="returned no output"):
        op = register(lambda x: [], "test.empty")
        pliant.compile(pliant.IRModule({"main": one_call(op)}))

    def call(op: Any) -> Any:
        bb = relax.BlockBuilder()
        x = relax.Var("x", relax.TensorStructInfo((3,), "float32"))
        with bb.function("main", [x]):
            return bb.emit(op(x))

    returns_none = register(lambda x: None, "test.none")
    with pytest.raises(pliant.PliantError, match="the function that defines the operator returned NoneType, not a te.Tensor"):
        call(returns_none)
    raises = register(lambda x: te.compute((1 // 0,), lambda i: x[i]), "test.raises")
    with pytest.raises(pliant.PliantError, match=r"ZeroDivisionError.*test_bad_arguments.py, line \d+"):
        call(raises)


PRODUCT = """
@T.prim_func
def main(a: T.handle, b: T.handle, c: T.handle):
    n, m, k = T.int64(), T.int64(), T.int64()
    A = T.match_buffer(a, (n, k), "float32")
    B = T.match_buffer(b, (k, m), "float32")
    C = T.match_buffer(c, (n, m), "float32")
    for i, j, p in T.grid(n, m, k):
        with T.block("mm"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, p])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
"""


@pytest.mark.parametrize("kernels", ["on", "off"])
@pytest.mark.parametrize("n", [1, 4, 64])
def test_outputs_aliasing_inputs_are_rejected(kernels: str, n: int) -> None:
    main = pliant.build(from_source(PRODUCT), kernels=kernels)["main"]
    rows = np.random.default_rng(0).standard_normal((2 * n + 1, n)).astype("float32")
    a, b = rows[:n].copy(), np.eye(n, dtype="float32")
    # Adjacent memory does not overlap; inputs may be identical; a transposed input is copied.
    main(rows[:n], b, rows[n : 2 * n])
    np.testing.assert_array_equal(rows[n : 2 * n], a)
    main(b, b, rows[:n])
    np.testing.assert_array_equal(rows[:n], b)
    out = a.copy()
    main(out, b, a)
    for x, y, z in [(a, b, a), (a, b, b), (rows[:n], b, rows[1 : n + 1] if n > 1 else rows[:n])]:
        before = z.copy()
        with pytest.raises(pliant.PliantError, match="'C' is written, but shares memory with '[AB]'"):
            main(x, y, z)
        np.testing.assert_array_equal(z, before)
    empty = np.zeros((0, n), "float32")
    main(empty, b, empty)


SHIFT = """
@I.ir_module
class Module:
    @T.prim_func
    def shift(x: T.Buffer((8,), "float32"), o: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.block("shift"):
                vi = T.axis.remap("S", [i])
                o[vi] = x[T.min(vi + 1, 7)] + x[T.max(vi - 1, 0)]

    @R.function(pure=False)
    def main(x: R.Tensor((8,), "float32"), o: R.Tensor((8,), "float32"), c: R.Tensor((), "bool")):
        cls = Module
        {body}
        _ = cls.shift(x, o2)
        return x
"""
NAMES = {
    "its own": "o2 = o",
    "checked": 'o2 = R.match_cast(o, R.Tensor((8,), "float32"))',
    "branch": "if c:\n            o2 = o\n        else:\n            o2 = x",
    "field": "t = (o, x)\n        o2 = t[0]",
}


@pytest.mark.parametrize("mode", ["bytecode", "compiled"])
@pytest.mark.parametrize("name", NAMES)
def test_aliased_outputs_are_detected_through_renames(name: str, mode: str) -> None:
    main = pliant.compile(from_source(SHIFT.format(body=NAMES[name])), exec_mode=mode)
    numbers = np.arange(16, dtype="float32")
    with pytest.raises(pliant.PliantError, match="is written, but shares memory with 'x'"):
        main(numbers[:8], numbers[1:9], np.array(True))
    np.testing.assert_array_equal(numbers, np.arange(16))
    main(numbers[:8], numbers[8:], np.array(True))
    assert numbers[8:].tolist() == [1, 2, 4, 6, 8, 10, 12, 13]


@pytest.mark.parametrize(
    "call",
    [
        "R.nn.pad(x, pad_width=[1, 1, 0, 0, 0, 0, 0, 0], pad_value={value})",
        "R.layout_transform(x, index_map=lambda a, b, c, d: (a, b, c, d // 4, d % 4), pad_value={value})",
        "R.image.resize2d(x, R.shape([3, 3]), roi=[0.0, 0.0, 1.0, 1.0], extrapolation_value={value}, "
        'coordinate_transformation_mode="tf_crop_and_resize")',
    ],
)
@pytest.mark.parametrize(
    ("dtype", "value"),
    [("int8", "128"), ("uint8", "-1"), ("bool", "2"), ("int32", 'float("inf")'), ("int64", "2.0**63"), ("uint64", "2.0**63")],
)
def test_padding_values_must_fit_the_dtype(call: str, dtype: str, value: str) -> None:
    source = f"""
@R.function
def main(x: R.Tensor((1, 1, 4, 4), "{dtype}")):
    return {call}
"""
    with pytest.raises(pliant.PliantError, match=f"_value must be a value of {dtype}"):
        from_source(source.format(value=value))


def test_unique_along_a_long_empty_axis() -> None:
    """Tests `unique` along a long empty axis: an index of 8 bytes per slice would need 8 TiB."""
    model = pliant.compile(
        from_source("""
@R.function
def main(x: R.Tensor(("n", "m"), "float32")):
    return R.unique(x, axis=0)
""")
    )
    assert model(np.zeros((3, 0), "float32")).shape == (1, 0)
    with pytest.raises(pliant.VMError, match="out of memory"):
        model(np.zeros((2**40, 0), "float32"))


def test_rank_and_shape_must_agree() -> None:
    assert relax.TensorStructInfo((1, 2), "float32", ndim=2).ndim == 2
    with pytest.raises(pliant.ShapeError, match="'ndim' is 3, but the shape has 2 dims"):
        relax.TensorStructInfo((1, 2), "float32", ndim=3)
    with pytest.raises(pliant.ShapeError, match="'ndim' is 1, but the shape has 2 dims"):
        relax.ShapeStructInfo((1, 2), ndim=1)
    with pytest.raises(pliant.ShapeError, match="not -5"):
        relax.TensorStructInfo(None, "float32", ndim=-5)
