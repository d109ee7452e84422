"""Builds Python signatures of operators, for ``help`` and ``inspect``."""

from __future__ import annotations

import inspect
from typing import Any

_KINDS = inspect._ParameterKind


def of(op: Any) -> inspect.Signature:
    """Builds the signature of an operator from its declaration."""
    params = []
    variadic = False
    for name, kind, default in op.parameters:
        if kind == "variadic":
            variadic = True
            params.append(inspect.Parameter(name, _KINDS.VAR_POSITIONAL))
            continue
        place = _KINDS.KEYWORD_ONLY if variadic else _KINDS.POSITIONAL_OR_KEYWORD
        if kind in ("operand", "required"):
            value: Any = inspect.Parameter.empty
            if any(p.default is not inspect.Parameter.empty for p in params):
                place = _KINDS.KEYWORD_ONLY
        else:
            value = default
        params.append(inspect.Parameter(name, place, default=value))
    params.sort(key=lambda p: p.kind)
    return inspect.Signature(params)
