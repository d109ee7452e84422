"""Questions about functions, expressions and types of the graph level. Nothing here changes what it is asked about."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from pliant import _core
from pliant.error import CompileError

if TYPE_CHECKING:
    from pliant._core import IRModule, PrimExpr, PrimFunc
    from pliant._core import Var as TirVar
    from pliant._core.relax import (
        Binding,
        BindingBlock,
        Call,
        Expr,
        FuncStructInfo,
        Function,
        GlobalVar,
        StructInfo,
        Var,
    )

_relax = _core.relax


class BaseCheckResult(IntEnum):
    """How surely a type is a subtype of another."""

    FAIL_L0 = 0
    """No value is of both types."""
    FAIL_L1 = 1
    """Whether values are of the type, data types or ranks decide when the program runs."""
    FAIL_L2 = 2
    """Whether values are of the type, sizes decide when the program runs."""
    PASS = 3
    """Every value is."""


# ---- types ----


def get_static_type(sinfo: StructInfo) -> StructInfo:
    """The type without sizes: kinds, data types and ranks."""
    return _relax.static_struct_info(sinfo)


def erase_to_well_defined(
    sinfo: StructInfo,
    shape_var_map: Mapping[TirVar, Any] | None = None,
    var_map: Mapping[Var, Expr] | None = None,
) -> StructInfo:
    """The type with the variables of sizes replaced as ``shape_var_map`` says; dims that hold others are forgotten."""
    return _relax.erase_struct_info(sinfo, list((shape_var_map or {}).items()))


def struct_info_base_check(base: StructInfo, derived: StructInfo) -> BaseCheckResult:
    """Whether every value of type ``derived`` is of type ``base``."""
    return BaseCheckResult(_relax.struct_info_check(base, derived))


def struct_info_lca(lhs: StructInfo, rhs: StructInfo) -> StructInfo:
    """The least type that both types fit."""
    return _relax.struct_info_lca(lhs, rhs)


def derive_call_ret_struct_info(func_sinfo: FuncStructInfo, call: Call, ctx: Any = None) -> StructInfo:
    """The type of a call of a function of that type."""
    return _relax.call_struct_info(func_sinfo, [arg.struct_info for arg in call.args])


def tir_vars_in_struct_info(sinfo: StructInfo) -> list[TirVar]:
    """The variables of sizes in a type, each once, in order."""
    return _relax.struct_info_vars(sinfo, False)


def definable_tir_vars_in_struct_info(sinfo: StructInfo) -> list[TirVar]:
    """The variables of sizes that a value of the type defines: those that are a dim by themselves."""
    return _relax.struct_info_vars(sinfo, True)


def collect_non_negative_expressions(sinfo: StructInfo) -> list[PrimExpr]:
    """The sizes in a type, which are never negative, each once; constants are left out."""
    return _relax.struct_info_dims(sinfo)


type_base_check = struct_info_base_check
type_lca = struct_info_lca
derive_call_ret_type = derive_call_ret_struct_info
tir_vars_in_type = tir_vars_in_struct_info
definable_tir_vars_in_type = definable_tir_vars_in_struct_info


# ---- variables ----


def shape_vars(expr: Any) -> list[TirVar]:
    """The variables in a size, a shape or a list of sizes, each once, in order."""
    dims = expr.values if isinstance(expr, _relax.ShapeExpr) else expr if isinstance(expr, list | tuple) else [expr]
    return _relax.struct_info_vars(_relax.ShapeStructInfo(list(dims)), False)


def defined_symbolic_vars(func: Function) -> list[TirVar]:
    """The variables of sizes that a function's parameters and ``match_cast`` define."""
    return _relax.symbolic_vars(func, False)


def free_symbolic_vars(func: Function) -> list[TirVar]:
    """The variables of sizes that a function reads without defining them."""
    return _relax.symbolic_vars(func, True)


def bound_vars(expr: Expr) -> list[Var]:
    """The variables that an expression defines: parameters and bindings, each once, in order."""
    return _relax.find_vars(expr, "bound")


def free_vars(expr: Expr) -> list[Var]:
    """The variables that an expression reads without defining them, each once, in order."""
    return _relax.find_vars(expr, "free")


def all_vars(expr: Expr) -> list[Var]:
    """The variables that an expression defines or reads, each once, in order."""
    return _relax.find_vars(expr, "all")


def used_vars(expr: Expr) -> list[Var]:
    """The variables that an expression reads, each once, in order."""
    return _relax.find_vars(expr, "used")


def all_global_vars(expr: Expr) -> list[GlobalVar]:
    """The functions of the module that an expression names, each once, in order."""
    return _relax.find_vars(expr, "global")


def called_global_vars(expr: Expr) -> list[GlobalVar]:
    """The functions of the module that an expression calls, each once, in order."""
    return _relax.find_vars(expr, "called")


def post_order_visit(expr: Expr, fvisit: Callable[[Any], Any]) -> None:
    """Calls ``fvisit`` with every expression inside an expression and itself: operands before what uses them."""
    for node in _relax.post_order(expr):
        fvisit(node)


# ---- bindings ----


def get_var2val(func: Function) -> dict[Var, Expr]:
    """The value that each variable is bound to."""
    return {b.var: b.value for b in _relax.all_bindings(func)}


def udchain(dfb: BindingBlock) -> dict[Var, list[Var]]:
    """The variables of a block, each with the variables whose values read it."""
    return dict(_relax.use_chains(dfb))


def name_to_binding(func: Function) -> dict[str, list[Binding]]:
    """The bindings by the names of their variables."""
    result: dict[str, list[Binding]] = {}
    for binding in _relax.all_bindings(func):
        result.setdefault(binding.var.name_hint, []).append(binding)
    return result


def contains_impure_call(expr: Expr, own_name: Var | GlobalVar | None = None) -> bool:
    """Whether a call in an expression has effects. Calls of ``own_name`` do not count: a function may call itself."""
    return _relax.has_impure_call(expr, None if own_name is None else own_name.name_hint)


def remove_all_unused(func: Function) -> Function:
    """The function without the bindings that nothing reads and that have no effects; itself when there are none."""
    from pliant.relax.analysis._unused import remove_all_unused as remove

    return remove(func)


def computable_at_compile_time(func: Function) -> list[Var]:
    """The variables whose values are known before the inputs: the parameters after the first ``num_input`` ones (the
    function's attribute; without it all are inputs), and what follows from them and from the sizes that they tell."""
    count = func.attrs.get("num_input", len(func.params))
    found: dict[Var, None] = {}
    sizes: set[PrimExpr] = set()

    def mark(var: Var) -> None:
        found[var] = None
        sizes.update(definable_tir_vars_in_struct_info(var.struct_info))

    for param in func.params[count:]:
        mark(param)
    for block in func.body.blocks:
        for binding in block.bindings:
            value = binding.value
            known = all(var in found for var in used_vars(value)) and sizes.issuperset(_symbols_in(value))
            if known and not contains_impure_call(value):
                mark(binding.var)
    return list(found)


def _symbols_in(value: Expr) -> set[PrimExpr]:
    """The symbols that an expression reads."""
    symbols: set[PrimExpr] = set()

    def visit(e: Expr) -> None:
        if isinstance(e, _core.relax.ShapeExpr):
            for size in e.values:
                symbols.update(_core.tir_free_vars(size))
        elif isinstance(e, _core.relax.PrimValue):
            symbols.update(_core.tir_free_vars(e.value))
        elif isinstance(e, _core.relax.Call):
            for info in e.sinfo_args:
                symbols.update(tir_vars_in_struct_info(info))

    post_order_visit(value, visit)
    return symbols


# ---- loop functions ----


def has_reshape_pattern(func: PrimFunc) -> bool:
    """Whether a loop function from one tensor to another only gives its input another shape, proven by the arithmetic of
    its indices."""
    return _core.has_reshape_pattern(func)


# ---- modules ----


def well_formed(obj: IRModule | Function, check_struct_info: bool = True) -> bool:
    """Whether a module or function keeps the rules of the IR. A function that cannot be made at all, since it reads what
    nothing defines or defines something twice, does not; a module takes in no such function."""
    return not _problems(obj)


def check_well_formed(obj: IRModule | Function, check_struct_info: bool = True) -> None:
    """Raises ``ValueError`` with what breaks the rules of the IR."""
    problems = _problems(obj)
    if problems:
        raise ValueError("the module is not well-formed:\n" + "\n".join(problems))


def _problems(obj: IRModule | Function) -> list[str]:
    if isinstance(obj, _core.IRModule):
        return _core.verify_module(obj)
    try:
        return _core.verify_function(obj)
    except (ValueError, CompileError) as error:
        # The parts do not make a function.
        return [str(error)]


def detect_recursion(mod: IRModule) -> list[list[GlobalVar]]:
    """The groups of functions that call each other, each sorted by name: a function that calls itself is one."""
    return [[_relax.GlobalVar(name) for name in group] for group in _core.recursive_groups(mod)]


def estimate_memory_usage(mod: IRModule | Function) -> str:
    """A report of the memory that the functions of a module ask for: each tensor, and the storage that tensors share where
    memory was planned (``StaticPlanBlockMemory``)."""
    from pliant.relax.analysis._memory import estimate_memory_usage as estimate

    return estimate(mod)


__all__ = [
    "BaseCheckResult",
    "all_global_vars",
    "all_vars",
    "bound_vars",
    "called_global_vars",
    "check_well_formed",
    "collect_non_negative_expressions",
    "computable_at_compile_time",
    "contains_impure_call",
    "definable_tir_vars_in_struct_info",
    "definable_tir_vars_in_type",
    "defined_symbolic_vars",
    "derive_call_ret_struct_info",
    "derive_call_ret_type",
    "detect_recursion",
    "erase_to_well_defined",
    "estimate_memory_usage",
    "free_symbolic_vars",
    "free_vars",
    "get_static_type",
    "get_var2val",
    "has_reshape_pattern",
    "name_to_binding",
    "post_order_visit",
    "remove_all_unused",
    "shape_vars",
    "struct_info_base_check",
    "struct_info_lca",
    "tir_vars_in_struct_info",
    "tir_vars_in_type",
    "type_base_check",
    "type_lca",
    "udchain",
    "used_vars",
    "well_formed",
]
