"""Tests mutators and visitors on local functions that call each other."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import pliant
from pliant import relax
from pliant.relax.expr_functor import PyExprMutator, PyExprVisitor, mutator, visitor
from pliant.script import ir as I
from pliant.script import relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4,), "float32"), k: R.Tensor((), "int64")):
        @R.function
        def even(a: R.Tensor((4,), "float32"), i: R.Tensor((), "int64")) -> R.Tensor((4,), "float32"):
            if R.less(i, R.const(1, "int64")):
                r = a
            else:
                r = odd(R.add(a, x), R.subtract(i, R.const(1, "int64")))
            return r

        @R.function
        def odd(b: R.Tensor((4,), "float32"), j: R.Tensor((), "int64")) -> R.Tensor((4,), "float32"):
            if R.less(j, R.const(1, "int64")):
                r = R.sqrt(b)
            else:
                r = even(R.add(b, b), R.subtract(j, R.const(1, "int64")))
            return r

        y = even(x, k)
        return y


def values(x: np.ndarray, k: int, add: Callable, sqrt: Callable = np.sqrt) -> np.ndarray:
    a, even = x, True
    while k:
        a, even, k = add(a, x if even else a), not even, k - 1
    return a if even else sqrt(a)


def check(func: relax.Function, add: Callable = np.add, sqrt: Callable = np.sqrt, dtype: str = "float32") -> None:
    module = pliant.IRModule({"main": func})
    assert relax.analysis.well_formed(module)
    again = pliant.script.from_source(module.script(show_meta=True))
    pliant.ir.assert_structural_equal(module, again)
    x = np.array([0.5, 0.75, 0.25, 1.25], dtype)
    run = relax.VirtualMachine(relax.build(module), pliant.cpu())["main"]
    for k in (0, 1, 2, 3, 4):
        np.testing.assert_allclose(run(x, np.array(k, "int64")).numpy(), values(x, k, add, sqrt), rtol=1e-5)


def test_identity_mutators_return_the_same_object() -> None:
    assert PyExprMutator(Module).visit_expr(Module["main"]).same_as(Module["main"])


@mutator
class ReplaceCalls(PyExprMutator):
    def visit_call_(self, call: relax.Call) -> relax.Expr:
        call = self.visit_expr_post_order(call)
        if call.op == relax.op.add:
            return relax.op.multiply(call.args[0], call.args[1])
        if call.op == relax.op.sqrt:
            return relax.op.exp(call.args[0])
        return call


def test_calls_are_replaced_in_both() -> None:
    check(ReplaceCalls(Module).visit_expr(Module["main"]), np.multiply, np.exp)


@mutator
class NewVariables(PyExprMutator):
    """A mutator that creates a new variable for each definition, with another type for float32
    tensors.
    """

    dtype = "float32"

    def __init__(self, mod: pliant.IRModule) -> None:
        super().__init__(mod)
        self.seen: list[str] = []

    def visit_var_def_(self, var: relax.Var) -> relax.Var:
        self.seen.append(var.name_hint)
        return relax.Var(f"{var.name_hint}_new", self.typed(var.struct_info))

    def typed(self, info: relax.StructInfo) -> relax.StructInfo:
        if isinstance(info, relax.TensorStructInfo) and info.dtype == "float32":
            return relax.TensorStructInfo(info.shape, self.dtype)
        if isinstance(info, relax.FuncStructInfo):
            return relax.FuncStructInfo([self.typed(p) for p in info.params], self.typed(info.ret), True)
        return info


def test_variables_read_before_their_binding_are_renamed() -> None:
    renamed = NewVariables(Module)
    func = renamed.visit_expr(Module["main"])
    names = [var.name_hint for var in relax.analysis.bound_vars(func)]
    assert {"even_new", "odd_new", "a_new", "b_new"} <= set(names) and "odd" not in names
    # Each is defined once, although mutually recursive functions are visited twice.
    assert len(renamed.seen) == len(set(renamed.seen))
    check(func)


class OfFloat64(NewVariables):
    """A mutator like `NewVariables` that also changes the declared result types."""

    dtype = "float64"

    def visit_function_(self, func: relax.Function) -> relax.Function:
        new = super().visit_function_(func)
        if new.same_as(func):
            return func
        return relax.Function(new.params, new.body, self.typed(func.ret_struct_info), func.is_pure)


def test_types_of_parameters_change_in_all_of_them() -> None:
    func = OfFloat64(Module).visit_expr(Module["main"])
    assert func.ret_struct_info == relax.TensorStructInfo((4,), "float64")
    check(func, dtype="float64")


@mutator
class Wrapped(PyExprMutator):
    """A mutator that makes the first function return a tuple, so that its type changes only with
    its body.
    """

    def visit_function_(self, func: relax.Function) -> relax.Function:
        if [p.name_hint for p in func.params] != ["a", "i"]:
            return super().visit_function_(func)
        x = relax.Var("a", func.params[0].struct_info)
        i = relax.Var("i", func.params[1].struct_info)
        return relax.Function([x, i], relax.Tuple([x]))


def test_changed_result_types_reach_callers() -> None:
    func = Wrapped(Module).visit_expr(Module["main"])
    assert isinstance(func.ret_struct_info, relax.TupleStructInfo)
    module = pliant.IRModule({"main": func})
    assert relax.analysis.well_formed(module)
    run = relax.VirtualMachine(relax.build(module), pliant.cpu())["main"]
    assert run(np.ones(4, "float32"), np.array(0, "int64"))[0].shape == (4,)


@visitor
class Names(PyExprVisitor):
    def __init__(self) -> None:
        self.read: list[str] = []
        self.defined: list[str] = []

    def visit_var_(self, var: relax.Var) -> None:
        self.read.append(var.name_hint)

    def visit_var_def_(self, var: relax.Var) -> None:
        self.defined.append(var.name_hint)


def test_visitors_see_each_function_once() -> None:
    names = Names()
    names.visit_expr(Module["main"])
    assert names.defined.count("even") == names.defined.count("odd") == 1
    assert names.read.index("odd") < names.read.index("even")


def test_visiting_one_function_of_a_recursive_group() -> None:
    even = Module["main"].body.blocks[0].bindings[0].value
    assert {var.name_hint for var in relax.analysis.free_vars(even)} == {"odd", "x"}
    assert PyExprMutator(Module).visit_expr(even).same_as(even)
    new = ReplaceCalls(Module).visit_expr(even)
    assert {var.name_hint for var in relax.analysis.free_vars(new)} == {"odd", "x"}
    calls: list[relax.Expr] = []
    relax.analysis.post_order_visit(new, lambda e: calls.append(e.op) if isinstance(e, relax.Call) else None)
    assert relax.op.multiply in calls and relax.op.add not in calls


@pytest.mark.parametrize("changed", [[], ["even"], ["odd"], ["even", "odd"]])
def test_functions_are_built_from_the_bindings_of_others(changed: list[str]) -> None:
    main = Module["main"]
    bindings = []
    for block in main.body.blocks:
        for binding in block.bindings:
            if binding.var.name_hint in changed:
                func = binding.value
                copy = relax.Function(func.params, func.body, func.ret_struct_info)
                bindings.append(relax.VarBinding(binding.var, copy))
            else:
                bindings.append(binding)
    body = relax.SeqExpr([relax.BindingBlock(bindings)], main.body.body)
    check(relax.Function(main.params, body, main.ret_struct_info))


def test_building_mutually_recursive_functions() -> None:
    vector, count = relax.TensorStructInfo((4,), "float32"), relax.TensorStructInfo((), "int64")
    info = relax.FuncStructInfo([vector, count], vector)
    even, odd = relax.Var("even", info), relax.Var("odd", info)
    x, k = relax.Var("x", vector), relax.Var("k", count)

    def step(other: relax.Var, second: relax.Expr | None, last: Callable) -> relax.Function:
        a, i = relax.Var("a", vector), relax.Var("i", count)
        one = relax.const(1, "int64")
        call = other(relax.op.add(a, a if second is None else second), relax.op.subtract(i, one))
        return relax.Function([a, i], relax.If(relax.op.less(i, one), last(a), call), vector)

    block = relax.BindingBlock(
        [
            relax.VarBinding(even, step(odd, x, lambda a: a)),
            relax.VarBinding(odd, step(even, None, relax.op.sqrt)),
        ]
    )
    check(relax.Function([x, k], relax.SeqExpr([block], even(x, k)), vector))
