"""Tests the graph level: expressions, struct infos, the block builder, modules."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import pliant
from pliant import relax, te, tir
from pliant.ir import assert_structural_equal, structural_equal, structural_hash


def tensor(*dims: Any, dtype: str = "float32") -> relax.TensorStructInfo:
    return relax.TensorStructInfo(dims, dtype)


def test_struct_infos() -> None:
    n = tir.Var("n", "int64")
    info = tensor(n, 4)
    assert info.ndim == 2 and info.dtype == "float32" and list(info.shape) == [n, 4]
    assert str(info) == 'R.Tensor((n, 4), dtype="float32")'
    assert info == tensor(n, 4) and hash(info) == hash(tensor(n, 4)) and info != tensor(n, 5)
    unknown = relax.TensorStructInfo(ndim=3)
    assert unknown.ndim == 3 and unknown.shape is None and unknown.dtype == ""
    assert relax.TensorStructInfo().ndim == -1
    assert relax.ShapeStructInfo([n, 2]).values[0] == n and relax.ShapeStructInfo(ndim=2).ndim == 2
    assert relax.PrimStructInfo("int64").dtype == "int64" and relax.PrimStructInfo(value=n).value == n
    pair = relax.TupleStructInfo([info, relax.ObjectStructInfo()])
    assert pair.fields[0] == info
    func = relax.FuncStructInfo([info], pair, purity=False)
    assert func.params[0] == info and func.ret == pair and not func.purity


def test_expressions() -> None:
    n = tir.Var("n", "int64")
    x = relax.Var("x", tensor(n, 4))
    assert x.name_hint == "x" and x.struct_info == tensor(n, 4) and x == x and x != relax.Var("x", tensor(n, 4))
    call = (x + 1) * x
    assert isinstance(call, relax.Call) and call.op.name == "relax.multiply" and len(call.args) == 2
    assert isinstance(relax.const(1.5), relax.Constant) and relax.const(1).data.dtype == "int32"
    assert relax.const(2, "bfloat16").data.dtype == "bfloat16"
    assert list(relax.ShapeExpr([n, 2])) == [n, 2]
    assert relax.PrimValue(3).value == 3 and relax.StringImm("s").value == "s"
    assert relax.DataTypeImm("float16").value == "float16"
    assert relax.Tuple([x, x])[0] == x and relax.Tuple([x, relax.PrimValue(3)])[1].value == 3 and len(relax.Tuple([])) == 0
    pair = relax.Var("pair", relax.TupleStructInfo([tensor(n, 4), tensor(n, 4)]))
    assert isinstance(pair[1], relax.TupleGetItem) and pair[1].index == 1
    assert relax.ExternFunc("f").global_symbol == "f"
    with pytest.raises(ValueError, match="emit the expression first"):
        call.struct_info  # noqa: B018
    with pytest.raises(TypeError, match="known only at run time"):
        bool(x)


def build_simple() -> tuple[relax.BlockBuilder, pliant.IRModule]:
    n = tir.Var("n", "int64")
    x = relax.Var("x", tensor(n, 4))
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        with bb.dataflow():
            lv = bb.emit(relax.op.add(x, x))
            gv = bb.emit_output(relax.op.multiply(lv, 2.0))
        bb.emit_func_output(gv)
    return bb, bb.get()


def test_builder_normalizes() -> None:
    _, mod = build_simple()
    func = mod["main"]
    assert [p.name_hint for p in func.params] == ["x"]
    (block,) = func.body.blocks
    assert block.is_dataflow
    assert [b.var.name_hint for b in block.bindings] == ["lv", "gv"]
    assert isinstance(block.bindings[0].var, relax.DataflowVar)
    assert block.bindings[0].value.op.name == "relax.add"
    assert func.body.body == block.bindings[1].var
    assert func.ret_struct_info.ndim == 2 and func.is_pure
    assert "R.add(x, x)" in str(mod)


def test_nested_calls_get_variables() -> None:
    n = tir.Var("n", "int64")
    x = relax.Var("x", tensor(n, 4))
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        shared = x + x
        out = bb.emit(shared * shared)
        bb.emit_func_output(out)
    (block,) = bb.get()["main"].body.blocks
    assert [b.value.op.name for b in block.bindings] == ["relax.add", "relax.multiply"]


def test_types_are_inferred_on_emission() -> None:
    n, m = tir.Var("n", "int64"), tir.Var("m", "int64")
    x, y = relax.Var("x", tensor(n, 4)), relax.Var("y", tensor(4, m))
    bb = relax.BlockBuilder()
    with bb.function("main", [x, y]):
        product = bb.emit(relax.op.matmul(x, y))
        assert product.struct_info == tensor(n, m)
        with pytest.raises(pliant.CompileError, match="matmul"):
            bb.emit(relax.op.matmul(x, relax.const(np.ones((5, 2), "float32"))))
        bb.emit_func_output(product)


def test_emit_te_and_te_tensor(rng: np.random.Generator) -> None:
    n = tir.Var("n", "int64")
    x = relax.Var("x", tensor(n, 4))
    bb = relax.BlockBuilder()

    def te_func(A: te.Tensor, scale: float, rest: list[te.Tensor]) -> te.Tensor:
        return te.compute(A.shape, lambda i, j: A[i, j] * scale + rest[0][i, j], name="te_func")

    with bb.function("main", [x]):
        a = bb.emit_te(te_func, x, 3.0, [x])
        b = bb.emit_te(te_func, a, 3.0, [x])
        A = relax.te_tensor(b)
        c = bb.emit(te.compute(A.shape, lambda i, j: A[i, j] - 1, name="minus"))
        bb.emit_func_output(c)
    mod = bb.get()
    names = [v.name_hint for v in mod.get_global_vars()]
    assert "te_func" in names
    model = pliant.compile(mod)
    for size in (0, 1, 5):
        data = rng.random((size, 4), "float32")
        np.testing.assert_allclose(model(data).numpy(), (data * 3 + data) * 3 + data - 1, rtol=1e-5)


def test_equal_loop_functions_are_deduplicated() -> None:
    n = tir.Var("n", "int64")
    x = relax.Var("x", tensor(n, 4))
    bb = relax.BlockBuilder()

    def twice(A: te.Tensor) -> te.Tensor:
        return te.compute(A.shape, lambda i, j: A[i, j] * 2, name="twice")

    with bb.function("main", [x]):
        y = bb.emit_te(twice, x)
        z = bb.emit_te(twice, y)
        bb.emit_func_output(z)
    assert len(bb.get()) == 2


def test_match_cast_defines_symbols() -> None:
    x = relax.Var("x", relax.TensorStructInfo(ndim=2, dtype="float32"))
    n, m = tir.Var("n", "int64"), tir.Var("m", "int64")
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        y = bb.match_cast(x, tensor(n, m))
        z = bb.emit(relax.op.add(y, y))
        assert z.struct_info == tensor(n, m)
        bb.emit_func_output(z)
    model = pliant.compile(bb.get())
    data = np.ones((2, 3), "float32")
    np.testing.assert_array_equal(model(data).numpy(), data * 2)


def test_parameters_may_be_set_at_emit_func_output() -> None:
    n = tir.Var("n", "int64")
    x, y, unused = (relax.Var(name, tensor(n)) for name in ("x", "y", "unused"))
    bb = relax.BlockBuilder()
    with bb.function("main"):
        out = bb.emit(relax.op.subtract(y, x))
        bb.emit_func_output(out, [x, unused, y])
    func = bb.get()["main"]
    assert [p.name_hint for p in func.params] == ["x", "unused", "y"]


def test_functions_call_functions() -> None:
    n = tir.Var("n", "int64")
    x = relax.Var("x", tensor(n, 4))
    bb = relax.BlockBuilder()
    with bb.function("double", [x], private=True):
        double = bb.emit_func_output(bb.emit(relax.op.add(x, x)))
    k = tir.Var("k", "int64")
    y = relax.Var("y", tensor(k, 4))
    with bb.function("main", [y]):
        z = bb.emit(double(y))
        assert z.struct_info == tensor(k, 4)
        bb.emit_func_output(z)
    data = np.ones((3, 4), "float32")
    np.testing.assert_array_equal(pliant.compile(bb.get())(data).numpy(), data * 2)


@pytest.mark.parametrize(
    ("use", "error", "message"),
    [
        (lambda bb, x, other: bb.emit(x), ValueError, "no function is open"),
        (lambda bb, x, other: relax.te_tensor(x), ValueError, "requires an open function"),
        (lambda bb, x, other: relax.op.add(x), TypeError, "operand 'x2' is missing"),
        (lambda bb, x, other: relax.op.add(x, x, x), TypeError, "too many"),
        (lambda bb, x, other: relax.op.add(x, x, axis=1), TypeError, "no parameter 'axis'"),
        (lambda bb, x, other: relax.op.add(x, None), TypeError, "must not be None"),
        (lambda bb, x, other: relax.op.nonsense, AttributeError, "no operator is called 'relax.nonsense'"),
        (lambda bb, x, other: relax.TensorStructInfo((-1,), "float32"), ValueError, "non-negative"),
        (lambda bb, x, other: relax.TensorStructInfo((1,), "float31"), TypeError, "unknown dtype"),
        (lambda bb, x, other: relax.Var("v", 3), TypeError, "a struct info such as TensorStructInfo is required"),
    ],
)
def test_builder_misuse(use: Any, error: type[Exception], message: str) -> None:
    x = relax.Var("x", tensor(4))
    with pytest.raises(error, match=message):
        use(relax.BlockBuilder(), x, None)


def test_invalid_functions() -> None:
    x, stranger = relax.Var("x", tensor(4)), relax.Var("stranger", tensor(4))
    bb = relax.BlockBuilder()
    with pytest.raises(ValueError, match="has no result"), bb.function("main", [x]):
        bb.emit(relax.op.add(x, x))
    with pytest.raises(ValueError, match="stranger is neither a parameter"), bb.function("main", [x]):
        bb.emit(relax.op.add(x, stranger))
    with pytest.raises(ValueError, match="cannot be nested"), bb.function("main", [x]), bb.dataflow(), bb.dataflow():
        pass
    with pytest.raises(ValueError, match="still open"), bb.function("main", [x]), bb.function("f", [x]):
        pass
    with bb.function("main", [x]):
        y = bb.emit(relax.op.add(x, x))
        bb.emit_func_output(y)
        with pytest.raises(ValueError, match="finished"):
            bb.emit(x)
    z = relax.Var("z", tensor(4))
    with pytest.raises(ValueError, match="belongs to another function"), bb.function("g", [z]):
        bb.emit(relax.op.add(z, y))
    assert [v.name_hint for v in bb.get().get_global_vars()] == ["main"]


def test_operator_signatures_and_docs() -> None:
    assert str(inspect.signature(relax.op.matmul)).startswith("(")
    assert "add" in dir(relax.op) and relax.op.add.__doc__
    for name in dir(relax.op):
        op = getattr(relax.op, name)
        if hasattr(op, "parameters"):
            assert inspect.signature(op) is not None and op.__doc__, name


def test_modules() -> None:
    bb, mod = build_simple()
    assert "main" in mod and len(mod) == 1 and mod.get_global_var("main").name_hint == "main"
    with pytest.raises(KeyError, match="the module has no function 'other'"):
        mod["other"]
    copy = mod.clone()
    copy["second"] = mod["main"]
    assert len(copy) == 2 and len(mod) == 1
    del copy["second"]
    assert structural_equal(copy, mod)
    marked = mod.with_attr("note", {"a": [1, 2.5, "x", True, None]})
    assert marked.attrs["note"] == {"a": [1, 2.5, "x", True, None]} and not mod.attrs
    assert pliant.IRModule({"main": mod["main"]})["main"].__name__ == "main"
    assert list(mod.functions)[0].name_hint == "main"


def test_structural_equality() -> None:
    _, one = build_simple()
    _, two = build_simple()
    assert structural_equal(one, two) and structural_hash(one) == structural_hash(two)
    assert_structural_equal(one["main"], two["main"])
    bb = relax.BlockBuilder()
    x = relax.Var("x", tensor(4))
    with bb.function("main", [x]):
        bb.emit_func_output(bb.emit(relax.op.add(x, x)))
    with pytest.raises(ValueError, match="StructuralEqual check failed"):
        assert_structural_equal(one, bb.get())


def test_long_chains_do_not_overflow() -> None:
    n = tir.Var("n", "int64")
    x = relax.Var("x", tensor(n, 4))
    bb = relax.BlockBuilder()
    count = 20_000
    with bb.function("main", [x]), bb.dataflow():
        value: Any = x
        for _ in range(count):
            value = bb.emit(relax.op.add(value, x))
        out = bb.emit_output(value)
        tree: Any = x
        for _ in range(count):
            tree = tree + x
        bb.emit(tree)
        del tree
        bb.emit_func_output(out)
    assert len(bb.get()["main"].body.blocks[0].bindings) == 2 * count + 1


DEEP = 300_000


def test_deep_struct_infos_are_rejected() -> None:
    info: Any = relax.ObjectStructInfo()
    with pytest.raises(ValueError, match="struct infos are nested more than 200 levels deep"):
        for _ in range(DEEP):
            info = relax.TupleStructInfo([info])
    assert str(info).count("R.Tuple") == 200 and info == info and hash(info) == hash(info)
    with pytest.raises(ValueError, match="nested more than 200"):
        relax.FuncStructInfo([info], info)
    x = relax.Var("x", info)
    with pytest.raises(ValueError, match="nested more than 200"):
        relax.TensorStructInfo(x)
    with pytest.raises(ValueError, match="nested more than 200"):
        relax.Tuple([x])
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        bb.emit_func_output(bb.emit(x))
    assert str(bb.get()).count("R.Tuple") >= 400


def test_deep_tuples_are_rejected() -> None:
    x = relax.Var("x", tensor(4))
    value: Any = x
    with pytest.raises(ValueError, match="tuples are nested more than 200 levels deep"):
        for _ in range(DEEP):
            value = relax.Tuple([value])
    assert str(value.struct_info).count("R.Tuple") == 200
    field: Any = relax.Var("t")
    with pytest.raises(ValueError, match="nested more than 200"):
        for _ in range(DEEP):
            field = relax.TupleGetItem(field, 0)
    called: Any = relax.Var("f")
    with pytest.raises(ValueError, match="nested more than 200"):
        for _ in range(DEEP):
            called = called(x)


def test_tuples_nested_by_emission_are_rejected() -> None:
    x = relax.Var("x", tensor(4))
    bb = relax.BlockBuilder()
    value: Any = x
    with (
        pytest.raises(ValueError, match="tuples are nested more than 200 levels deep"),
        bb.function("main", [x]),
    ):
        for _ in range(DEEP):
            value = bb.emit(relax.Tuple([value]))
    assert str(value.struct_info).count("R.Tuple") <= 200


def test_long_chains_of_tuple_state() -> None:
    x = relax.Var("x", tensor(4))
    state: Any = relax.Tuple([x, x])
    for _ in range(1000):
        state = relax.Tuple([relax.op.add(state[0], x), state[1]])
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        bb.emit_func_output(bb.emit(state))
    assert str(bb.get()).count("R.add") == 1000


def test_deep_python_sequences_are_rejected() -> None:
    x = relax.Var("x", tensor(4))
    nested: Any = [x]
    for _ in range(DEEP):
        nested = [nested]
    with pytest.raises(ValueError, match="tuples are nested more than 200"):
        relax.Tuple([nested])
    numbers: Any = ()
    for _ in range(DEEP):
        numbers = (numbers,)
    with pytest.raises(ValueError, match="attributes are nested more than 200"):
        relax.Call(relax.op.add, [x, x], attrs={"axis": numbers})
    with pytest.raises(TypeError):
        relax.ShapeExpr(numbers)
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(ValueError, match="nested more than 200"):
        relax.Tuple([endless])


def test_built_modules_equal_their_script() -> None:
    """Checks that omitted attributes equal attributes written with their default values."""
    x = relax.Var("x", relax.TensorStructInfo((4, 4), "float32"))
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        parts = (
            relax.op.sum(x),
            relax.op.matmul(x, x),
            relax.op.nn.softmax(x),
            relax.op.concat([x, x]),
            relax.op.permute_dims(x),
            relax.op.take(x, relax.const([0, 1]), axis=0),
            relax.op.nn.layer_norm(x, relax.op.zeros((4,), "float32"), relax.op.ones((4,), "float32"), axes=[-1]),
        )
        bb.emit_func_output(parts)
    module = bb.get()
    pliant.ir.assert_structural_equal(module, pliant.script.from_source(module.script()))
