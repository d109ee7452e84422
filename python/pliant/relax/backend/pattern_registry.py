"""The registry of patterns and code generators of backends."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from pliant import _core
from pliant.relax.dpl import DFPattern


class PatternCheckContext:
    """The details of a match, for the check of a pattern: the matched value, its named
    subexpressions, and the bindings that would move to the composite function."""

    def __init__(self, matched_expr: Any, annotated_expr: dict[str, Any], matched_bindings: dict[Any, Any]) -> None:
        self.matched_expr = matched_expr
        self.annotated_expr = annotated_expr
        self.matched_bindings = matched_bindings

    @cached_property
    def _uses(self) -> list[tuple[Any, list[Any], Any]]:
        return _core.relax.uses_around(self.matched_expr)

    @cached_property
    def var_usages(self) -> dict[Any, list[Any]]:
        """Returns a dict from each variable of the function to the variables whose bound values use it."""
        return {var: users for var, users, _ in self._uses}

    @cached_property
    def value_to_bound_var(self) -> dict[Any, Any]:
        """Returns a dict from each bound value of the function to its variable."""
        return {value: var for var, _, value in self._uses if value is not None}


class FusionPattern(NamedTuple):
    """A named pattern for ``FuseOpsByPattern``. ``annotation_patterns`` names subpatterns, and
    ``check(context)`` may reject matches."""

    name: str
    pattern: DFPattern
    annotation_patterns: Mapping[str, DFPattern] | None = None
    check: Callable[[PatternCheckContext], bool] | None = None


def fusion_row(pattern: Any) -> Any:
    """Converts a pattern ``(name, pattern[, annotation_patterns[, check]])`` to the form that the
    extension module expects. A name is returned unchanged.

    Raises ``TypeError`` if the pattern is not a ``DFPattern``.
    """
    if isinstance(pattern, str):
        return pattern
    if hasattr(pattern, "pattern") and hasattr(pattern, "name"):
        annotations = getattr(pattern, "annotation_patterns", None)
        pattern = (pattern.name, pattern.pattern, annotations, getattr(pattern, "check", None))
    name, what, *rest = pattern
    parts: Any = rest[0] if rest else None
    check: Any = rest[1] if len(rest) > 1 else None
    if parts is not None and not isinstance(parts, Mapping):
        parts, check = (None, parts) if callable(parts) else (dict(parts), check)
    if isinstance(what, tuple):
        what, parts = what
    rows = [(key, part.node) for key, part in (parts or {}).items()]
    if not isinstance(what, DFPattern):
        raise TypeError(f"pattern '{name}' must be a DFPattern, got {what!r}")

    def call(matched: Any, annotated: dict[str, Any], inside: dict[Any, Any]) -> bool:
        # A subexpression inside the match is passed as its value, and one outside as a variable.
        parts = {name: inside.get(expr, expr) for name, expr in annotated.items()}
        return bool(check(PatternCheckContext(matched, parts, inside)))

    return (name, what.node, rows, None if check is None else call)


def register_patterns(patterns: Sequence[Any]) -> None:
    """Adds patterns ``(name, pattern[, annotation_patterns[, check]])`` to the registry. Patterns
    that are registered later are tried first.

    Raises ``TypeError`` if a pattern is not a ``DFPattern``.
    """
    _core.transform.register_backend_patterns([fusion_row(p) for p in patterns])


def get_patterns_with_prefix(prefix: str) -> list[str]:
    """Returns the names of the registered patterns that start with ``prefix``, in the order in
    which they are tried. ``FuseOpsByPattern`` accepts this list."""
    return _core.transform.backend_patterns(prefix)


def get_pattern(name: str) -> str | None:
    """Returns the name of a registered pattern, or ``None`` if it is not registered."""
    return name if name in _core.transform.backend_patterns(name) else None


def register_codegen(name: str, generate: Callable[..., Any] | None = None) -> Any:
    """Registers the code generator of a backend. Also works as a decorator. A generator with the
    same name is replaced.

    ``generate(functions, options, mod)`` is called once per module. ``functions`` are the functions
    whose attribute ``Codegen`` is the backend's name, and ``options`` are the backend's
    ``target_options``. The composite functions are local functions inside them, with the attribute
    ``Composite``. ``generate`` may declare fewer parameters.

    For each function, ``generate`` returns a callable in destination-passing style (inputs, then
    outputs) or the name of a registered packed function, as a list or as a dict by name. Another
    result raises ``TypeError`` when the module is compiled.
    """

    def register(generate: Callable[..., Any]) -> Callable[..., Any]:
        count = _positional(generate)

        def call(functions: list[Any], options: dict[str, Any], mod: Any) -> list[Any]:
            result = generate(*(functions, options, mod)[:count])
            if isinstance(result, Mapping):
                result = [result[f.attrs["global_symbol"]] for f in functions]
            if not isinstance(result, Sequence) or isinstance(result, str):
                what = "None" if result is None else type(result).__name__
                raise TypeError(
                    f"the code generator of '{name}' returned {what}, not a list (help: for each of the "
                    f"{len(functions)} functions, return a callable or the name of a packed function)"
                )
            return [_writer(name, one) for one in result]

        _core.transform.register_backend_codegen(name, call)
        return generate

    return register if generate is None else register(generate)


def _writer(backend: str, function: Any) -> Any:
    """Checks the packed function that a code generator returned for one function, and returns it. Raises ``TypeError``
    for a graph function. A callable is wrapped, so that a call raises ``TypeError`` if it returns a new tensor instead
    of writing the outputs."""
    if isinstance(function, _core.relax.Expr):
        raise TypeError(
            f"the code generator of '{backend}' returned a graph function (help: return a "
            f"callable, or the name of a packed function)"
        )
    if not callable(function) or isinstance(function, _core.PackedFunction):
        return function

    @functools.wraps(function, updated=())
    def run(*args: Any) -> None:
        result = function(*args)
        if result is not None and not any(_share_memory(result, arg) for arg in args):
            raise TypeError(
                f"a kernel of the backend '{backend}' returned {type(result).__name__}, but must write its result into "
                f"its last arguments (help: write out[:] = ... and return nothing)"
            )

    return run


def _share_memory(a: Any, b: Any) -> bool:
    try:
        a, b = (x.numpy() if hasattr(x, "numpy") else np.asarray(x) for x in (a, b))
        return bool(np.shares_memory(a, b))
    except (TypeError, ValueError):
        return False


def _positional(function: Callable[..., Any]) -> int:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return 3
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return 3
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return min(3, sum(p.kind in kinds for p in parameters))


def get_codegens() -> list[str]:
    """Returns the names of the backends with code generators."""
    return _core.transform.backend_codegens()
