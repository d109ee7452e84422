"""User-defined operators. A registered operator is compiled from its tensor expression: the Rust core derives its type rule and its
loop function (``crates/pliant-ops/src/user_defined_ops.rs``)."""

from __future__ import annotations

import inspect
import keyword
from collections.abc import Callable
from typing import Any

from pliant import _core
from pliant.relax.op._operator_lookup import find, forget

__all__ = ["register_op"]


def register_op(name: str | None = None) -> Callable[[Callable[..., Any]], Any]:
    """Makes an operator from a function that maps ``te`` tensors to one or more tensors, and
    returns the operator.

    The positional parameters are the operands, and the keyword-only parameters are the attributes.
    An operand with the default ``None`` is optional, and ``*xs`` means any number of operands. The
    type of a call follows from the shape and data type of the function's result, also for symbolic
    sizes, so no type rule is needed.

    >>> @relax.op.register_op("my.scaled_sum")
    ... def scaled_sum(x, y, *, scale=1.0):
    ...     return te.compute(x.shape, lambda *i: (x(*i) + y(*i)) * scale)
    >>> relax.op.my.scaled_sum(a, b, scale=2.0)       # R.my.scaled_sum in a script

    Raises ``ValueError`` for a name that is taken or cannot be written in a script, and
    ``TypeError`` for a signature that does not follow these rules.
    """
    if callable(name):
        return register_op()(name)  # type: ignore[no-any-return]

    def register(func: Callable[..., Any]) -> Any:
        operands, attrs = [], []
        own = name or func.__name__
        for p in inspect.signature(func).parameters.values():
            if p.kind is p.VAR_POSITIONAL:
                operands.append(f"*{p.name}")
            elif p.kind is p.KEYWORD_ONLY:
                attrs.append((p.name, [] if p.default is p.empty else [p.default]))
            elif p.kind is p.VAR_KEYWORD:
                raise TypeError(f"operator '{own}': **{p.name} is not supported; declare each attribute as a keyword-only parameter")
            elif p.default is p.empty:
                operands.append(p.name)
            elif p.default is None:
                operands.append(f"{p.name}?")
            else:
                raise TypeError(
                    f"operator '{own}': the default of operand '{p.name}' must be None (help: attributes are "
                    f"keyword-only parameters, after a *)"
                )
        _check_name(own)
        path = _core.relax.register_te_op(own, operands, attrs, func)
        forget(path)
        return find(path)

    return register


def _check_name(name: str) -> None:
    """Raises ``ValueError`` for a name that cannot be written in a script or that has another
    meaning there."""
    from pliant.script import relax as script

    path = name.removeprefix("relax.")
    for word in path.split("."):
        if not word.isidentifier() or keyword.iskeyword(word) or word.startswith("__"):
            raise ValueError(f"{name!r} is not a valid operator name: R.{path} cannot be written in a script")
    if path.split(".")[0] in vars(script):
        raise ValueError(f"{name!r} is not a valid operator name: R.{path.split('.')[0]} has another meaning in scripts")
