"""Weights of imported models, apart from them.

Attributes hold numbers and names, so weights stand beside the module that the importer made, as long as it lives.
"""

from __future__ import annotations

import weakref

from pliant._core import IRModule, NDArray

_held: dict[int, dict[str, list[NDArray]]] = {}


def hold_params(mod: IRModule, params: dict[str, list[NDArray]]) -> None:
    """Keeps the weights of a module's functions until it dies."""
    _held[id(mod)] = params
    weakref.finalize(mod, _held.pop, id(mod), None)


def detach_params(mod: IRModule) -> tuple[IRModule, dict[str, list[NDArray]]]:
    """The module that ``from_onnx(..., keep_params_in_input=True)`` returned, and its weights by the names of the functions:
    ``{"main": [...]}``, in the order of the parameters behind the inputs. A module of another maker, or one that passes have
    made of it, has none."""
    return mod, {name: list(params) for name, params in _held.get(id(mod), {}).items()}
