"""Tests objects of the IR as Python objects: truth value, hash, equality, constructors and attributes."""

from __future__ import annotations

from typing import Any

import pytest

import pliant
from pliant import relax, te, tir
from pliant.script import from_source
from pliant.script import relax as R

MODULE = """
@I.ir_module
class Module:
    @T.prim_func
    def double(a: T.Buffer((4,), "float32"), b: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("b"):
                v = T.axis.spatial(4, i)
                b[v] = a[v] * T.float32(2)

    @R.function(private=True)
    def hidden(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        return x

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        cls = Module
        y = R.call_tir(cls.double, (x,), out_sinfo=R.Tensor((4,), "float32"))
        return y
"""


@pytest.fixture(scope="module")
def module() -> pliant.IRModule:
    return from_source(MODULE)


def objects(module: pliant.IRModule) -> list[Any]:
    main, n = module["main"], tir.Var("n", "int64")
    x = relax.Var("x", R.Tensor((n, 4), "float32"))
    block = main.body.blocks[0]
    return [
        module, main, module["double"], module["hidden"], main.body, block, block.bindings[0],
        relax.GlobalVar("f"), relax.ExternFunc("f"), relax.Tuple([]), relax.Tuple([x]), relax.ShapeExpr([]),
        relax.ShapeExpr([n, 0]), relax.StringImm(""), relax.DataTypeImm("float32"),
        relax.Var("t", R.Tuple(R.Object)), relax.Var("f", R.Callable()), relax.Var("s", R.Shape(ndim=0)),
        R.Tensor((n, 4), "float32"), R.Tensor(), R.Shape([]), R.Object(), R.Tuple(), R.Prim("int64"), R.Callable(),
        main.attrs, module["double"].body, te.placeholder((n,), "float32"), n == n, relax.op.add, pliant.cpu(),
    ]  # fmt: skip


def test_truth_value_hash_and_equality(module: pliant.IRModule) -> None:
    for obj in objects(module):
        if isinstance(obj, dict):
            continue
        assert bool(obj), repr(obj)
        assert (obj == obj) is not None and (obj == 3) is not None and (obj != None) is not None  # noqa: E711
        assert isinstance(hash(obj), int)


def test_tensor_and_scalar_expressions_have_no_truth_value() -> None:
    x = relax.Var("x", R.Tensor((), "bool"))
    for value in (x, relax.op.logical_not(x), relax.const(1), relax.PrimValue(1), relax.Var("o", R.Object())):
        with pytest.raises(TypeError, match="known only at run time"):
            bool(value)
        assert isinstance(hash(value), int) and value == value


def test_tensor_infos_without_a_shape() -> None:
    for info in (R.Tensor("float32", ndim=3), R.Tensor(dtype="float32", ndim=3), R.Tensor(None, "float32", ndim=3)):
        assert isinstance(info, relax.TensorStructInfo) and (info.dtype, info.ndim) == ("float32", 3)
    assert R.Tensor("int8").dtype == "int8" and R.Tensor("int8").ndim == -1


def test_string_sizes_are_placeholders_outside_of_scripts() -> None:
    for info in (
        R.Tensor(("n", 4), "float32"),
        R.Shape(["n"]),
        R.Prim(value="n"),
        R.Tuple(R.Tensor(("n",), "int8")),
        R.Callable((R.Tensor(("n",)),), R.Object()),
    ):
        assert not isinstance(info, relax.StructInfo), "its sizes would be lost"


@pytest.mark.parametrize(
    "make",
    [
        lambda: R.Tensor(3.5),
        lambda: R.Tensor((2.5,), "float32"),
        lambda: R.Tensor("float33"),
        lambda: R.Tensor((2,), "float32", None, 1, 2),
        lambda: R.Tensor(rank=3),
        lambda: R.Tensor((-1,), "float32"),
        lambda: R.Prim("int65"),
        lambda: R.Tuple(3),
        lambda: R.Callable(3),
    ],
)
def test_struct_infos_reject_arguments_that_are_invalid_in_scripts(make: Any) -> None:
    with pytest.raises((TypeError, ValueError, pliant.PliantError)):
        make()


def test_public_functions_have_their_names_as_global_symbol(module: pliant.IRModule) -> None:
    assert module["main"].attrs["global_symbol"] == "main" and module["double"].attrs["global_symbol"] == "double"
    assert "global_symbol" not in module["hidden"].attrs
    alone = from_source("@R.function\ndef alone(x: R.Object):\n    return x\n")
    assert alone.attrs["global_symbol"] == "alone"
    # An explicit attribute takes precedence, and the implicit one is not printed.
    assert alone.with_attr("global_symbol", "other").attrs["global_symbol"] == "other"
    assert "global_symbol" not in module.script()
    for func in (alone, module["double"]):
        assert "global_symbol" not in func.without_attr("global_symbol").attrs


def test_the_rank_of_a_tensor_follows_from_its_shape_variable() -> None:
    n = tir.Var("n", "int64")
    for shape, rank in ((R.Shape(ndim=3), 3), (R.Shape([n, 4]), 2), (R.Shape(), -1)):
        assert relax.TensorStructInfo(relax.Var("s", shape), "float32").ndim == rank
