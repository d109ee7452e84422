"""Maps of indices, which describe layouts."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from pliant import _core
from pliant._core import PrimExpr

__all__ = ["IndexMap"]


class IndexMap:
    """A map from the indices of a tensor to those of the same tensor in another layout. The map can be called with indices."""

    AXIS_SEPARATOR = "axis_separator"
    """A marker between groups of dims. There is no memory in which groups matter, so it is ignored."""

    def __init__(
        self, initial_indices: Sequence[PrimExpr], final_indices: Sequence[PrimExpr], inverse_index_map: IndexMap | None = None
    ) -> None:
        self.initial_indices = list(initial_indices)
        self.final_indices = list(final_indices)
        self.inverse_index_map = inverse_index_map

    @staticmethod
    def from_func(
        mapping_function: Callable[..., Any],
        ndim: int | None = None,
        inverse_index_map: Callable[..., Any] | IndexMap | None = None,
        *,
        index_dtype: str = "int64",
    ) -> IndexMap:
        """Creates a map from a function of indices. ``ndim`` is the number of dims if the function has a parameter ``*indices``.
        Keyword-only parameters are no indices.

        Raises ``ValueError`` if ``ndim`` is missing.
        """
        names: list[str] = []
        for parameter in inspect.signature(mapping_function).parameters.values():
            if parameter.kind is parameter.VAR_POSITIONAL:
                if ndim is None:
                    raise ValueError(f"IndexMap: ndim is required, because the function has the parameter *{parameter.name}")
                names += [f"{parameter.name}_{k}" for k in range(ndim - len(names))]
            elif parameter.kind is not parameter.KEYWORD_ONLY:
                names.append(parameter.name)
        indices = [_core.Var(name, index_dtype) for name in names]
        result = mapping_function(*indices)
        parts = list(result) if isinstance(result, list | tuple) else [result]
        kept = [part for part in parts if part is not IndexMap.AXIS_SEPARATOR]
        final = [_core.tir_const(part, index_dtype) if isinstance(part, int) else part for part in kept]
        inverse = inverse_index_map
        if inverse is not None and not isinstance(inverse, IndexMap):
            inverse = IndexMap.from_func(inverse, len(final), index_dtype=index_dtype)
        return IndexMap(indices, final, inverse)

    def map_indices(self, indices: Sequence[PrimExpr]) -> list[PrimExpr]:
        """Returns the indices in the new layout. Raises ``ValueError`` for a wrong number of indices."""
        if len(indices) != len(self.initial_indices):
            raise ValueError(f"IndexMap: the map takes {len(self.initial_indices)} indices, got {len(indices)}")
        pairs = list(zip(self.initial_indices, indices, strict=True))
        return [_core.tir_substitute(index, pairs) for index in self.final_indices]

    def map_shape(self, shape: Sequence[int]) -> list[PrimExpr]:
        """Returns the sizes in the new layout: the largest index of each dim plus 1. The sizes must be numbers."""
        from pliant import arith

        analyzer = arith.Analyzer()
        for var, size in zip(self.initial_indices, shape, strict=True):
            analyzer.bind(var, _core.Range(0, int(size)))
        return [_core.tir_const(int(analyzer.const_int_bound(index).max_value) + 1, "int64") for index in self.final_indices]

    def __call__(self, *indices: PrimExpr) -> list[PrimExpr]:
        return self.map_indices(indices)

    def as_python(self) -> str:
        """Returns the map as a Python function, in which ``tir`` is the module of that name. Variables that are no indices become
        keyword-only parameters.
        """
        initial = [str(index) for index in self.initial_indices]
        variables = [str(var) for index in self.final_indices for var in _core.tir_free_vars(index)]
        other = [f"{name}=tir.Var({name!r}, 'int64')" for name in dict.fromkeys(variables) if name not in initial]
        parameters = ", ".join([*initial, *(["*", *other] if other else [])])
        outputs = [str(index) for index in self.final_indices]
        return f"lambda {parameters}: ({', '.join(outputs)}{',' if len(outputs) == 1 else ''})"

    def __repr__(self) -> str:
        initial = ", ".join(map(str, self.initial_indices))
        return f"IndexMap(lambda {initial}: ({', '.join(map(str, self.final_indices))}))"
