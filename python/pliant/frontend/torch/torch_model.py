"""The compiled form of a torch model: it is called as the module, with its structure of arguments and results."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch.export.graph_signature import InputKind, OutputKind
from torch.utils import _pytree as pytree

from pliant._compiled_model import Model
from pliant._core import Executable
from pliant.error import CallError
from pliant.frontend.torch.exported_program import ImportedProgram


class TorchModel(Model):
    """A compiled torch model. It takes the arguments of the module and returns results in the same structure.

    Tensors are passed and returned without a copy. Results are torch tensors, unless all tensors among the arguments are of other
    kinds, such as NumPy arrays. As in torch, inputs that the module mutates are overwritten, and the model keeps the new values of
    buffers (``buffers``).

    A call raises ``TypeError`` if the structure of the arguments differs from that of the exported module, ``ValueError`` for
    another value of an argument that is a constant of the program, and otherwise the errors of ``Model``.
    """

    def __new__(cls, executable: Executable, imported: ImportedProgram, shapes: str | None = None) -> TorchModel:
        return super().__new__(cls, executable, shapes)

    def __init__(self, executable: Executable, imported: ImportedProgram, shapes: str | None = None) -> None:
        program = imported.program
        self.buffers: dict[str, torch.Tensor] = {
            name: program.state_dict.get(name, program.constants.get(name)).detach().clone() for name in imported.state
        }
        self._inputs = imported.inputs
        self._outputs = imported.outputs
        self._mutations = imported.mutations
        self._complex_results = imported.complex_results
        self._in_spec = program.call_spec.in_spec
        self._out_spec = program.call_spec.out_spec
        self._takes_tensors_only = _is_flat(self._in_spec)
        specs = [s for s in program.graph_signature.input_specs if s.kind is InputKind.USER_INPUT]
        self._argument_names = [s.arg.name for s in specs]
        self._constants = {
            i: s.arg.value for i, s in enumerate(specs) if i not in imported.inputs and hasattr(s.arg, "value")
        }

    def __call__(self, *args: Any, timeout: float | None = None, **kwargs: Any) -> Any:
        """Runs the model. A run that takes longer than ``timeout`` seconds raises ``TimeLimitError``."""
        flat = self._flatten(args, kwargs)
        inputs = [flat[i] for i in self._inputs]
        as_torch = not inputs or any(isinstance(x, torch.Tensor) for x in inputs)
        values = [*(shared(x, self._argument_names[i]) for x, i in zip(inputs, self._inputs, strict=True)), *self.buffers.values()]
        limit = {} if timeout is None else {"timeout": timeout}
        results = list(super().__call__(*values, **limit))
        if as_torch:
            results = [as_tensor(r) for r in results]
            results = [torch.view_as_complex(r) if i in self._complex_results else r for i, r in enumerate(results)]
        count = len(results) - len(self._mutations)
        for (kind, target), value in zip(self._mutations, results[count:], strict=True):
            self._store(kind, target, value, flat)
        outputs = [o.constant if o.index is None else results[o.index] for o in self._outputs]
        return pytree.tree_unflatten(outputs, self._out_spec)

    def _flatten(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        if self._takes_tensors_only and not kwargs and len(args) == len(self._argument_names):
            if all(isinstance(a, torch.Tensor | np.ndarray) for a in args):
                return list(args)
        if kwargs:
            names = self._in_spec.children()[1].context
            kwargs = {name: kwargs[name] for name in [*(n for n in names if n in kwargs), *(k for k in kwargs if k not in names)]}
        flat, spec = pytree.tree_flatten((args, kwargs))
        if spec != self._in_spec:
            raise TypeError(
                f"the arguments differ in structure from those with which the module was exported: got {spec}, expected {self._in_spec}"
            )
        for i, constant in self._constants.items():
            if flat[i] is not constant and flat[i] != constant:
                raise ValueError(
                    f"the argument {self._argument_names[i]} is {flat[i]!r}, but the module was exported with the constant {constant!r}"
                )
        return flat

    def _store(self, kind: OutputKind, target: str, value: Any, flat: list[Any]) -> None:
        """Stores the new value of a buffer or input."""
        if kind is OutputKind.USER_INPUT_MUTATION:
            with torch.no_grad():
                flat[self._argument_names.index(target)].copy_(value)
        elif target in self.buffers:
            self.buffers[target] = value


def _is_flat(spec: pytree.TreeSpec) -> bool:
    """Whether the arguments are positional and none contains others."""
    positional, named = spec.children()
    return named.num_leaves == 0 and all(child.is_leaf() for child in positional.children())


def shared(x: Any, name: str) -> Any:
    """An argument in a form that shares its memory with Pliant.

    Raises ``CallError`` for a tensor that is not in the memory of the CPU.
    """
    if not isinstance(x, torch.Tensor):
        return x
    if x.layout is not torch.strided or not x.device.type == "cpu":
        what = f"on the device {x.device}: move it with .cpu()" if x.layout is torch.strided else f"of layout {x.layout}: use .to_dense()"
        raise CallError(f"the argument {name} is a tensor {what}")
    x = x.detach() if x.requires_grad else x
    return torch.view_as_real(x.resolve_conj()) if x.is_complex() else x


def as_tensor(value: Any) -> Any:
    """A result as a tensor of torch that shares its memory. Numbers are returned unchanged."""
    return torch.from_dlpack(value.__dlpack__(max_version=(1, 0))) if hasattr(value, "__dlpack__") else value
