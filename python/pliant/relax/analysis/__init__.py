"""Analyses of graph-level functions, expressions and types. They do not modify their arguments."""

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
    """The result of a subtype check: whether every value of the derived type has the base type."""

    FAIL_L0 = 0
    """No value has both types."""
    FAIL_L1 = 1
    """The result depends on data types or ranks that are known only at run time."""
    FAIL_L2 = 2
    """The result depends on sizes that are known only at run time."""
    PASS = 3
    """Every value of the derived type has the base type."""


# ---- types ----


def get_static_type(sinfo: StructInfo) -> StructInfo:
    """Returns the type without its sizes. Data types, ranks and the structure of tuples are kept."""
    return _relax.static_struct_info(sinfo)


def erase_to_well_defined(
    sinfo: StructInfo,
    shape_var_map: Mapping[TirVar, Any] | None = None,
    var_map: Mapping[Var, Expr] | None = None,
) -> StructInfo:
    """Replaces size variables in a type according to ``shape_var_map``. A shape that contains a variable without replacement
    keeps only its rank. ``var_map`` is ignored.

    Raises ``TypeError`` if a key is not a variable.
    """
    return _relax.erase_struct_info(sinfo, list((shape_var_map or {}).items()))


def struct_info_base_check(base: StructInfo, derived: StructInfo) -> BaseCheckResult:
    """Checks whether every value of type ``derived`` has type ``base``."""
    return BaseCheckResult(_relax.struct_info_check(base, derived))


def struct_info_lca(lhs: StructInfo, rhs: StructInfo) -> StructInfo:
    """Returns the least common supertype of two types."""
    return _relax.struct_info_lca(lhs, rhs)


def derive_call_ret_struct_info(func_sinfo: FuncStructInfo, call: Call, ctx: Any = None) -> StructInfo:
    """Infers the result type of a call of a function with type ``func_sinfo``. ``ctx`` is ignored.

    Raises ``TypeError`` if ``func_sinfo`` is not the type of a function, and ``CompileError`` if
    the arguments do not match.
    """
    return _relax.call_struct_info(func_sinfo, [arg.struct_info for arg in call.args])


def tir_vars_in_struct_info(sinfo: StructInfo) -> list[TirVar]:
    """Returns the size variables in a type, each once, in order."""
    return _relax.struct_info_vars(sinfo, False)


def definable_tir_vars_in_struct_info(sinfo: StructInfo) -> list[TirVar]:
    """Returns the size variables that a value of the type defines. These are the variables that are a dim by themselves, as
    ``n`` in ``(n, 2 * m)`` is."""
    return _relax.struct_info_vars(sinfo, True)


def collect_non_negative_expressions(sinfo: StructInfo) -> list[PrimExpr]:
    """Returns the non-constant sizes in a type, each once. They are never negative."""
    return _relax.struct_info_dims(sinfo)


type_base_check = struct_info_base_check
type_lca = struct_info_lca
derive_call_ret_type = derive_call_ret_struct_info
tir_vars_in_type = tir_vars_in_struct_info
definable_tir_vars_in_type = definable_tir_vars_in_struct_info


# ---- variables ----


def shape_vars(expr: Any) -> list[TirVar]:
    """Returns the size variables in a size, a list of sizes, or the shapes of an expression, each once, in order."""
    if isinstance(expr, _relax.Expr) and not isinstance(expr, _relax.ShapeExpr):
        inside = _relax.post_order(expr.body if isinstance(expr, _relax.Function) else expr)
        shapes = [node for node in inside if isinstance(node, _relax.ShapeExpr)]
        return list(dict.fromkeys(var for shape in shapes for var in shape_vars(shape)))
    dims = expr.values if isinstance(expr, _relax.ShapeExpr) else expr if isinstance(expr, list | tuple) else [expr]
    return _relax.struct_info_vars(_relax.ShapeStructInfo(list(dims)), False)


def defined_symbolic_vars(func: Function) -> list[TirVar]:
    """Returns the size variables that a function's parameters and ``match_cast`` bindings
    define."""
    return _relax.symbolic_vars(func, False)


def free_symbolic_vars(func: Function) -> list[TirVar]:
    """Returns the size variables that a function uses without defining them."""
    return _relax.symbolic_vars(func, True)


def bound_vars(expr: Expr) -> list[Var]:
    """Returns the variables that an expression defines: parameters and bindings, each once, in
    order."""
    return _relax.find_vars(expr, "bound")


def free_vars(expr: Expr) -> list[Var]:
    """Returns the variables that an expression uses without defining them, each once, in order."""
    return _relax.find_vars(expr, "free")


def all_vars(expr: Expr) -> list[Var]:
    """Returns the variables that an expression defines or uses, each once, in order."""
    return _relax.find_vars(expr, "all")


def used_vars(expr: Expr) -> list[Var]:
    """Returns the variables that an expression uses, each once, in order."""
    return _relax.find_vars(expr, "used")


def all_global_vars(expr: Expr) -> list[GlobalVar]:
    """Returns the functions of the module to which an expression refers, each once, in order."""
    return _relax.find_vars(expr, "global")


def called_global_vars(expr: Expr) -> list[GlobalVar]:
    """Returns the functions of the module that an expression calls, each once, in order."""
    return _relax.find_vars(expr, "called")


def post_order_visit(expr: Expr, fvisit: Callable[[Any], Any]) -> None:
    """Calls ``fvisit`` with every subexpression of an expression, and finally with the expression
    itself. Operands precede their users, and the operator of a call directly precedes the call."""
    for node in _relax.post_order(expr):
        if isinstance(node, _relax.Call) and isinstance(node.op, _relax.OpFunction):
            fvisit(node.op)
        fvisit(node)


# ---- bindings ----


def get_var2val(func: Function) -> dict[Var, Expr]:
    """Returns a dict from each variable to the value that is bound to it."""
    return {b.var: b.value for b in _relax.all_bindings(func)}


def udchain(dfb: BindingBlock) -> dict[Var, list[Var]]:
    """Returns a dict from each variable that a block uses or defines to the variables whose bound values use it."""
    return dict(_relax.use_chains(dfb))


def name_to_binding(func: Function) -> dict[str, list[Binding]]:
    """Groups the bindings of a function by the names of their variables."""
    result: dict[str, list[Binding]] = {}
    for binding in _relax.all_bindings(func):
        result.setdefault(binding.var.name_hint, []).append(binding)
    return result


def contains_impure_call(expr: Expr, own_name: Var | GlobalVar | None = None) -> bool:
    """Whether an expression contains a call with side effects. Calls of ``own_name`` are not
    counted, because a function may call itself."""
    return _relax.has_impure_call(expr, None if own_name is None else own_name.name_hint)


def remove_all_unused(func: Function) -> Function:
    """Removes unused bindings without side effects. Returns the function itself if there are
    none."""
    from pliant.relax.analysis._unused_bindings import remove_all_unused as remove

    return remove(func)


def computable_at_compile_time(func: Function) -> list[Var]:
    """Returns the variables whose values do not depend on the inputs, such as transformed weights.

    The result contains the parameters after the first ``num_input`` ones. It also contains all variables that are computed
    without side effects from these parameters and from sizes that these parameters define. ``num_input`` is an attribute of the
    function. Without it, all parameters are inputs.
    """
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
    """Returns the size variables that an expression uses."""
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
    """Whether a loop function with one input and one output provably only reshapes its input."""
    return _core.has_reshape_pattern(func)


# ---- modules ----


def well_formed(obj: IRModule | Function, check_struct_info: bool = True, check: str | None = None) -> bool:
    """Whether a module or function follows the rules of the IR. A function that cannot be built,
    because it uses an undefined variable or defines a variable twice, is not well-formed.
    ``check_struct_info`` is accepted for compatibility with TVM; types are always checked.

    ``check="tvm"`` adds rules of TVM: the attribute ``global_symbol`` of a function of a module is its name. These rules are the
    default if ``import tvm`` is Pliant; otherwise the default is ``"pliant"``.
    """
    return not _problems(obj, check)


def check_well_formed(obj: IRModule | Function, check_struct_info: bool = True, check: str | None = None) -> None:
    """Raises ``ValueError`` with all violations of the rules of the IR. The arguments are those of
    :func:`well_formed`."""
    problems = _problems(obj, check)
    if problems:
        raise ValueError("the module is not well-formed:\n" + "\n".join(problems))


def _problems_for_tvm(mod: IRModule) -> list[str]:
    """Returns the violations of the rules that only TVM has."""
    problems = _core.module_input_problems(mod)
    for var, func in mod.functions_items():
        symbol = func.attrs.get("global_symbol", var.name_hint)
        if symbol != var.name_hint:
            problems.append(f"the function '{var.name_hint}' has the attribute global_symbol = '{symbol}', which differs from its name")
    return problems


def _problems(obj: IRModule | Function, check: str | None = None) -> list[str]:
    if check is None:
        from pliant.tvm._finder import is_installed

        check = "tvm" if is_installed() else "pliant"
    if check not in ("pliant", "tvm"):
        raise ValueError(f"well_formed: check must be \"pliant\" or \"tvm\", got {check!r}")
    if isinstance(obj, _core.IRModule):
        return [*_core.verify_module(obj), *(_problems_for_tvm(obj) if check == "tvm" else [])]
    try:
        return _core.verify_function(obj)
    except (ValueError, CompileError) as error:
        # The parts do not form a valid function.
        return [str(error)]


def detect_recursion(mod: IRModule) -> list[list[GlobalVar]]:
    """Returns the groups of mutually recursive functions, each sorted by name. A function that
    calls itself is a group."""
    return [[_relax.GlobalVar(name) for name in group] for group in _core.recursive_groups(mod)]


def estimate_memory_usage(mod: IRModule | Function) -> str:
    """Returns a report on the memory that the functions of a module allocate: the total size of the
    tensors, and after memory planning (``StaticPlanBlockMemory``) also of the shared storage."""
    from pliant.relax.analysis._memory_estimate import estimate_memory_usage as estimate

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
