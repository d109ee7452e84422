"""Compiles torch modules and exported programs: the part of ``pliant.compile`` for torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.export import ExportedProgram

from pliant._compiled_model import Model
from pliant._explorer import Source
from pliant.error import CompileError
from pliant.frontend.torch.exported_program import ImportedProgram, declared_minimum, import_program
from pliant.frontend.torch.example_inputs import enlarged_examples
from pliant.frontend.torch.recurrent_shapes import symbolic_steps
from pliant.frontend.torch.torch_model import TorchModel

EXPORT_OPTIONS = ("args", "kwargs", "dynamic_shapes", "strict")
"""The options of ``pliant.compile`` for modules, which ``torch.export.export`` takes."""


def is_torch_program(program: Any) -> bool:
    """Whether an object is a module or an exported program of torch."""
    return isinstance(program, torch.nn.Module | ExportedProgram)


def any_size() -> Any:
    """A context manager in which ``torch.compile`` compiles a model once for all sizes: 0 and 1 are no special cases, and dims that
    are equal in the first call are separate symbols. The first call should have sizes of at least 2."""
    from torch.fx.experimental import _config

    known = {"backed_size_oblivious": True}
    return _config.patch(**{name: value for name, value in known.items() if hasattr(_config, name)})


def compile_torch(program: Any, target: Any, options: dict[str, Any]) -> Model:
    """Compiles a module or an exported program. ``options`` are those of ``pliant.compile``, and for a module also ``args``,
    ``kwargs`` and ``dynamic_shapes``.

    Raises ``TypeError`` for missing example inputs, and ``CompileError`` if torch cannot export the module.
    """
    if isinstance(program, torch.nn.Module):
        if isinstance(target, tuple | list | torch.Tensor):
            options.setdefault("args", target)
            target = None
        program = export(program, options)
    unknown = [name for name in EXPORT_OPTIONS if name in options]
    if unknown:
        raise TypeError(f"the options {', '.join(unknown)} are for modules, but the program is already exported")
    from pliant._model import compile_module

    imported = import_program(program, mutated_state_as_input=True)
    model = TorchModel(compile_module(imported.module, target, options), imported, describe_symbols(imported))
    # The module shares its weights with the parameters of torch, so the model keeps it for the explorer.
    model._module = imported.module
    model._source = Source(imported.module, target, options)
    return model


def export(module: torch.nn.Module, options: dict[str, Any]) -> ExportedProgram:
    """Exports a module with the example inputs among the options, which are removed there.

    Raises ``TypeError`` for missing example inputs, and ``CompileError`` with torch's reason if torch cannot export the module.
    """
    if "args" not in options and "kwargs" not in options:
        example = "pliant.compile(module, (x,), dynamic_shapes=...)"
        raise TypeError(f"{type(module).__name__} is a torch module: pass example inputs, as in {example}")
    args, kwargs = options.pop("args", ()), options.pop("kwargs", None)
    if isinstance(args, torch.Tensor) or not isinstance(args, Sequence):
        args = (args,)
    if kwargs is not None and not isinstance(kwargs, Mapping):
        raise TypeError(f"kwargs: expected a dict of example inputs by name, got {type(kwargs).__name__}")
    shapes, strict = options.pop("dynamic_shapes", None), options.pop("strict", False)
    args, kwargs = tuple(args), dict(kwargs or {})
    if shapes is not None:
        args, kwargs = enlarged_examples(module, args, kwargs, shapes)
    try:
        with symbolic_steps(), torch.no_grad():
            return torch.export.export(module, args, kwargs, dynamic_shapes=shapes, strict=strict)
    except Exception as error:
        raise CompileError(f"torch cannot export {type(module).__name__}: {error}") from error


def describe_symbols(imported: ImportedProgram) -> str:
    """The text that ``Model.explain_shapes`` prints: the symbols of the inputs with their ranges."""
    program = imported.program
    lines = []
    for symbol, bounds in program.range_constraints.items():
        name = imported.symbols.get(getattr(symbol, "name", ""))
        if name is None:
            continue
        upper = bounds.upper
        low = declared_minimum(symbol.name, name, bounds.lower)
        high = int(upper) if getattr(upper, "is_Integer", False) and int(upper) < 2**48 else "any size"
        lines.append(f"{name}: {low} .. {high}")
    return "\n".join(lines)
