"""The compiled form of a torch model: it is called as the module, with its structure of arguments and results."""

from __future__ import annotations

import copy
import os
from typing import Any

import numpy as np
import torch
from torch.export.graph_signature import InputKind, OutputKind
from torch.utils import _pytree as pytree

from pliant._compiled_model import Model
from pliant._core import CancelToken, Executable, IRModule
from pliant.error import CallError, DTypeError
from pliant.frontend.torch.argument_structure import ArgumentStructure
from pliant.frontend.torch.exported_program import ImportedProgram, Output
from pliant.frontend.torch.mutated_inputs import check_mutated_inputs


class TorchModel(Model):
    """A compiled torch model. It takes the arguments of the module and returns results in the same structure.

    Tensors are passed and returned without a copy. Results are torch tensors, unless all tensors among the arguments are of other
    kinds, such as NumPy arrays. As in torch, inputs that the module mutates are overwritten, and the model keeps the new values of
    buffers and parameters (``buffers``). Results record no gradients.

    A call raises ``TypeError`` if the structure of the arguments differs from that of the exported module, ``ValueError`` for
    another value of an argument that is a constant of the program, ``CallError`` for a mutated input that cannot be overwritten or
    that overlaps another one, and otherwise the errors of ``Model``.
    """

    buffers: dict[str, torch.Tensor]
    _module: IRModule

    def __new__(cls, executable: Executable, imported: ImportedProgram | None = None, shapes: str | None = None) -> TorchModel:
        return super().__new__(cls, executable, shapes)

    def __init__(self, executable: Executable, imported: ImportedProgram | None = None, shapes: str | None = None) -> None:
        """``imported`` is ``None`` only for copies, which take over the attributes of another model."""
        self._shapes = shapes
        if imported is not None:
            self._describe(imported)

    def _describe(self, imported: ImportedProgram) -> None:
        """Stores the arguments, results and buffers of the program."""
        program = imported.program
        self.buffers = {
            name: program.state_dict.get(name, program.constants.get(name)).detach().clone() for name in imported.state
        }
        self._inputs = imported.inputs
        self._outputs = imported.outputs
        self._mutations = imported.mutations
        self._complex_results = imported.complex_results
        self._out_spec = program.call_spec.out_spec
        specs = [s for s in program.graph_signature.input_specs if s.kind is InputKind.USER_INPUT]
        self._argument_names = [s.arg.name for s in specs]
        self._tensors = [
            (i, self._argument_names[i], is_complex) for i, is_complex in zip(imported.inputs, imported.complex_inputs, strict=True)
        ]
        self._mutated = [target for kind, target in imported.mutations if kind is OutputKind.USER_INPUT_MUTATION]
        self._constants = {i: s.arg.value for i, s in enumerate(specs) if i not in imported.inputs and hasattr(s.arg, "value")}
        self._structure = ArgumentStructure(program)
        self._takes_tensors_only = self._structure.is_flat and len(imported.inputs) == len(specs)

    def __call__(self, *args: Any, timeout: float | None = None, cancel: CancelToken | None = None, **kwargs: Any) -> Any:
        """Runs the model. A run that takes longer than ``timeout`` seconds raises ``TimeLimitError``, and one that ``cancel`` stops
        ``CancelledError``."""
        flat = self._flatten(args, kwargs)
        as_torch = not self._inputs or any(isinstance(flat[i], torch.Tensor) for i in self._inputs)
        values = self._values(flat)
        if self._mutated:
            check_mutated_inputs({name: flat[i] for i, name, _ in self._tensors}, self._mutated)
        options = {} if timeout is None and cancel is None else {"timeout": timeout, "cancel": cancel}
        results = list(super().__call__(*values, **options))
        if as_torch:
            results = [as_tensor(r, i in self._complex_results) for i, r in enumerate(results)]
        count = len(results) - len(self._mutations)
        for (kind, target), value in zip(self._mutations, results[count:], strict=True):
            self._store(kind, target, value, flat)
        outputs = [_output(o, results) for o in self._outputs]
        return pytree.tree_unflatten(outputs, self._out_spec)

    def explore(self, path: str | os.PathLike[str], *inputs: Any, title: str = "model", runs: int = 10) -> str:
        """Writes the page of :meth:`pliant.Model.explore`. ``inputs`` are the positional arguments of the module."""
        values = self._values(self._flatten(inputs, {})) if inputs else []
        return super().explore(path, *values, title=title, runs=runs)

    def _values(self, flat: list[Any]) -> list[Any]:
        """The arguments of the program for the flattened arguments of the module."""
        return [*(shared(flat[i], name, is_complex) for i, name, is_complex in self._tensors), *self.buffers.values()]

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the program and the buffers. Machine code is not part of it, so loading compiles the loops again."""
        state = {name: value for name, value in self.__dict__.items() if name not in ("_source", "_module")}
        return _unpickled, (type(self), self.executable.to_bytes(), self._shapes), state

    def __copy__(self) -> TorchModel:
        """Returns a model that shares the program and the buffers of this one."""
        return self._with({**self.__dict__, "buffers": dict(self.buffers)})

    def __deepcopy__(self, memo: dict[int, Any]) -> TorchModel:
        """Returns a model with buffers of its own. Both share the program."""
        return self._with({**self.__dict__, "buffers": copy.deepcopy(self.buffers, memo)})

    def _with(self, attributes: dict[str, Any]) -> TorchModel:
        model = type(self)(self.executable, None, self._shapes)
        model.__dict__.update(attributes)
        return model

    def _flatten(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        if self._takes_tensors_only and not kwargs and len(args) == len(self._argument_names):
            if all(isinstance(a, torch.Tensor | np.ndarray) for a in args):
                return list(args)
        flat = self._structure.flatten(args, kwargs)
        for i, constant in self._constants.items():
            if not _same_constant(flat[i], constant):
                name = self._argument_names[i]
                raise ValueError(f"the argument {name} is {flat[i]!r}, but the module was exported with the constant {constant!r}")
        return flat

    def _store(self, kind: OutputKind, target: str, value: Any, flat: list[Any]) -> None:
        """Stores the new value of an input, or of a buffer or parameter."""
        if kind is not OutputKind.USER_INPUT_MUTATION:
            self.buffers[target] = value
            return
        overwritten = flat[self._argument_names.index(target)]
        if isinstance(overwritten, torch.Tensor):
            with torch.no_grad():
                overwritten.copy_(value)
        else:
            np.copyto(overwritten, np.asarray(value))


def _unpickled(cls: type[TorchModel], program: bytes, shapes: str | None) -> TorchModel:
    return cls(Executable.from_bytes(program), None, shapes)


def _output(output: Output, results: list[Any]) -> Any:
    if output.index is None:
        return output.constant
    result = results[output.index]
    return result.item() if output.is_number else result


def _same_constant(value: Any, constant: Any) -> bool:
    """Whether an argument has the type and the value of a constant. NaN equals NaN."""
    if value is constant:
        return True
    return type(value) is type(constant) and bool(value == constant or (value != value and constant != constant))


def shared(x: Any, name: str, is_complex: bool) -> Any:
    """An argument in a form that shares its memory with Pliant, for which complex tensors are pairs of real ones.

    Raises ``CallError`` for a tensor that is not in the memory of the CPU, and ``DTypeError`` if only one of the argument and the
    parameter is complex.
    """
    if not isinstance(x, torch.Tensor):
        return x
    if x.layout is not torch.strided or not x.is_cpu:
        is_strided = x.layout is torch.strided
        what = f"on the device {x.device}: move it with .cpu()" if is_strided else f"of layout {x.layout}: use .to_dense()"
        raise CallError(f"the argument {name} is a tensor {what}")
    if x.is_complex() is not is_complex:
        raise DTypeError(f"the argument {name} must be a {'complex' if is_complex else 'real'} tensor, but its type is {x.dtype}")
    x = x.detach() if x.requires_grad else x
    if is_complex:
        return torch.view_as_real(x.resolve_conj())
    return x.resolve_neg() if x.is_neg() else x


def as_tensor(value: Any, is_complex: bool = False) -> Any:
    """A result as a tensor of torch that shares its memory. Numbers are returned unchanged."""
    tensor = torch.from_dlpack(value.__dlpack__(max_version=(1, 0))) if hasattr(value, "__dlpack__") else value
    return torch.view_as_complex(tensor) if is_complex else tensor
