"""Weights of imported models, stored outside of the modules.

Attributes of functions can contain only numbers and names. Therefore a table maps the module that
the importer created to its weights, until the module is destroyed.
"""

from __future__ import annotations

import weakref

from pliant._core import IRModule, NDArray

_params_of_module: dict[int, dict[str, list[NDArray]]] = {}


def attach_params(mod: IRModule, params: dict[str, list[NDArray]]) -> None:
    """Stores the weights of a module's functions until the module is destroyed."""
    _params_of_module[id(mod)] = params
    weakref.finalize(mod, _params_of_module.pop, id(mod), None)


def detach_params(mod: IRModule) -> tuple[IRModule, dict[str, list[NDArray]]]:
    """Returns the module that ``from_onnx(..., keep_params_in_input=True)`` returned, and its
    weights by function name: ``{"main": [...]}``, in the order of the parameters after the inputs.
    Modules from other sources and modules that passes created have no weights."""
    return mod, {name: list(params) for name, params in _params_of_module.get(id(mod), {}).items()}
