"""The table of operators: a converter for each overload of torch that Pliant imports directly.

A converter is a function of a ``FunctionImporter`` and of the operator's arguments: positional ones in the order of the schema with
all defaults, and keyword-only ones by name. It returns the result, whose data type and shape need not be those of torch:
``FunctionImporter.conform`` converts and checks them. It raises ``UnsupportedError`` for arguments that it does not support.

Operators of torch that the table lacks are decomposed (:mod:`pliant.frontend.torch.decompositions`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pliant.frontend.torch import complex_numbers
from pliant.frontend.torch.ops import (
    attention,
    backward,
    binary,
    control_flow,
    convolution,
    creation,
    factorizations,
    indexing,
    linear_algebra,
    lookup,
    normalization,
    pooling,
    random,
    recurrent,
    reductions,
    resize,
    scans,
    shape_manipulation,
    sorting,
    special,
    spectral,
    unary,
    value_checks,
)

Converter = Callable[..., Any]

FAMILIES = (
    unary,
    binary,
    reductions,
    scans,
    shape_manipulation,
    linear_algebra,
    convolution,
    pooling,
    resize,
    normalization,
    attention,
    recurrent,
    indexing,
    lookup,
    value_checks,
    creation,
    factorizations,
    random,
    sorting,
    special,
    spectral,
    backward,
    control_flow,
)
"""The modules of the families of operators. Each has a dict ``TABLE`` from names to converters: ``"add.Tensor"``, or ``"relu"`` for
``"relu.default"``."""


def target_name(target: Any) -> str:
    """The key of an operator in the table: ``aten.add.Tensor``, or ``higher_order.cond.default`` for a higher-order operator."""
    text = str(target)
    return text if "." in text else f"higher_order.{text}.default"


def full_name(name: str) -> str:
    """The name of an overload as torch prints it: ``aten.relu.default`` for ``relu``."""
    parts = name.split(".")
    if len(parts) == 1 or parts[0] == "higher_order":
        parts.append("default")
    return ".".join(parts if len(parts) == 3 else ["aten", *parts])


OPERATORS: dict[str, Converter] = {full_name(name): rule for family in FAMILIES for name, rule in family.TABLE.items()}
"""All converters, by the full name of the overload."""


COMPLEX_OPERATORS = frozenset(full_name(name) for name in complex_numbers.TABLE)
"""The operators on complex tensors, by the full name of the overload."""


def converter_of(target: Any) -> Converter | None:
    """The converter of an operator on real tensors, or ``None`` if there is none."""
    return OPERATORS.get(target_name(target))


def is_supported(target: Any) -> bool:
    """Whether there is a converter of an operator, on real or complex tensors."""
    return target_name(target) in OPERATORS or target_name(target) in COMPLEX_OPERATORS
