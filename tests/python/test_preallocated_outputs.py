"""Tests the argument ``out`` of calls: arrays of the caller for the results, and ``Model.bind``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pliant
from pliant.script import ir as I
from pliant.script import relax as R


@I.ir_module
class SumAndDifference:
    @R.function
    def main(x: R.Tensor(("n", 2), "float32"), y: R.Tensor(("n", 2), "float32")):
        with R.dataflow():
            a = R.add(x, y)
            b = R.subtract(x, y)
            R.output(a, b)
        return (a, b)


@I.ir_module
class Double:
    @R.function
    def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        return R.add(x, x)


@pytest.fixture(scope="module")
def pair() -> pliant.Model:
    return pliant.compile(SumAndDifference)


@pytest.fixture(scope="module")
def double() -> pliant.Model:
    return pliant.compile(Double)


def inputs(n: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    rng = np.random.default_rng(n)
    return rng.random((n, 2), "float32"), rng.random((n, 2), "float32")


@pytest.mark.parametrize("n", [0, 1, 5])
def test_results_are_written_and_returned(pair: pliant.Model, double: pliant.Model, n: int) -> None:
    x, y = inputs(n)
    a, b = np.full_like(x, np.nan), np.full_like(x, np.nan)
    first, second = pair(x, y, out=(a, b))
    assert first is a and second is b
    np.testing.assert_array_equal(a, x + y)
    np.testing.assert_array_equal(b, x - y)
    single = np.empty(2 * n, np.float32)
    assert double(x.ravel(), out=single) is single
    np.testing.assert_array_equal(single, 2 * x.ravel())


def test_none_stands_for_new_memory(pair: pliant.Model) -> None:
    x, y = inputs(3)
    b = np.empty_like(x)
    first, second = pair(x, y, out=[None, b])
    assert second is b
    np.testing.assert_array_equal(np.asarray(first), x + y)


def test_tensors_of_pliant_and_views_are_written(double: pliant.Model) -> None:
    x = np.arange(4, dtype=np.float32)
    tensor = pliant.nd.array(np.zeros(4, np.float32))
    assert double(x, out=tensor) is tensor
    np.testing.assert_array_equal(tensor.numpy(), 2 * x)
    rows = np.zeros((3, 4), np.float32)
    double(x, out=rows[1])
    np.testing.assert_array_equal(rows, [[0] * 4, [0, 2, 4, 6], [0] * 4])


def test_named_runs_write_the_requested_outputs() -> None:
    from onnx_models import FLOAT, model_of, node

    nodes = [node("Add", "x x", "sum"), node("Neg", "x", "negative")]
    model = pliant.compile(model_of(nodes, {"x": (FLOAT, ["n"])}, ["sum", "negative"]))
    x, out = np.arange(3, dtype=np.float32), np.empty(3, np.float32)
    (result,) = model.run(["negative"], {"x": x}, out=[out])
    assert np.shares_memory(result, out)
    np.testing.assert_array_equal(out, -x)
    with pytest.raises(ValueError, match="out has 1 entries, but the call has 2 results"):
        model.run(None, {"x": x}, out=[out])


BAD: dict[str, tuple[Any, type[Exception], str]] = {
    "too few": (lambda x: (np.empty_like(x),), ValueError, "out has 1 entries, but the call has 2 results"),
    "shape": (lambda x: (np.empty_like(x), np.empty((4, 2), np.float32)), pliant.ShapeError, r"out\[1\] has the shape \[4, 2\]"),
    "rank": (lambda x: (np.empty(6, np.float32), None), pliant.ShapeError, r"out\[0\] has the shape \[6\]"),
    "data type": (lambda x: (np.empty((3, 2)), None), pliant.DTypeError, r"out\[0\] has the data type float64"),
    "no array": (lambda x: (None, 3.5), TypeError, r"out\[1\] must be an array or None, not float"),
    "strides": (lambda x: (np.empty((2, 3), np.float32).T, None), ValueError, r"out\[0\] is not contiguous"),
}


@pytest.mark.parametrize("name", BAD)
def test_wrong_arrays_are_rejected(pair: pliant.Model, name: str) -> None:
    make, error, message = BAD[name]
    x, y = inputs(3)
    with pytest.raises(error, match=message):
        pair(x, y, out=make(x))


def test_nothing_is_written_if_one_array_does_not_fit(pair: pliant.Model) -> None:
    x, y = inputs(3)
    a = np.zeros_like(x)
    with pytest.raises(pliant.ShapeError):
        pair(x, y, out=(a, np.empty((1, 2), np.float32)))
    assert not a.any()


def test_read_only_and_overlapping_arrays_are_rejected(pair: pliant.Model, double: pliant.Model) -> None:
    x, y = inputs(3)
    constant = np.empty_like(x)
    constant.flags.writeable = False
    with pytest.raises(ValueError, match=r"out\[0\] is read-only"):
        pair(x, y, out=(constant, None))
    memory = np.empty((4, 2), np.float32)
    with pytest.raises(ValueError, match=r"out\[0\] and out\[1\] share memory"):
        pair(x, y, out=(memory[:3], memory[1:]))
    with pytest.raises(ValueError, match=r"out\[1\] shares memory with argument 0"):
        pair(x, y, out=(None, x))
    line = np.empty(6, np.float32)
    with pytest.raises(ValueError, match=r"out\[0\] shares memory with argument 0"):
        double(line[:4], out=line[2:])


def test_bound_calls_read_the_arrays_at_each_call(pair: pliant.Model, double: pliant.Model) -> None:
    x, out = np.ones(3, np.float32), np.empty(3, np.float32)
    call = double.bind(x, out=out)
    assert call() is out and out.tolist() == [2, 2, 2]
    x[:] = [1, 2, 3]
    call(timeout=60, cancel=pliant.CancelToken())
    assert out.tolist() == [2, 4, 6]
    x, y = inputs(2)
    first, _ = pair.bind(x, y=pliant.nd.array(y))()
    np.testing.assert_array_equal(np.asarray(first), x + y)


def test_wrong_bindings_are_rejected(pair: pliant.Model) -> None:
    x, y = inputs(2)
    for args, kwargs in [((x,), {}), ((x, y, x), {}), ((x, y), {"x": x}), ((x,), {"z": y})]:
        with pytest.raises(TypeError, match="the model takes the inputs x, y"):
            pair.bind(*args, **kwargs)
    with pytest.raises(TypeError, match="'y' must be an array, not list"):
        pair.bind(x, [[1.0, 2.0]])
