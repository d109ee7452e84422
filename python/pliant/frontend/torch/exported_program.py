"""Imports exported programs (``torch.export``) as modules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.fx
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, InputSpec, OutputKind, TensorArgument

from pliant import nd, relax
from pliant._core import IRModule
from pliant._core import relax as _relax
from pliant.error import UnsupportedError
from pliant.frontend._detached_params import attach_params
from pliant.frontend.torch.decompositions import prepare
from pliant.frontend.torch.function_importer import FunctionImporter
from pliant.frontend.torch.graph_import import Failed, import_nodes, result_expr
from pliant.frontend.torch.saved_guards import check_saved_guards
from pliant.frontend.torch.shape_guards import check_guards, shape_env_of
from pliant.frontend.torch.symbolic_sizes import SymbolicSizes
from pliant.frontend.torch.unsupported import Problems

SMALLEST_TRACED_SIZE = 2
"""torch traces programs with sizes of at least 2, and raises the lower bounds of dims without a name to this number."""


def from_exported_program(
    exported_program: ExportedProgram,
    *,
    keep_params_as_input: bool = False,
    unwrap_unit_return_tuple: bool = False,
    no_bind_return_tuple: bool = False,
) -> IRModule:
    """Imports a program that ``torch.export.export`` returned. Its graph becomes the function ``main``.

    The parameters of ``main`` are the tensors and sizes among the flattened inputs, with their names in the program. Dynamic dims
    are symbols with the names of their ``Dim``, or with torch's own (``s77``). Bounds of dims are checked when the function is
    called; sizes of 0 and 1 are allowed even if torch has traced larger ones.

    The result is a tuple with the flattened results, followed by the new values of mutated buffers and of mutated inputs. With
    ``unwrap_unit_return_tuple``, a single result is returned without the tuple. With ``no_bind_return_tuple``, the tuple is not
    bound to a variable.

    Parameters and buffers are constants. With ``keep_params_as_input``, they are parameters after the inputs, and ``detach_params``
    returns them.

    Raises ``UnsupportedError`` if the program contains unsupported operators or data types, with all of them and the source lines
    of the model.
    """
    if not isinstance(exported_program, ExportedProgram):
        raise TypeError(f"expected the result of torch.export.export, got {type(exported_program).__name__}")
    imported = import_program(
        exported_program,
        keep_params_as_input=keep_params_as_input,
        unwrap_unit_return_tuple=unwrap_unit_return_tuple,
        bind_return_tuple=not no_bind_return_tuple,
    )
    if keep_params_as_input:
        attach_params(imported.module, {"main": [nd.array(p) for p in imported.params]})
    return imported.module


@dataclass(frozen=True)
class Output:
    """A flattened result of the user's program: the result of ``main`` with an index, or a constant such as ``None``."""

    index: int | None
    constant: Any = None
    is_number: bool = False
    """Whether the result is a float that the program computes from sizes: ``main`` returns it as a tensor of rank 0."""


@dataclass
class ImportedProgram:
    """An imported program and what its callers need to know."""

    module: IRModule
    """The module with the function ``main``."""
    program: ExportedProgram
    """The program after decomposition."""
    inputs: list[int] = field(default_factory=list)
    """For each leading parameter of ``main``, the index of its flattened input."""
    complex_inputs: list[bool] = field(default_factory=list)
    """For each of ``inputs``, whether it is a complex tensor, which ``main`` takes as pairs of real numbers."""
    state: list[str] = field(default_factory=list)
    """The names of the buffers and parameters that are parameters of ``main`` after the inputs, since the program mutates them."""
    symbols: dict[str, str] = field(default_factory=dict)
    """The names of the size variables of the inputs, by the names of torch's symbols."""
    params: list[torch.Tensor] = field(default_factory=list)
    """The values of the parameters that are neither inputs nor mutated buffers."""
    outputs: list[Output] = field(default_factory=list)
    """The flattened results that the user sees."""
    complex_results: frozenset[int] = frozenset()
    """The indices of the results of ``main`` that stand for complex tensors: their last dim has the parts."""
    mutations: list[tuple[OutputKind, str]] = field(default_factory=list)
    """For each result after those of the user, what it is the new value of: a buffer or an input, by name."""


def dim_names(env: Any) -> dict[str, str]:
    """The names that the user gave to torch's symbols: ``{"s77": "batch"}``."""
    names: dict[str, str] = {}
    given = getattr(env, "source_name_to_debug_name", {})
    replaced = getattr(env, "replacements", {})
    for symbol, sources in getattr(env, "var_to_sources", {}).items():
        for source in sources if symbol not in replaced else ():
            text = source.name if isinstance(source.name, str) else source.name()
            name = given.get(text, "")
            if name.isidentifier() and not name.startswith("_") and name not in names.values():
                names.setdefault(symbol.name, name)
    return names


def import_program(
    exported: ExportedProgram,
    *,
    keep_params_as_input: bool = False,
    mutated_state_as_input: bool = False,
    unwrap_unit_return_tuple: bool = False,
    bind_return_tuple: bool = True,
) -> ImportedProgram:
    """Imports a program, as :func:`from_exported_program`. With ``mutated_state_as_input``, buffers and parameters that the program
    mutates are parameters of ``main``."""
    env = shape_env_of(exported.graph_module)
    guarded = {s.name for guard in getattr(env, "guards", ()) for s in guard.expr.free_symbols}
    program = prepare(exported)
    problems = Problems()
    builder = relax.BlockBuilder()
    cx = FunctionImporter(builder, SymbolicSizes(dim_names(env)), problems)
    imported = ImportedProgram(IRModule(), program)
    state = _mutated_state(program) if mutated_state_as_input else set()
    params = _create_parameters(cx, imported, keep_params_as_input, state)
    imported.symbols = {symbol: cx.sizes.variable(symbol).name for symbol in cx.sizes.defined}
    attrs: dict[str, Any] = {"num_input": len(imported.inputs) + len(imported.state), "fresh_results": True}
    bounds = _upper_bounds(cx, program)
    if bounds:
        attrs["tir_var_upper_bound"] = bounds
    with builder.function("main", params, attrs=attrs):
        _check_lower_bounds(cx, program, guarded)
        check_guards(cx, env)
        if not guarded:
            check_saved_guards(cx, exported)
        values = import_nodes(cx, program.graph_module)
        if any(isinstance(v, Failed) for v in values) or problems:
            problems.raise_if_any()
        values = _ordered_results(imported, values)
        imported.complex_results = _complex_results(imported)
        result = result_expr(values)
        if unwrap_unit_return_tuple and len(values) == 1:
            result = result.fields[0]
        elif bind_return_tuple:
            result = builder.emit(result)
        builder.emit_func_output(result)
    imported.module = to_dataflow(builder.get())
    return imported


def to_dataflow(module: IRModule) -> IRModule:
    """Moves the bindings without side effects into dataflow blocks."""
    result: IRModule = relax.transform.ConvertToDataflow()(module)
    return result


def _mutated_state(program: ExportedProgram) -> set[str]:
    """The names of the buffers and parameters that a program mutates."""
    kinds = (OutputKind.BUFFER_MUTATION, getattr(OutputKind, "PARAMETER_MUTATION", None))
    return {str(spec.target) for spec in program.graph_signature.output_specs if spec.kind in kinds}


def _create_parameters(cx: FunctionImporter, imported: ImportedProgram, keep_params: bool, state: set[str]) -> list[Any]:
    """Creates the parameters of ``main`` and the values of all placeholders."""
    program = imported.program
    nodes = [n for n in program.graph_module.graph.nodes if n.op == "placeholder"]
    inputs, buffers, weights = [], [], []
    position = 0
    for node, spec in zip(nodes, program.graph_signature.input_specs, strict=True):
        if spec.kind is InputKind.USER_INPUT:
            parameter = _input_parameter(cx, node, spec)
            if parameter is not None:
                inputs.append(parameter)
                imported.inputs.append(position)
                imported.complex_inputs.append(getattr(node.meta["val"], "is_complex", bool)())
            position += 1
            continue
        tensor = _stored_tensor(program, spec)
        if tensor is None:
            cx.values[node] = None
        elif spec.target in state:
            buffers.append(cx.tensor_parameter(node))
            imported.state.append(str(spec.target))
        elif keep_params:
            weights.append(cx.tensor_parameter(node))
            imported.params.append(tensor.detach())
        elif node.users:
            cx.values[node] = cx.constant(tensor)
        else:
            cx.values[node] = None
    return [*inputs, *buffers, *weights]


def _input_parameter(cx: FunctionImporter, node: torch.fx.Node, spec: InputSpec) -> Any:
    """The parameter for an input of the user, or ``None`` for an input that the program does not read."""
    meta = node.meta.get("val")
    if isinstance(spec.arg, TensorArgument) and isinstance(meta, torch.Tensor):
        return cx.tensor_parameter(node)
    if isinstance(meta, torch.SymInt):
        cx.sizes.define(meta)
        size = cx.sizes.convert(meta)
        cx.values[node] = size
        return relax.Var(node.name, _relax.PrimStructInfo(value=size))
    if isinstance(meta, torch.SymFloat | torch.SymBool):
        raise UnsupportedError(f"the input {node.name} is a number that is not an int: pass a tensor")
    cx.values[node] = getattr(spec.arg, "value", None)
    return None


def _stored_tensor(program: ExportedProgram, spec: InputSpec) -> torch.Tensor | None:
    target = spec.target or ""
    stored: Mapping[str, Any] = program.state_dict if target in program.state_dict else program.constants
    value = stored.get(target)
    return value if isinstance(value, torch.Tensor) else None


def _bounded_symbols(cx: FunctionImporter, program: ExportedProgram) -> dict[str, Any]:
    """The ranges of the symbols that inputs define, by torch's name."""
    constraints = getattr(program, "range_constraints", {})
    return {s.name: bounds for s, bounds in constraints.items() if getattr(s, "name", None) in cx.sizes.defined}


def _upper_bounds(cx: FunctionImporter, program: ExportedProgram) -> dict[str, int]:
    bounds = {}
    for symbol, limits in _bounded_symbols(cx, program).items():
        upper = limits.upper
        if getattr(upper, "is_Integer", False) and int(upper) < 2**48:
            bounds[cx.sizes.variable(symbol).name] = int(upper)
    return bounds


def _check_lower_bounds(cx: FunctionImporter, program: ExportedProgram, guarded: set[str]) -> None:
    """Checks the declared lower bounds of dims.

    torch raises the lower bound of a dim without a name to 2, and because of guards, which are checked on their own: ``guarded`` are
    the symbols in guards.
    """
    for symbol, limits in _bounded_symbols(cx, program).items():
        lower = declared_minimum(symbol, cx.sizes.name(symbol), limits.lower)
        if lower and (cx.sizes.name(symbol) != symbol or symbol not in guarded):
            size = cx.sizes.variable(symbol)
            cx.check(size >= lower, f"{size.name} must be at least {lower}")


def declared_minimum(symbol: str, name: str, lower: Any) -> int:
    """The smallest size that the lower bound of a symbol of torch allows. Bounds up to ``SMALLEST_TRACED_SIZE`` state nothing about
    symbols without a name from the user, unless torch traced no size for them (``u0``)."""
    bound = max(int(lower), 0) if getattr(lower, "is_Integer", False) else 0
    return bound if bound > SMALLEST_TRACED_SIZE or name != symbol or symbol.startswith("u") else 0


def _ordered_results(imported: ImportedProgram, values: list[Any]) -> list[Any]:
    """The results of the user that are not constants, followed by the new values of mutated buffers and inputs."""
    results: list[Any] = []
    specs = imported.program.graph_signature.output_specs
    pairs = list(zip(values, specs, strict=True))
    for value, spec in pairs:
        if spec.kind is not OutputKind.USER_OUTPUT:
            continue
        if value is None or isinstance(value, bool | int | float | str):
            imported.outputs.append(Output(None, value))
        else:
            imported.outputs.append(Output(len(results), is_number=type(spec.arg).__name__ == "SymFloatArgument"))
            results.append(value)
    mutations = [(v, s) for v, s in pairs if s.kind is not OutputKind.USER_OUTPUT and s.kind is not OutputKind.TOKEN]
    imported.mutations = [(s.kind, str(s.target)) for _, s in mutations]
    return [*results, *(v for v, _ in mutations)]


def _complex_results(imported: ImportedProgram) -> frozenset[int]:
    *_, output = imported.program.graph_module.graph.nodes
    specs = imported.program.graph_signature.output_specs
    nodes = list(zip(output.args[0], specs, strict=True))
    user = [n for n, s in nodes if s.kind is OutputKind.USER_OUTPUT]
    shown = [n for n, o in zip(user, imported.outputs, strict=True) if o.index is not None]
    others = [n for n, s in nodes if s.kind not in (OutputKind.USER_OUTPUT, OutputKind.TOKEN)]
    metas = [n.meta.get("val") for n in [*shown, *others]]
    return frozenset(i for i, m in enumerate(metas) if isinstance(m, torch.Tensor) and m.is_complex())


__all__ = ["ImportedProgram", "Output", "from_exported_program", "import_program", "to_dataflow"]
