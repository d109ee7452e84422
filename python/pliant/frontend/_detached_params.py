"""The weights of imported models, which are stored outside of the modules.

The weights cannot be attributes of a module, since attributes contain only numbers and names.
Therefore, a table maps each imported module to its weights for the lifetime of the module.
"""

from __future__ import annotations

import weakref

from pliant._core import IRModule, NDArray

_params_of_module: dict[int, dict[str, list[NDArray]]] = {}


def attach_params(mod: IRModule, params: dict[str, list[NDArray]]) -> None:
    """Records the weights of a module's functions for the lifetime of the module."""
    _params_of_module[id(mod)] = params
    weakref.finalize(mod, _params_of_module.pop, id(mod), None)


def detach_params(mod: IRModule) -> tuple[IRModule, dict[str, list[NDArray]]]:
    """Returns a module and the weights that were imported with it, by function name:
    ``{"main": [...]}``, in the order of the parameters after the inputs.

    The module must be the one that ``from_onnx(..., keep_params_in_input=True)`` returned. For
    other modules, including results of passes, the dict is empty.
    """
    return mod, {name: list(params) for name, params in _params_of_module.get(id(mod), {}).items()}
