"""Tests that the attributes of calls, functions and modules behave as dicts, whose items can also be read as Python
attributes."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pliant as tvm
import pytest
from pliant import relax
from pliant.script import ir as I
from pliant.script import relax as R
from pliant.script import tir as T


@I.ir_module
class Module:
    I.module_attrs({"device_num": 2})

    @T.prim_func
    def copy(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        T.func_attr({"op_pattern": 0})
        for i in range(4):
            B[i] = A[i]

    @R.function
    def main(x: R.Tensor((2, 3, 4), "float32")):
        R.func_attr({"num_input": 1})
        y = R.permute_dims(x, axes=[2, 0, 1])
        return R.sum(y, axis=[1], keepdims=True)


def calls() -> list[Any]:
    return [binding.value for block in Module["main"].body.blocks for binding in block.bindings]


def test_attributes_by_name() -> None:
    transpose, total = calls()
    assert list(transpose.attrs.axes) == transpose.attrs["axes"] == [2, 0, 1]
    assert total.attrs.axis == [1]
    assert total.attrs.keepdims is True
    assert Module["main"].attrs["num_input"] == Module["main"].attrs.num_input == 1
    assert Module["copy"].attrs.op_pattern == 0
    assert Module.attrs.device_num == 2
    assert "axes" in transpose.attrs
    assert "axis" not in transpose.attrs
    assert transpose.attrs.get("axis", 7) == 7
    assert set(dir(transpose.attrs)) >= {"axes", "get", "items"}
    assert relax.op.add(*Module["main"].params, *Module["main"].params).attrs == {}
    assert (total.attrs.get_int_tuple("axis"), total.attrs.get_int("keepdims")) == ((1,), 1)
    assert isinstance(total.attrs, tvm.ir.Attrs)


def test_unknown_attribute_error_lists_names() -> None:
    transpose, total = calls()
    with pytest.raises(AttributeError, match=r"no attribute 'axis' \(there are: axes\)"):
        _ = transpose.attrs.axis
    with pytest.raises(AttributeError, match=r"no attribute 'axes' \(there are: axis, keepdims\)"):
        _ = total.attrs.axes
    with pytest.raises(AttributeError, match="there are none"):
        _ = tvm.IRModule({}).attrs.x
    with pytest.raises(KeyError):
        _ = total.attrs["axes"]
    assert getattr(total.attrs, "axes", None) is None
    assert not hasattr(total.attrs, "axes")


@pytest.mark.parametrize(
    "change",
    [
        lambda attrs: attrs.__setitem__("axis", [0]),
        lambda attrs: attrs.__delitem__("axis"),
        lambda attrs: setattr(attrs, "axis", [0]),
        lambda attrs: delattr(attrs, "axis"),
        lambda attrs: attrs.update(axis=[0]),
        lambda attrs: attrs.setdefault("other", 1),
        lambda attrs: attrs.pop("axis"),
        lambda attrs: attrs.popitem(),
        lambda attrs: attrs.clear(),
        lambda attrs: attrs.__ior__({"axis": [0]}),
    ],
)
def test_assignments_without_effect_are_rejected(change: Any) -> None:
    attrs = calls()[1].attrs
    with pytest.raises(TypeError, match="with_attr"):
        change(attrs)
    assert attrs == {"axis": [1], "keepdims": True}


def test_attributes_are_copied_to_new_calls() -> None:
    total = calls()[1]
    attrs = total.attrs
    for other in (copy.copy(attrs), copy.deepcopy(attrs), pickle.loads(pickle.dumps(attrs))):
        assert other == attrs
        assert other.axis == [1]
    assert attrs | {"axis": [0]} == {"axis": [0], "keepdims": True}
    again = relax.Call(total.op, total.args, attrs)
    assert again.attrs == attrs
    changed = relax.Call(total.op, total.args, {**attrs, "keepdims": False})
    assert changed.attrs.keepdims is False
    func = Module["main"].with_attrs(Module["copy"].attrs)
    assert (func.attrs.num_input, func.attrs.op_pattern) == (1, 0)


def test_local_functions_have_attributes() -> None:
    @I.ir_module
    class Nested:
        @R.function
        def main(x: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
            R.func_attr({"outer": 1})

            @R.function
            def local(a: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
                R.func_attr({"inner": "yes"})
                return R.add(a, x)

            return local(x)

    local = Nested["main"].body.blocks[0].bindings[0].value
    assert local.attrs == {"inner": "yes"}
    assert Nested["main"].attrs == {"outer": 1, "global_symbol": "main"}
    again = tvm.script.from_source(Nested.script())
    tvm.ir.assert_structural_equal(Nested, again)
    without = tvm.script.from_source(Nested.script().replace("yes", "no"))
    assert not tvm.ir.structural_equal(Nested, without)
    lifted = relax.transform.LambdaLift()(Nested)
    assert lifted["main_local"].attrs.inner == "yes"
