"""Prints modules, functions and parts of functions as script text, with the options of TVM's ``node.script(...)``."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable
from typing import Any

from pliant import _core

__all__ = ["function_script", "node_script"]

_relax = _core.relax
_INDENT = 4
_HEADER = "from pliant.script import ir as I, relax as R, tir as T"
# Options of TVM's printer that do not change the text here, because they concern other defaults or diagnostics.
_IGNORED = frozenset(
    "buffer_dtype check_well_formed extra_config float_dtype int_dtype num_context_lines obj_to_annotate obj_to_underline "
    "path_to_annotate path_to_underline print_line_numbers show_object_address syntax_sugar verbose_expr".split()
)


def function_script(text: str, uses: str, **options: Any) -> str:
    """Applies the options of TVM's printer to the text of a module or function.

    ``ir_prefix``, ``relax_prefix`` and ``tir_prefix`` are other names for ``I``, ``R`` and ``T``, ``module_alias`` one for
    ``cls``, ``indent_spaces`` is the number of spaces of an indentation, and without ``show_all_struct_info`` (or
    ``show_all_ty``), bindings have no types. ``uses`` contains the letters of the modules of the script language that the text
    imports if TVM is Pliant.

    Raises ``TypeError`` for an option that TVM's printer does not have.
    """
    show_types = options.pop("show_all_struct_info", True) and options.pop("show_all_ty", True)
    names = {
        "I": options.pop("ir_prefix", "I"),
        "R": options.pop("relax_prefix", "R"),
        "T": options.pop("tir_prefix", "T"),
        "cls": options.pop("module_alias", "cls"),
    }
    indent = options.pop("indent_spaces", _INDENT)
    unknown = sorted(set(options) - _IGNORED)
    if unknown:
        raise TypeError(f"script() got an unexpected keyword argument '{unknown[0]}'")
    if not show_types:
        text = re.sub(r"^(\s*\w+): [^\n=]+ = ", r"\1 = ", text, flags=re.M)
    for name, other in names.items():
        if other != name:
            text = re.sub(rf"(?<![\w.\"']){name}(?=\.\w)", other, text)
    if indent != _INDENT:
        text = re.sub(r"^( +)", lambda m: " " * (len(m[1]) // _INDENT * indent + len(m[1]) % _INDENT), text, flags=re.M)
    return _with_tvm_header(text, uses, names)


def _with_tvm_header(text: str, uses: str, names: dict[str, str]) -> str:
    from pliant.tvm._finder import is_installed

    if not is_installed() or not text.startswith(_HEADER):
        return text
    modules = {"I": "ir", "R": "relax", "T": "tir"}
    lines = [f"# from tvm.script import {modules[letter]} as {names[letter]}" for letter in uses if f"{names[letter]}." in text]
    return "\n".join(lines) + text[len(_HEADER) :]


# ---- parts of functions ----


class _Scope:
    """The lines of a block of statements, preceded by declarations of the free variables that they use."""

    def __init__(self, outer: _Scope | None = None) -> None:
        self.lines: list[str] = []
        self._declared: list[Any] = [] if outer is None else list(outer._declared)

    def declare(self, variables: Iterable[Any]) -> None:
        """Declares size variables and graph variables that are not declared yet, and the size variables in their types."""
        for var in variables:
            if any(var is known or var.same_as(known) for known in self._declared):
                continue
            self._declared.append(var)
            if isinstance(var, _relax.Var):
                info = var.struct_info_
                if info is not None:
                    self.declare(_relax.struct_info_vars(info, False))
                    self.lines.append(f"{var.name_hint}: {type_text(info)}")
            else:
                self.lines.append(f'{var.name} = T.Var("{var.name}", "{var.dtype}")')

    def define(self, variables: Iterable[Any]) -> None:
        """Notes variables that the block itself binds."""
        self._declared.extend(variables)


def type_text(info: Any) -> str:
    """Returns a type as script text."""
    if isinstance(info, _relax.ShapeStructInfo) and info.values is None:
        return f"R.Shape(ndim={info.ndim})"
    if isinstance(info, _relax.TupleStructInfo) and not info.fields:
        return "R.Tuple"
    if isinstance(info, _relax.TupleStructInfo):
        return f"R.Tuple({', '.join(type_text(field) for field in info.fields)})"
    if isinstance(info, _relax.FuncStructInfo) and info.params is not None:
        params = ", ".join(type_text(p) for p in info.params) + ("," if len(info.params) == 1 else "")
        return f"R.Callable(({params}), {type_text(info.ret)}, {info.purity})"
    return str(info)


def node_script(node: Any, *, name: str | None = None, show_meta: bool = False, **options: Any) -> str:
    """Returns an expression, a type, a binding or a block as script text. Variables that it does not define are declared in
    front of it. ``name`` and ``show_meta``, which concern functions, are ignored."""
    scope = _Scope()
    if isinstance(node, _relax.StructInfo):
        scope.declare(_relax.struct_info_vars(node, False))
        scope.lines.append(type_text(node))
    else:
        _append(node, scope)
    return function_script("\n".join(scope.lines), "", **options)


def _append(node: Any, scope: _Scope) -> None:
    if isinstance(node, _relax.BindingBlock):
        _append_block(node, scope)
    elif isinstance(node, _relax.Binding):
        _append_block(_relax.BindingBlock([node]), scope)
    elif isinstance(node, _relax.SeqExpr):
        for block in node.blocks:
            _append_block(block, scope)
        _append(node.body, scope)
    elif isinstance(node, _relax.If):
        scope.declare(_free(node.cond))
        scope.lines.append(f"if {_text(node.cond)}:")
        _append_branch(node.true_branch, scope)
        scope.lines.append("else:")
        _append_branch(node.false_branch, scope)
    else:
        scope.declare(_free(node))
        scope.lines.append(_text(node))


def _append_branch(branch: Any, scope: _Scope) -> None:
    inner = _Scope(scope)
    _append(branch, inner)
    scope.lines += [" " * _INDENT + line for line in inner.lines]


def _append_block(block: Any, scope: _Scope) -> None:
    bound = [binding.var for binding in block.bindings]
    for binding in block.bindings:
        scope.declare(var for var in _free(binding.value) if not any(var.same_as(b) for b in bound))
    scope.define(bound)
    for line in _body_lines(block):
        scope.lines.append(line)


def _free(expr: Any) -> list[Any]:
    """Returns the free variables of an expression and its size variables, in the order of their first use."""
    from pliant.relax.analysis import free_vars

    found: list[Any] = list(free_vars(expr))
    if isinstance(expr, _relax.Call):
        for info in expr.sinfo_args:
            found += _relax.struct_info_vars(info, False)
    if isinstance(expr, _relax.ShapeExpr):
        found += _relax.struct_info_vars(_relax.ShapeStructInfo(list(expr.values)), False)
    if isinstance(expr, _relax.PrimValue):
        found += _core.tir_free_vars(expr.value)
    return found


def _body_lines(block: Any) -> list[str]:
    """Returns the statements of a block, as the printer of functions writes them."""
    result = block.bindings[-1].var
    text = _in_function(_relax.SeqExpr([block], _relax.Tuple([]) if isinstance(result, _relax.DataflowVar) else result))
    if text is None:
        return str(block).splitlines()
    return text[:-1]


def _in_function(body: Any) -> list[str] | None:
    """Returns the lines of a function with a body, without its signature and the definitions of size variables; the last line is
    the return statement. ``None`` if the body cannot be that of a function."""
    from pliant.relax.analysis import free_vars

    try:
        function = _relax.Function(list(free_vars(body)), body, _relax.ObjectStructInfo(), None, private=True)
        lines = function.script().splitlines()
    except (ValueError, TypeError, RuntimeError):
        return None
    # Under `import tvm`, the header differs, but not the function.
    start = next(i for i, line in enumerate(lines) if line.startswith("def ")) + 1
    inner = textwrap.dedent("\n".join(lines[start:])).splitlines()
    return [line for line in inner if not re.fullmatch(r"\w+ = T\.int64\(\)", line)]


def _text(expr: Any) -> str:
    """Returns an expression as script text in one line."""
    if isinstance(expr, _relax.Tuple):
        fields = [_text(field) for field in expr.fields]
        return f"({', '.join(fields)}{',' if len(fields) == 1 else ''})"
    if isinstance(expr, _relax.TupleGetItem):
        return f"{_text(expr.tuple_value)}[{expr.index}]"
    if isinstance(expr, _relax.Call | _relax.Constant):
        var = _relax.Var("value", expr.struct_info_ or _relax.ObjectStructInfo())
        lines = _in_function(_relax.SeqExpr([_relax.BindingBlock([_relax.VarBinding(var, expr)])], var))
        if lines is not None and len(lines) == 2 and " = " in lines[0]:
            return lines[0].partition(" = ")[2]
    return str(expr)
