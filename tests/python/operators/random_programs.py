"""Generates random programs of operators, which `test_random_programs.py` compiles once and runs with many shapes.

A step is one of two kinds. It is one of the operators' cases (`cases`), whose parameters are
replaced by values of the program if their types match. Or it is a call made from the operator's
signature, with random operands and attributes; the type rule decides whether that call is valid.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from cases import CASES, Case, Param

import pliant
from pliant.script import from_source

Pick = Callable[[int], int]
"""Returns an integer below its argument."""

DTYPES = ("float32", "float32", "float64", "float16", "int8", "int32", "int64", "uint8", "uint32", "bool")
TO = (*DTYPES, "bfloat16", "int16", "uint16", "uint64")
MAX_RANK = 4
TRIES = 40
"""The number of calls that the type rule may refuse before a case is used instead."""

SKIPPED = {
    # Operators that do not compute tensors from tensors, or have effects.
    *("relax.assert_op", "relax.print", "relax.null_value", "relax.shape_of", "relax.tensor_to_shape"),
    *("relax.make_closure", "relax.invoke_closure", "relax.invoke_pure_closure", "relax.while_loop"),
    *("relax.item", "relax.trip_count"),
}
SKIPPED_GROUPS = ("relax.call_", "relax.builtin.", "relax.memory.", "relax.vm.", "relax.inspect.", "relax.grad.")


@dataclass(frozen=True)
class Value:
    """A tensor of a random program. Its dims are texts, or `None` if they are unknown."""

    name: str
    dtype: str
    dims: tuple[str, ...] | None
    rank: int | None


@dataclass(frozen=True)
class Step:
    """A binding of a random program: the text of its call, including the operands' names, and the
    values that it defines.
    """

    text: str
    operands: tuple[str, ...]
    outputs: tuple[Value, ...]
    case: Case | None
    order: tuple[str, ...]
    """The values that replace the parameters of a case; for other steps the operands."""

    op: str


@dataclass
class Program:
    """A random program: its inputs, its steps and all values that they define."""

    inputs: list[Param] = field(default_factory=list)
    symbols: list[str] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    pool: list[Value] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)

    def script(self, results: Sequence[str], more: Sequence[str] = ()) -> str:
        """Returns the script of the program that returns these values."""
        params = ", ".join(f"{p.name}: {tensor(p.dims, p.dtype)}" for p in self.inputs)
        symbols = "".join(f"        {s} = T.int64()\n" for s in self.symbols)
        lines = "".join(f"            {line}\n" for line in [*self.lines, *more])
        values = {v.name: v for v in self.pool}
        lines += "".join(
            f'            out{k} = R.astype({r}, dtype="float32")\n'
            if (v := values.get(r)) and v.dtype == "bfloat16"
            else f"            out{k} = {r}\n"
            for k, r in enumerate(results)
        )
        outs = ", ".join(f"out{k}" for k in range(len(results)))
        return (
            "@I.ir_module\nclass Module:\n    @R.function\n"
            f"    def main({params}):\n{symbols}        with R.dataflow():\n{lines}"
            f"            R.output({outs})\n        return ({outs}{',' if len(results) == 1 else ''})\n"
        )

    def leaves(self) -> list[str]:
        """Returns the values that no step uses. They are the results of the program, so that no
        step is dead code.
        """
        used = {name for step in self.steps for name in step.operands}
        made = [v.name for step in self.steps for v in step.outputs]
        return [name for name in made if name not in used]


def tensor(dims: Sequence[int | str], dtype: str) -> str:
    shape = "".join(f"{d}, " for d in dims)
    return f'R.Tensor(({shape}), dtype="{dtype}")'


def operators() -> list[str]:
    table = pliant._core.relax
    names = sorted(set(table.op_names()) - SKIPPED)
    # Other tests in this process may have registered their own operators.
    own = {n for n in names if table.get_op(n).__doc__.startswith("A user-defined operator")}
    return [n for n in names if n not in own and not n.startswith(SKIPPED_GROUPS)]


# ---- types ----


def types_of(info: Any) -> list[tuple[str, tuple[str, ...] | None, int | None]] | None:
    """Returns the data type, dims and rank of each tensor in a type, which is a tensor or a tuple of tensors. Dims or a rank that
    is unknown is `None`. Returns `None` for any other type."""
    if isinstance(info, pliant.relax.TupleStructInfo):
        fields = [types_of(f) for f in info.fields]
        return None if any(f is None or len(f) != 1 for f in fields) else [f[0] for f in fields if f]
    if not isinstance(info, pliant.relax.TensorStructInfo) or not info.dtype:
        return None
    dims = None if info.shape is None else tuple(str(d) for d in info.shape)
    rank = None if info.ndim < 0 else info.ndim
    return [(str(info.dtype), dims, rank)]


def typed(program: Program, text: str) -> Any:
    """Returns the type of a call in a program, or `None` if the type rule refuses it."""
    name = f"lv{len(program.steps)}"
    source = program.script([], [f"{name} = {text}"])
    source = source.replace("R.output()", f"R.output({name})").replace("return ()", f"return {name}")
    try:
        return from_source(source)["main"].ret_struct_info
    except pliant.PliantError:
        return None


def add(program: Program, text: str, operands: Sequence[str], op: str, case: Case | None = None) -> bool:
    """Adds a call to the program if its type rule accepts it and its results are tensors."""
    info = typed(program, text)
    made = None if info is None else types_of(info)
    if not made or any(rank is None or rank > MAX_RANK for _, _, rank in made):
        return False
    name = f"lv{len(program.steps)}"
    program.lines.append(f"{name} = {text}")
    if isinstance(info, pliant.relax.TupleStructInfo):
        names = [f"{name}_{k}" for k in range(len(made))]
        program.lines += [f"{field} = {name}[{k}]" for k, field in enumerate(names)]
    else:
        names = [name]
    values = tuple(Value(n, *t) for n, t in zip(names, made, strict=True))
    program.pool += values
    program.steps.append(Step(text, tuple(dict.fromkeys(operands)), values, case, tuple(operands), op))
    return True


# ---- inputs ----


def new_input(program: Program, param: Param, dims: Sequence[int | str]) -> Value:
    name = f"in{len(program.inputs)}"
    program.inputs.append(replace(param, name=name, dims=tuple(dims)))
    value = Value(name, param.dtype, tuple(str(d) for d in dims), len(dims))
    program.pool.append(value)
    return value


def some_symbol(program: Program, pick: Pick) -> str:
    if not program.symbols or (len(program.symbols) < 4 and pick(3) == 0):
        program.symbols.append(f"n{len(program.symbols)}")
        return program.symbols[-1]
    return program.symbols[pick(len(program.symbols))]


def drawn_input(program: Program, pick: Pick) -> Value:
    dims = [(some_symbol(program, pick), 1, 2, 4)[k if (k := pick(6)) < 4 else 0] for _ in range(pick(MAX_RANK))]
    return new_input(program, Param("", DTYPES[pick(len(DTYPES))], ()), dims)


# ---- steps from cases ----

USABLE = [
    case
    for case in CASES
    # Cases that are refused at most sizes, or differ with numbers in place of symbols, would test
    # little here.
    if case.constant and all(d == "bool" or "float" in d or "int" in d for d in (p.dtype for p in case.params))
]


def matched(param: Param, value: Value, sizes: dict[str, str], written: set[str]) -> dict[str, str] | None:
    """Returns the sizes of a case's symbols if `value` is passed for the parameter `param` of the case. Returns `None` if `value`
    does not match the parameter.
    """
    if value.dtype != param.dtype or value.dims is None or len(value.dims) != len(param.dims):
        return None
    found = dict(sizes)
    for want, have in zip(param.dims, value.dims, strict=True):
        if isinstance(want, int):
            if have != str(want):
                return None
        elif found.setdefault(want, have) != have or (want in written and not re.fullmatch(r"\w+", have)):
            return None
    return found


def from_case(program: Program, case: Case, pick: Pick, fresh: bool) -> bool:
    """Adds a case as a step; its parameters become values of the program, or new inputs if `fresh`."""
    tree = ast.parse(case.expr, mode="eval")
    written = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
    sizes: dict[str, str] = {}
    names: dict[str, str] = {}
    before = (len(program.inputs), len(program.symbols), len(program.pool))
    for param in case.params:
        fits = []
        # Parameters with special values, such as indices, are always new inputs.
        if not fresh and param.draw is None:
            fits = [(v, m) for v in program.pool if (m := matched(param, v, sizes, written)) is not None]
        if fits and pick(5):
            value, sizes = fits[-1 - pick(len(fits))]
        else:
            for d in param.dims:
                if isinstance(d, str) and d not in sizes:
                    sizes[d] = some_symbol(program, pick)
            texts = [sizes[d] if isinstance(d, str) else str(d) for d in param.dims]
            dims = [int(d) if d.isdigit() else d for d in texts]
            if not all(isinstance(d, int) or d in program.symbols for d in dims):
                del program.inputs[before[0] :], program.symbols[before[1] :], program.pool[before[2] :]
                return False
            value = new_input(program, param, dims)
        names[param.name] = value.name
    text = renamed(tree, {**sizes, **names})
    order = tuple(names[p.name] for p in case.params)
    op = "relax." + str(re.search(r"\bR\.((?:\w+\.)*\w+)\(", case.expr)[1])  # type: ignore[index]
    if add(program, text, order, op, case):
        return True
    del program.inputs[before[0] :], program.symbols[before[1] :], program.pool[before[2] :]
    return False


def renamed(tree: ast.Expression, names: dict[str, str]) -> str:
    """Returns the expression with variables renamed. Names of keyword arguments are kept."""

    class Rename(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            new = names.get(node.id)
            return node if new is None else ast.parse(new, mode="eval").body

    return ast.unparse(Rename().visit(ast.parse(ast.unparse(tree), mode="eval")))


# ---- steps from signatures ----


def operand_text(program: Program, pick: Pick, used: list[Value]) -> str:
    def one() -> str:
        value = program.pool[-1 - pick(min(6, len(program.pool)))]
        used.append(value)
        return value.name

    kind = pick(12)
    if kind == 0:
        return f"({one()}, {one()})"
    if kind == 1:
        return f'R.const({pick(5) - 1}, "{DTYPES[pick(len(DTYPES))]}")'
    if kind == 2 and program.symbols:
        return f"({some_symbol(program, pick)}, {1 + pick(4)})"
    return one()


def attribute_text(name: str, default: Any, rank: int, pick: Pick) -> str | None:
    """Returns a random value for an attribute, or `None` for its default."""
    if isinstance(default, bool):
        return str(bool(pick(2)))
    if "dtype" in name:
        return repr(TO[pick(len(TO))])
    if isinstance(default, str | float) or (default is not None and pick(2)):
        return None
    if name in ("axis", "axes"):
        axes = [str(pick(2 * rank) - rank) if rank else "0" for _ in range(1 + pick(2))]
        return (axes[0], f"[{', '.join(axes)}]", None)[pick(3 if default is None else 1)]
    return (str(pick(4)), f"[{pick(3)}, {pick(3)}]", "1")[pick(3)]


def from_signature(program: Program, op: str, pick: Pick) -> bool:
    """Adds a call with random operands and attributes if its type rule accepts it."""
    used: list[Value] = []
    words: list[str] = []
    for name, kind, default in pliant._core.relax.get_op(op).parameters:
        if kind == "operand" or (kind in ("optional", "variadic") and pick(4) == 0):
            words.append(operand_text(program, pick, used))
        elif kind in ("attr", "required"):
            rank = used[0].rank if used and used[0].rank is not None else 1
            value = attribute_text(name, default, rank, pick)
            if value is not None:
                words.append(f"{name}={value}")
    text = f"R.{op.removeprefix('relax.')}({', '.join(words)})"
    return bool(used) and add(program, text, [v.name for v in used], op)


def compose(pick: Pick, steps: int) -> Program:
    """Creates a random program of about `steps` steps."""
    program, names = Program(), operators()
    for _ in range(1 + pick(3)):
        drawn_input(program, pick)
    for _ in range(steps):
        if pick(2) and any(from_signature(program, names[pick(len(names))], pick) for _ in range(TRIES)):
            continue
        case = USABLE[pick(len(USABLE))]
        _ = from_case(program, case, pick, fresh=False) or from_case(program, case, pick, fresh=True)
    return program
