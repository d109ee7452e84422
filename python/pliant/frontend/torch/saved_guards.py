"""The guards of programs that ``torch.export.load`` returned.

A saved program has no record of its symbols, but the text of its guards: ``L['x'].size()[0] > 4``, where ``L['x']`` is an argument
of the exported module.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind

from pliant.frontend.torch.symbolic_sizes import RULES

if TYPE_CHECKING:
    from pliant.frontend.torch.function_importer import FunctionImporter

OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: RULES["Add"],
    ast.Sub: lambda a, b: a - b,
    ast.Mult: RULES["Mul"],
    ast.FloorDiv: RULES["FloorDiv"],
    ast.Mod: RULES["Mod"],
    ast.USub: lambda a: -a,
    ast.Eq: RULES["Equality"],
    ast.NotEq: RULES["Unequality"],
    ast.Lt: RULES["StrictLessThan"],
    ast.LtE: RULES["LessThan"],
    ast.Gt: RULES["StrictGreaterThan"],
    ast.GtE: RULES["GreaterThan"],
    ast.And: RULES["And"],
    ast.Or: RULES["Or"],
    ast.Not: RULES["Not"],
}
"""Operators of guards on sizes, by the class of their syntax."""

FUNCTIONS = {"Max": RULES["Max"], "max": RULES["Max"], "Min": RULES["Min"], "min": RULES["Min"], "Mod": RULES["Mod"]}
"""Functions in guards on sizes."""

_STRIDES = re.compile(r"\.(stride|storage_offset)\(")


def check_saved_guards(cx: FunctionImporter, program: ExportedProgram) -> None:
    """Emits checks of the guards of a saved program. Guards on strides are skipped, since strides do not matter.

    Warns of guards that cannot be read.
    """
    specs = [s for s in program.graph_signature.input_specs if s.kind is InputKind.USER_INPUT]
    nodes = {n.name: n for n in program.graph_module.graph.nodes if n.op == "placeholder"}
    names = [s.arg.name for s in specs]
    values = {name: nodes[name].meta.get("val") for name in names if name in nodes}
    for guard in dict.fromkeys(getattr(program, "_guards_code", ())):
        if _STRIDES.search(guard):
            continue
        reader = _Reader(cx, names, values)
        try:
            condition = reader.read(ast.parse(guard.strip(), mode="eval").body)
        except (LookupError, SyntaxError, TypeError, ValueError) as error:
            warnings.warn(f"the guard {guard} of the saved program is not checked: {error}", stacklevel=2)
            continue
        text = reader.text(guard)
        cx.check(condition, f"the model was traced for sizes with {text}; other sizes may take another branch")


class _Reader:
    """Converts the syntax of a guard to a size, a condition, or an argument of the module."""

    def __init__(self, cx: FunctionImporter, names: list[str], values: Mapping[str, Any]) -> None:
        """``names`` are the names of the flattened arguments, and ``values`` what torch knows of them."""
        self._cx, self._names, self._values = cx, names, values

    def read(self, node: ast.AST) -> Any:
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            return node.value
        if isinstance(node, ast.BinOp):
            return self._apply(node.op, self.read(node.left), self.read(node.right))
        if isinstance(node, ast.UnaryOp):
            return self._apply(node.op, self.read(node.operand))
        if isinstance(node, ast.BoolOp):
            return self._apply(node.op, *map(self.read, node.values))
        if isinstance(node, ast.Compare):
            operands = [self.read(o) for o in (node.left, *node.comparators)]
            pairs = zip(node.ops, operands, operands[1:], strict=False)
            return self._apply(ast.And(), *(self._apply(op, a, b) for op, a, b in pairs))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            return FUNCTIONS[node.func.id](*map(self.read, node.args))
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Call):
            return self._size(node.value, node.slice)
        return self._cx.scalar_value(self._values[self._argument(node)])

    def _apply(self, op: ast.AST, *operands: Any) -> Any:
        return OPERATORS[type(op)](*operands)

    def _size(self, call: ast.Call, index: ast.expr) -> Any:
        """A dim: ``L['x'].size()[0]``."""
        if not (isinstance(call.func, ast.Attribute) and call.func.attr == "size" and isinstance(index, ast.Constant)):
            raise LookupError(ast.unparse(call))
        return self._cx.sizes.convert(self._values[self._argument(call.func.value)].shape[index.value])

    def _argument(self, node: ast.AST) -> str:
        """The name of a flattened argument: that of ``L['x'][0]['key']`` is ``x_0_key``."""
        keys: list[Any] = []
        while isinstance(node, ast.Subscript | ast.Attribute):
            keys.insert(0, node.attr if isinstance(node, ast.Attribute) else ast.literal_eval(node.slice))
            node = node.value
        if keys[:1] == ["flat_args"]:
            return self._names[keys[1]]
        return "_".join(re.sub(r"[^a-zA-Z0-9]", "_", str(key)).lower() for key in keys)

    def text(self, guard: str) -> str:
        """A guard with the names of flattened arguments: ``x.size()[0] > 4``."""
        return re.sub(r"L(\[[^\[\]]+\])+", lambda m: self._argument(ast.parse(m[0], mode="eval").body), guard.strip())
