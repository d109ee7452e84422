"""Splits the call of a case into its operator, operands and attributes, so that tests can build
variants."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from functools import cache

from cases import CASES, Case, Param

import pliant

OTHER = {
    # Lowered stages, calls and control flow, which are not operators on tensors with a NumPy
    # equivalent.
    *("assert_op", "print", "null_value", "shape_of", "tensor_to_shape"),
    *("make_closure", "invoke_closure", "invoke_pure_closure", "while_loop"),
    # Their results are scalars; test_range_operator.py runs them in all executors, also with wrong
    # operands.
    *("item", "trip_count"),
}
OTHER_GROUPS = ("call_", "builtin.", "memory.", "vm.", "inspect.", "grad.")
"""Inspecting tensors (`inspect`) and their memory is tested in test_inspection_operators.py. The operators that the pass Gradient
emits and reads (`grad`) are tested in tests/python/training, with the gradients of the operators to which they belong."""


@dataclass(frozen=True)
class Call:
    """A call `R.name(*operands, **attrs)` with all parts as text."""

    name: str
    operands: tuple[str, ...]
    attrs: tuple[tuple[str, str], ...]

    @property
    def text(self) -> str:
        words = [*self.operands, *(f"{key}={value}" for key, value in self.attrs)]
        return f"R.{self.name}({', '.join(words)})"

    def having(self, key: str, value: str) -> Call:
        """Returns the call with another value of an attribute."""
        return replace(self, attrs=(*((k, v) for k, v in self.attrs if k != key), (key, value)))


@cache
def canonical(name: str) -> str:
    """Returns the primary name of an operator, given its name or an alias."""
    found: str = pliant._core.relax.get_op(name).name
    return found.removeprefix("relax.")


def taken_apart(case: Case) -> Call | None:
    """Returns the call of a case, or `None` if the case is more than a call of one operator."""
    node = ast.parse(case.expr, mode="eval").body
    if not isinstance(node, ast.Call):
        return None
    name = canonical(ast.unparse(node.func).removeprefix("R."))
    operands: list[str] = []
    attrs: list[tuple[str, str]] = []
    params = pliant._core.relax.get_op(name).parameters
    kinds = {key: kind for key, kind, _ in params}
    order = [key for key, kind, _ in params if kind in ("attr", "required")]
    count = sum(kind in ("operand", "optional") for kind in kinds.values())
    variadic = "variadic" in kinds.values()
    for k, arg in enumerate(node.args):
        if variadic or k < count:
            operands.append(ast.unparse(arg))
        else:
            attrs.append((order[k - count], ast.unparse(arg)))
    for keyword in node.keywords:
        text = ast.unparse(keyword.value)
        if kinds.get(str(keyword.arg)) in ("attr", "required"):
            attrs.append((str(keyword.arg), text))
        else:
            operands.append(f"{keyword.arg}={text}")
    return Call(name, tuple(operands), tuple(attrs))


@cache
def operators() -> tuple[str, ...]:
    """Returns the operators on tensors, without the prefix `relax.` and without aliases."""
    table = pliant._core.relax
    # Other tests in this process may have registered their own operators.
    own = {n for n in table.op_names() if table.get_op(n).__doc__.startswith("A user-defined operator")}
    names = {canonical(n.removeprefix("relax.")) for n in table.op_names() if n not in own}
    return tuple(sorted(n for n in names - OTHER if not n.startswith(OTHER_GROUPS)))


@cache
def cases_of(name: str) -> tuple[tuple[Case, Call], ...]:
    """Returns the cases of an operator, with their calls."""
    return tuple((case, call) for case, call in APART if call.name == name)


def with_param(case: Case, name: str, param: Param) -> Case:
    """Returns the case with another parameter of that name."""
    return replace(case, params=tuple(param if p.name == name else p for p in case.params))


APART = [(case, call) for case in CASES if (call := taken_apart(case)) is not None]
