"""Imports the nodes of one graph into a graph function that is under construction.

``FunctionImporter`` is the first argument of every converter (:mod:`pliant.frontend.torch.ops`). It emits bindings, converts
operands, and gives a converted node the shape and data type that torch has inferred for it.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.fx

from pliant import relax, tir
from pliant._core import PrimExpr
from pliant._core import relax as _relax
from pliant.arith import Analyzer
from pliant.error import CompileError, UnsupportedError
from pliant.frontend.torch.complex_numbers import Complex, as_complex, from_pairs, part_type
from pliant.frontend.torch.data_types import dtype_name, is_float, result_type, torch_dtype
from pliant.frontend.torch.symbolic_sizes import SymbolicSizes

if TYPE_CHECKING:
    from pliant.frontend.torch.unsupported import Problems
    from pliant.relax import BlockBuilder

Value = Any
"""The value of a node: an expression, a number, a size, ``None``, or a list or tuple of values."""


class Emitter:
    """The operators of ``relax.op`` as functions that emit the call and return its variable: ``ops.nn.relu(x)``."""

    def __init__(self, emit: Callable[[Any], Any], group: Any) -> None:
        self._emit = emit
        self._group = group

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._group, name)
        emit = self._emit
        if callable(found):

            def call(*args: Any, **kwargs: Any) -> Any:
                return emit(found(*args, **kwargs))

            setattr(self, name, call)
            return call
        nested = Emitter(emit, found)
        setattr(self, name, nested)
        return nested


class FunctionImporter:
    """Imports the nodes of one graph into the open function of a builder.

    ``node`` is the node whose converter runs. ``values`` maps converted nodes to their values. With ``run_unsupported_in_torch``,
    nodes without a converter become calls of torch, and ``islands`` lists them.
    """

    def __init__(self, builder: BlockBuilder, sizes: SymbolicSizes, problems: Problems) -> None:
        self.builder = builder
        self.sizes = sizes
        self.problems = problems
        self.ops: Any = Emitter(self.emit, relax.op)
        self.values: dict[torch.fx.Node, Value] = {}
        self.module: torch.fx.GraphModule | None = None
        self.node: torch.fx.Node | None = None
        self.analyzer = Analyzer()
        self.run_unsupported_in_torch = False
        self.islands: list[torch.fx.Node] = []
        self.complex_parameters: list[tuple[torch.fx.Node, Any]] = []

    def tensor_parameter(self, node: torch.fx.Node) -> Any:
        """Creates the parameter for a placeholder of a tensor, and records it as the value of the placeholder."""
        meta = node.meta["val"]
        for d in meta.shape:
            self.sizes.define(d)
        shape = [self.sizes.convert(d) for d in meta.shape]
        if meta.is_complex():
            variable = relax.Var(node.name, relax.TensorStructInfo([*shape, 2], dtype_name(part_type(meta.dtype))))
            self.complex_parameters.append((node, variable))
        else:
            self.values[node] = variable = relax.Var(node.name, relax.TensorStructInfo(shape, dtype_name(meta.dtype)))
        return variable

    def begin(self) -> None:
        """Emits what the values of placeholders need, at the start of the function."""
        for node, variable in self.complex_parameters:
            self.values[node] = from_pairs(self, variable)

    # Emission

    def emit(self, expr: Any) -> Any:
        """Emits an expression and returns its variable."""
        return self.builder.emit(expr)

    def te(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Emits a call of the loop function that a tensor expression defines. Several results are returned as a list."""
        result = self.builder.emit_te(function, *args, **kwargs)
        if isinstance(result.struct_info, _relax.TupleStructInfo):
            return self.fields(result)
        return result

    def fields(self, value: Any) -> list[Any]:
        """The fields of an expression whose type is a tuple."""
        count = len(value.struct_info.fields)
        return [self.emit(_relax.TupleGetItem(value, i)) for i in range(count)]

    def fresh_function_name(self, prefix: str) -> str:
        """A name that no function of the module has."""
        taken = {v.name_hint for v in self.builder.get().get_global_vars()}
        names = itertools.chain([prefix], (f"{prefix}_{k}" for k in itertools.count(1)))
        return next(name for name in names if name not in taken)

    def check(self, condition: Any, message: str) -> None:
        """Emits a check of a condition over sizes, unless it provably holds."""
        if isinstance(condition, bool):
            condition = tir.const(condition, "bool")
        if not self.analyzer.can_prove(condition):
            self.emit(relax.op.assert_op(_relax.PrimValue(condition), format=message.replace("{", "{{").replace("}", "}}")))

    # Facts about values

    def shape(self, x: Any) -> list[Any]:
        """The dims of a tensor, constant ones as ints."""
        return [int(d) if isinstance(d, tir.IntImm) else d for d in x.struct_info.shape.values]

    def dtype(self, x: Any) -> str:
        """The data type of a tensor."""
        return str(x.struct_info.dtype)

    def rank(self, x: Any) -> int:
        """The number of dims of a tensor."""
        return int(x.struct_info.ndim)

    def axis(self, x: Any, dim: int) -> int:
        """A dim of a tensor, which may be negative, as an axis that is not negative. A scalar has the dims 0 and -1."""
        rank = max(self.rank(x), 1)
        return dim + rank if dim < 0 else dim

    @property
    def out(self) -> Any:
        """torch's description of the result: a fake tensor, or a list of them."""
        assert self.node is not None
        return self.node.meta["val"]

    @property
    def out_dtype(self) -> str:
        """The data type of the result, or of its parts if it is complex."""
        return dtype_name(part_type(self.out.dtype))

    @property
    def out_shape(self) -> list[Any]:
        """The dims of the result."""
        return [self.sizes.convert(d) for d in self.out.shape]

    # Operands

    def is_tensor(self, value: Any) -> bool:
        """Whether a value is an expression (and not a number, size or ``None``)."""
        return isinstance(value, _relax.Expr)

    def tensor(self, value: Any, dtype: str) -> Any:
        """Converts a tensor, number or size to a tensor of a data type. Numbers and sizes become scalars."""
        if isinstance(value, _relax.Expr):
            return self.cast(value, dtype)
        if isinstance(value, PrimExpr):
            scalar = self.ops.full(relax.ShapeExpr([]), _relax.PrimValue(value), str(value.dtype))
            return self.cast(scalar, dtype)
        if isinstance(value, complex | Complex):
            raise UnsupportedError("there is no conversion of this operator for complex tensors")
        return relax.const(torch.tensor(value).to(torch_dtype(dtype)))

    def cast(self, x: Any, dtype: str) -> Any:
        """Converts a tensor to a data type; returns it unchanged if it has that type."""
        if self.dtype(x) == dtype:
            return x
        if dtype == "bool":
            return self.ops.not_equal(x, self.tensor(0, self.dtype(x)))
        return self.ops.astype(x, dtype)

    def promoted_type(self, *operands: Any) -> str:
        """The type to which torch promotes operands, which are tensors, numbers and sizes."""
        kinds: list[Any] = []
        for x in operands:
            if isinstance(x, _relax.Expr):
                kinds.append((self.dtype(x), self.rank(x) > 0))
            elif isinstance(x, PrimExpr):
                kinds.append(float if is_float(str(x.dtype)) else int)
            elif x is not None:
                kinds.append(type(x))
        return result_type(tuple(kinds))

    def promote(self, *operands: Any) -> list[Any]:
        """Converts operands to tensors of their common type."""
        dtype = self.promoted_type(*operands)
        return [self.tensor(x, dtype) for x in operands]

    def as_float(self, x: Any) -> Any:
        """Converts a tensor of integers or bools to torch's default float type; returns other tensors unchanged."""
        return x if is_float(self.dtype(x)) else self.cast(x, dtype_name(torch.get_default_dtype()))

    def scalar_value(self, value: Any) -> Any:
        """Converts the SymInt or number of an attribute to an int or ``PrimExpr``."""
        return self.sizes.convert(value) if hasattr(value, "node") else value

    # Conversion of nodes

    def argument(self, value: Any) -> Value:
        """The value of an argument of a node."""
        if isinstance(value, torch.fx.Node):
            return self.values[value]
        if isinstance(value, list | tuple):
            return [self.argument(v) for v in value]
        if isinstance(value, dict):
            return {k: self.argument(v) for k, v in value.items()}
        return value

    def conform(self, value: Value, meta: Any) -> Value:
        """Gives a value the data type and shape that torch has inferred.

        A shape that does not provably agree is checked at run time by a ``match_cast``, which also defines unbacked symbols.
        """
        if isinstance(meta, list | tuple):
            values = value if isinstance(value, list | tuple) else self.fields(value)
            return [self.conform(v, m) for v, m in zip(values, meta, strict=True)]
        if value is None or isinstance(meta, bool | int | float | str):
            return value
        if isinstance(meta, torch.Tensor) and meta.is_complex():
            parts = as_complex(self, value, dtype_name(part_type(meta.dtype)))
            return Complex(self._conform_tensor(parts.real, meta), self._conform_tensor(parts.imag, meta))
        if isinstance(meta, torch.Tensor):
            return self._conform_tensor(self.tensor(value, dtype_name(meta.dtype)), meta)
        return value

    def _conform_tensor(self, x: Any, meta: torch.Tensor) -> Any:
        info = x.struct_info
        undefined = {s for d in meta.shape for s in self.sizes.undefined(d)}
        shape = [self.sizes.convert(d) for d in meta.shape]
        known = info.shape is not None and hasattr(info.shape, "values")
        if known and not undefined and self.same_shape(self.shape(x), shape):
            return x
        for d in meta.shape:
            self.sizes.define(d)
        return self.builder.match_cast(x, relax.TensorStructInfo(shape, info.dtype))

    def same_shape(self, left: Sequence[Any], right: Sequence[Any]) -> bool:
        """Whether two shapes are provably equal."""
        return len(left) == len(right) and all(map(self.same_size, left, right))

    def same_size(self, left: Any, right: Any) -> bool:
        """Whether two sizes are provably equal."""
        if isinstance(left, int) and isinstance(right, int):
            return left == right
        if isinstance(left, PrimExpr) and isinstance(right, PrimExpr) and left.same_as(right):
            return True
        return bool(self.analyzer.can_prove_equal(left, right))

    def constant(self, tensor: torch.Tensor) -> Any:
        """A tensor of the program as a constant. Raises ``CompileError`` for a tensor without elements in memory."""
        if tensor.is_meta:
            raise CompileError(f"a parameter or buffer of shape {tuple(tensor.shape)} is on the device meta: load its values first")
        if tensor.is_complex():
            return Complex(self.constant(tensor.real), self.constant(tensor.imag))
        dtype_name(tensor.dtype)
        return relax.const(tensor.detach().cpu().contiguous())

    def numpy_constant(self, array: Any, dtype: str) -> Any:
        """An array as a constant of a data type."""
        return relax.const(np.asarray(array).astype(dtype))


def bind_arguments(cx: FunctionImporter, node: torch.fx.Node) -> tuple[list[Value], dict[str, Value]]:
    """The arguments of a node by the operator's schema: positional ones in order with their defaults, and keyword-only ones."""
    positional: list[Value] = []
    keywords: dict[str, Value] = {}
    for i, parameter in enumerate(node.target._schema.arguments):  # type: ignore[union-attr]
        if i < len(node.args) and not parameter.kwarg_only:
            given: Any = node.args[i]
        elif parameter.name in node.kwargs:
            given = node.kwargs[parameter.name]
        else:
            given = parameter.default_value if parameter.has_default_value() else None
        value = cx.argument(given)
        if parameter.kwarg_only:
            keywords[parameter.name] = value
        else:
            positional.append(value)
    return positional, keywords


GETITEM = operator.getitem
