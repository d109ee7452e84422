"""The passes that offload parts of a graph to external code generators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pliant import _core
from pliant.transform._pass_classes import CoreBackedPass


class FuseOpsByPattern(CoreBackedPass):
    """Moves the code that each pattern matches to a function. The function gets the attribute
    ``Composite`` with the name of the pattern. With ``annotate_codegen``, it becomes a local
    function inside a function with the attribute ``Codegen``. With ``bind_constants``, the function
    contains the constants that it uses; otherwise they are arguments.

    A pattern is ``(name, pattern[, annotation_patterns[, check]])`` or the name of a registered
    pattern. Without ``patterns``, all registered patterns are used. The patterns are tried in
    order. ``check(context)`` may reject matches; it can inspect ``context.matched_expr``,
    ``annotated_expr`` and ``matched_bindings``.

    Raises ``ValueError`` for an unknown name, and ``TypeError`` if a pattern is not a
    ``DFPattern``.
    """

    def __init__(
        self, patterns: Sequence[Any] | None = None, bind_constants: bool = True, annotate_codegen: bool = False
    ) -> None:
        from pliant.relax.backend.pattern_registry import fusion_row, get_patterns_with_prefix

        rows = get_patterns_with_prefix("") if patterns is None else [fusion_row(p) for p in patterns]
        super().__init__(_core.transform.fuse_ops_by_pattern(rows, bind_constants, annotate_codegen))


class RunCodegen(CoreBackedPass):
    """Compiles the functions with the attribute ``Codegen`` by the code generators of their
    backends. ``target_options`` are options for each backend by name. ``entry_functions`` are the
    names of the functions to keep, with everything that they reach; by default, these are the
    public functions.

    Raises ``TypeError`` if the options of a backend are not a mapping.
    """

    def __init__(
        self,
        target_options: Mapping[str, Mapping[str, Any]] | None = None,
        entry_functions: Sequence[str] | None = None,
    ) -> None:
        options = {name: dict(own) for name, own in (target_options or {}).items()}
        entries = None if entry_functions is None else [str(e) for e in entry_functions]
        super().__init__(_core.transform.run_codegen(options, entries))
