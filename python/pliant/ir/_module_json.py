"""Modules and functions as JSON. The JSON contains the script, which is parsed again on loading."""

from __future__ import annotations

import json
from typing import Any

from pliant import _core
from pliant._core import IRModule, PrimFunc

_FORMAT = "pliant-ir"
_VERSION = 1


def save_json(node: IRModule | PrimFunc | _core.relax.Function) -> str:
    """Converts a module or a function to JSON text, constants included. :func:`load_json` reads it.

    Raises ``TypeError`` for other objects.
    """
    kinds = {IRModule: "module", _core.relax.Function: "function", PrimFunc: "prim_func"}
    kind = next((name for cls, name in kinds.items() if isinstance(node, cls)), None)
    if kind is None:
        raise TypeError(f"save_json takes an IRModule, a relax.Function or a tir.PrimFunc, not {type(node).__name__}")
    module = node if isinstance(node, IRModule) else IRModule({"main": node})
    return json.dumps({"format": _FORMAT, "version": _VERSION, "kind": kind, "script": module.script(show_meta=True)})


def load_json(json_str: str) -> Any:
    """Loads a module or function from text that :func:`save_json` wrote.

    Raises ``ValueError`` for other text or another version of the format, and ``ScriptError`` if
    the contained script is not valid.
    """
    try:
        data = json.loads(json_str)
    except json.JSONDecodeError as error:
        raise ValueError(f"load_json: the text is not valid JSON: {error}") from None
    if not isinstance(data, dict) or data.get("format") != _FORMAT or not isinstance(data.get("script"), str):
        raise ValueError("load_json: the JSON was not written by save_json (TVM's own JSON is another format)")
    if data.get("version") != _VERSION:
        raise ValueError(f"load_json: the format has version {data.get('version')}, but this version of Pliant reads version {_VERSION}")
    from pliant.script import from_source

    module: Any = from_source(data["script"])
    return module if data.get("kind") == "module" else next(iter(module.functions.values()))


def reduce_to_json(node: IRModule | PrimFunc | _core.relax.Function) -> tuple[Any, ...]:
    """Describes a module or function for ``pickle``: it is loaded from JSON."""
    return load_json, (save_json(node),)
