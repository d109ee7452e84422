"""Weights of imported models, stored separately from the modules.

Attributes of functions hold only numbers and names. Therefore the weights are kept beside the
module that the importer created, as long as the module lives.
"""

from __future__ import annotations

import weakref

from pliant._core import IRModule, NDArray

_held: dict[int, dict[str, list[NDArray]]] = {}


def hold_params(mod: IRModule, params: dict[str, list[NDArray]]) -> None:
    """Stores the weights of a module's functions until the module is destroyed."""
    _held[id(mod)] = params
    weakref.finalize(mod, _held.pop, id(mod), None)


def detach_params(mod: IRModule) -> tuple[IRModule, dict[str, list[NDArray]]]:
    """Returns the module that ``from_onnx(..., keep_params_in_input=True)`` returned, and its
    weights by function name: ``{"main": [...]}``, in the order of the parameters after the inputs.
    Modules from other sources and modules that passes created have no weights."""
    return mod, {name: list(params) for name, params in _held.get(id(mod), {}).items()}
