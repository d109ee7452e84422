"""Tests run-time values: arrays, shapes, DLPack, packed functions."""

from __future__ import annotations

import gc
import sys
import textwrap
import weakref
from typing import Any

import numpy as np
import pytest

import pliant
from pliant import nd, relax, runtime
from pliant.script import from_source

DTYPES = [
    *("bool", "float16", "float32", "float64"),
    *(f"{k}{b}" for k in ("int", "uint") for b in (8, 16, 32, 64)),
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (1,), (3,), (2, 3), (2, 0, 4), (1, 2, 1, 3, 1, 2, 1)])
def test_numpy_round_trip(dtype: str, shape: tuple[int, ...]) -> None:
    array = (np.arange(np.prod(shape, dtype=int)).reshape(shape) % 2).astype(dtype)
    copy = nd.array(array)
    assert copy.shape == shape and copy.dtype == dtype and copy.ndim == len(shape)
    out = copy.numpy()
    assert out.dtype == array.dtype and out.shape == shape
    np.testing.assert_array_equal(out, array)
    np.testing.assert_array_equal(np.from_dlpack(copy), array)
    np.testing.assert_array_equal(np.asarray(copy), array)


def test_arrays_are_shared_without_a_copy() -> None:
    array = np.arange(12, dtype="float32").reshape(3, 4)
    view = nd.from_dlpack(array)
    array[0, 0] = 77
    assert view.numpy()[0, 0] == 77
    view.numpy()[1, 1] = 5
    assert array[1, 1] == 5


def test_strided_and_read_only_arrays_are_shared() -> None:
    array = np.arange(24, dtype="int32").reshape(4, 6)
    for view in (array[:, ::2], array[::-1, ::-2], array.T, array[1:3], array[:, 1:2], np.broadcast_to(array[0], (5, 6))):
        shared = nd.from_dlpack(view)
        np.testing.assert_array_equal(shared.numpy(), view)
        assert np.shares_memory(shared.numpy(), array)
        assert shared.read_only == (not view.flags.writeable)
    array.flags.writeable = False
    locked = nd.from_dlpack(array)
    assert locked.read_only and not locked.numpy().flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        locked[0] = 1


def test_memory_lives_as_long_as_it_is_referenced() -> None:
    array = np.ones(1000, "float32")
    count = sys.getrefcount(array)
    shared = nd.from_dlpack(array)
    out = shared.numpy()
    del shared
    gc.collect()
    assert sys.getrefcount(array) > count
    assert out.sum() == 1000
    del out
    gc.collect()
    assert sys.getrefcount(array) == count

    owned = nd.array([1.0, 2.0])
    alive = weakref.ref(owned)
    view = np.from_dlpack(owned)
    del owned
    gc.collect()
    assert alive() is None
    np.testing.assert_array_equal(view, [1.0, 2.0])


def test_dlpack_protocol() -> None:
    array = nd.array(np.arange(3, dtype="int64"))
    assert array.__dlpack_device__() == (1, 0)
    assert "dltensor_versioned" in repr(array.__dlpack__(max_version=(1, 0)))
    capsule = array.__dlpack__()
    assert '"dltensor"' in repr(capsule)
    again = nd.from_dlpack(capsule)
    np.testing.assert_array_equal(again.numpy(), [0, 1, 2])
    with pytest.raises(ValueError, match="already consumed"):
        nd.from_dlpack(capsule)
    copied = np.from_dlpack(array, copy=True) if np.lib.NumpyVersion(np.__version__) >= "2.1.0" else None
    if copied is not None:
        assert not np.shares_memory(copied, array.numpy())


class OldProducer:
    """A DLPack producer of the time before DLPack 1.0: it does not accept ``max_version``."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __dlpack__(self, stream: Any = None) -> Any:
        return self.array.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def test_legacy_dlpack_producers() -> None:
    array = np.arange(6, dtype="float64").reshape(2, 3)
    np.testing.assert_array_equal(nd.from_dlpack(OldProducer(array)).numpy(), array)


class Interface:
    """An array-like object that has only ``__array_interface__``."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array
        self.__array_interface__ = array.__array_interface__


def test_array_interface_is_shared() -> None:
    array = np.arange(4, dtype="float32")
    shared = nd.from_dlpack(Interface(array))
    array[0] = 9
    assert shared.numpy()[0] == 9


def test_construction_from_python_values() -> None:
    assert nd.array(2).dtype == "int64" and nd.array(2).shape == ()
    assert nd.array(2.5).dtype == "float32" and float(nd.array(2.5)) == 2.5
    assert nd.array(True).dtype == "bool" and bool(nd.array(True))
    assert nd.array([[1.0, 2.0]]).dtype == "float32"
    assert nd.array([1, 2], dtype="float16").dtype == "float16"
    assert nd.empty((2, 3)).shape == (2, 3) and nd.empty((2,), "int8").numpy().sum() == 0
    assert int(nd.array([5])) == 5 and nd.array([5]).item() == 5


def test_assignment_and_copies() -> None:
    array = nd.empty((2, 3))
    array[:] = np.ones((2, 3), "float32")
    array[0, 1] = 7
    np.testing.assert_array_equal(array.numpy(), [[1, 7, 1], [1, 1, 1]])
    other = array.copy()
    other[:] = 0
    assert array.numpy().sum() == 12
    array.copyto(other)
    assert other.numpy().sum() == 12
    array[:] = nd.array(np.full((2, 3), 2, "float32"))
    assert array.numpy().sum() == 12
    assert array.copyfrom(np.zeros((2, 3), "float32")) is array and array.numpy().sum() == 0


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: nd.array(object()), TypeError, "an object of type object cannot be converted to a tensor"),
        (lambda: nd.array(np.zeros(3, "complex64")), TypeError, "arrays of complex64 are not supported"),
        (lambda: nd.array(np.array(["a"])), TypeError, "not supported"),
        (lambda: nd.array([1], dtype="float31"), TypeError, "unknown dtype 'float31'"),
        (lambda: nd.empty((-1,)), ValueError, "negative dimension"),
        (lambda: nd.empty((1 << 40, 1 << 40)), ValueError, "too large"),
        (lambda: nd.from_dlpack(3), TypeError, "neither __dlpack__ nor the buffer protocol"),
        (lambda: float(nd.empty((2,))), TypeError, "2 elements cannot be converted to a number"),
        (lambda: len(nd.array(1)), TypeError, "rank 0"),
        (lambda: pliant.device("cuda"), NotImplementedError, "CPU only"),
    ],
)
def test_invalid_arrays(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


def test_shapes() -> None:
    shape = runtime.ShapeTuple([2, 3])
    assert list(shape) == [2, 3] and len(shape) == 2 and shape[1] == 3 and shape[-1] == 3
    assert shape == (2, 3) and shape == runtime.ShapeTuple([2, 3]) and hash(shape) == hash((2, 3))
    assert repr(shape) == "ShapeTuple([2, 3])"
    with pytest.raises(IndexError):
        shape[2]


def test_devices_and_targets() -> None:
    assert repr(pliant.cpu()) == "cpu(0)" and pliant.cpu(0) == pliant.device("cpu")
    assert pliant.target.Target("llvm -mcpu=native").backend == "llvm"
    with pytest.raises(pliant.UnsupportedError, match="target 'cuda'"):
        pliant.target.Target("cuda")


def test_packed_functions(packed: Any) -> None:
    packed("test.sum", lambda a, b: a.numpy() + b.numpy())
    func = pliant.get_global_func("test.sum")
    assert func is not None and func.name == "test.sum"
    np.testing.assert_array_equal(func(np.ones(2), np.ones(2)).numpy(), [2, 2])
    assert "test.sum" in pliant.registry.list_global_func_names()
    with pytest.raises(ValueError, match="already registered"):
        pliant.register_func("test.sum", print)
    with pytest.raises(ValueError, match="no packed function is registered as 'test.none'"):
        pliant.get_global_func("test.none")
    assert pliant.get_global_func("test.none", allow_missing=True) is None
    with pytest.raises(TypeError, match="callable"):
        pliant.register_func("test.bad", 3)  # type: ignore[call-overload]


def test_values_travel_through_packed_functions(packed: Any) -> None:
    marker = object()
    packed("test.same", lambda v: v)
    same = pliant.get_global_func("test.same")
    assert same is not None
    for value in (1, 2.5, True, "text", None):
        assert same(value) == value
    assert same(marker) is marker
    assert same((2, 3)) == runtime.ShapeTuple([2, 3])
    mixed = same((np.ones(1), 2, "a"))
    assert isinstance(mixed, tuple) and mixed[1:] == (2, "a")
    with pytest.raises(ValueError, match="64 bits"):
        same(1 << 70)


def test_exceptions_keep_type_and_traceback(packed: Any) -> None:
    class Mine(Exception):
        pass

    def fail() -> None:
        raise Mine("from inside")

    packed("test.fail", fail)
    func = pliant.get_global_func("test.fail")
    assert func is not None
    with pytest.raises(Mine, match="from inside") as info:
        func()
    assert any(entry.name == "fail" for entry in info.traceback)


@pytest.mark.parametrize("value", [300, -129])
def test_out_of_range_scalars_are_rejected(value: int) -> None:
    module = pliant.script.from_source(
        textwrap.dedent("""
        @I.ir_module
        class Module:
            @T.prim_func
            def fill(s: T.int8, B: T.Buffer((1,), "float32")):
                B[0] = T.Cast("float32", s)
        """)
    )
    vm = relax.VirtualMachine(relax.build(module), pliant.cpu())
    out = pliant.nd.array(np.zeros(1, np.float32))
    vm["fill"](-128, out)
    assert out.numpy()[0] == -128
    with pytest.raises(pliant.PliantError, match="int8"):
        vm["fill"](value, out)
    same = pliant.script.from_source("@R.function\ndef same(s: R.Prim('int8')):\n    return s")
    with pytest.raises(pliant.PliantError, match="int8 scalar"):
        pliant.compile(same)(value)


def test_loop_function_check_errors_name_location_and_values() -> None:
    module = pliant.script.from_source(
        textwrap.dedent("""
        @I.ir_module
        class Module:
            @T.prim_func
            def shift(a: T.handle, k: T.int64, b: T.handle):
                n = T.int64()
                A = T.match_buffer(a, (n,), "float32")
                B = T.match_buffer(b, (n,), "float32")
                for i in range(n):
                    B[i] = A[i + k]
        """)
    )
    vm = relax.VirtualMachine(relax.build(module), pliant.cpu())
    x, y = (pliant.nd.array(np.zeros(3, np.float32)) for _ in range(2))
    with pytest.raises(pliant.ShapeError, match=r"'A'.*loop function .shift.*, called with float32\(3\), 7, float32\(3\)"):
        vm["shift"](x, 7, y)


@pytest.mark.parametrize("size", [1, 3, 9, 40])
def test_nonzero_bool_bytes_are_true(size: int) -> None:
    module = from_source(
        '''
@R.function
def main(x: R.Tensor(("n",), "bool")):
    with R.dataflow():
        y = (R.sum(x), R.astype(x, "int32"), R.cumsum(R.astype(x, "float32")))
        R.output(y)
    return y
'''
    )
    bytes_ = (np.arange(size) * 85 % 256).astype("uint8")
    wanted = bytes_ != 0
    for mode in ("bytecode", "compiled"):
        total, ints, sums = pliant.compile(module, exec_mode=mode)(bytes_.view(bool))
        assert int(total.numpy()) == wanted.sum()
        np.testing.assert_array_equal(ints.numpy(), wanted)
        np.testing.assert_array_equal(sums.numpy(), np.cumsum(wanted))


@pytest.mark.parametrize("mode", ["bytecode", "compiled"])
def test_all_16_bit_floats_are_read_exactly(mode: str) -> None:
    module = from_source(
        '''
@R.function
def main(x: R.Tensor(("n",), "float16"), y: R.Tensor((), "float16")):
    with R.dataflow():
        z = (R.astype(x, "float32"), R.add(x, y))
        R.output(z)
    return z
'''
    )
    x = np.arange(1 << 16, dtype="uint16").view("float16")
    wide, same = pliant.compile(module, exec_mode=mode)(x, np.array(0, "float16"))
    np.testing.assert_array_equal(wide.numpy(), x.astype("float32"))
    np.testing.assert_array_equal(same.numpy(), x)
    np.testing.assert_array_equal(np.signbit(wide.numpy()), np.signbit(x))


@pytest.mark.parametrize("mode", ["bytecode", "compiled"])
def test_floats_are_rounded_to_16_bits_as_they_are_stored(mode: str) -> None:
    module = from_source(
        '''
@R.function
def main(x: R.Tensor(("n", 3), "float32"), y: R.Tensor((), "float32")):
    with R.dataflow():
        z = R.strided_slice(R.astype(R.add(x, y), "float16"), [1], [0], [3], [2])
        R.output(z)
    return z
'''
    )
    halves = np.arange(1 << 16, dtype="uint16").view("float16").astype("float32").view("uint32")
    # All halves, the midpoints between neighbours, and the floats next to both; then random bits.
    near = np.concatenate([halves + np.uint32(d) for d in (0, 1, 0xFFFFFFFF, 0x1000, 0xFFF, 0x1001)])
    bits = np.concatenate([near, np.random.default_rng(0).integers(0, 1 << 32, 600_000, dtype="uint32")])
    x = bits[: len(bits) // 3 * 3].view("float32").reshape(-1, 3)
    found = pliant.compile(module, exec_mode=mode)(x, np.array(0, "float32")).numpy()
    with np.errstate(over="ignore", invalid="ignore"):
        np.testing.assert_array_equal(found, (x + np.float32(0)).astype("float16")[:, ::2])
