"""The block builder: builds the functions of a module binding by binding."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from pliant import _core
from pliant._core import Tensor

if TYPE_CHECKING:
    from pliant._core import IRModule, PrimFunc
    from pliant._core.relax import Expr, Function, GlobalVar, StructInfo, Var

_relax = _core.relax
_local = threading.local()


def _stack() -> list[BlockBuilder]:
    stack: list[BlockBuilder] | None = getattr(_local, "stack", None)
    if stack is None:
        stack = _local.stack = []
    return stack


class FunctionScope:
    """``with bb.function(name, params):`` begins a function and ends it."""

    def __init__(self, builder: BlockBuilder, *args: Any) -> None:
        self._builder = builder
        self._args = args

    def __enter__(self) -> FunctionScope:
        self._builder._begin_function(*self._args)
        _stack().append(self._builder)
        return self

    def __exit__(self, exc_type: Any, *exc: object) -> None:
        _stack().pop()
        self._builder._end_function(exc_type is not None)


class DataflowScope:
    """``with bb.dataflow():`` begins a dataflow block and ends it."""

    def __init__(self, builder: BlockBuilder) -> None:
        self._builder = builder

    def __enter__(self) -> DataflowScope:
        self._builder._begin_dataflow()
        return self

    def __exit__(self, *exc: object) -> None:
        self._builder._end_dataflow()


class BlockBuilder(_relax.BlockRewriter):
    """Builds the functions of a module binding by binding, in A-normal form, with type inference
    for each binding.

    >>> bb = BlockBuilder()
    >>> n = tir.Var("n", "int64")
    >>> x = relax.Var("x", relax.TensorStructInfo((n, 4), "float32"))
    >>> with bb.function("main", [x]):
    ...     with bb.dataflow():
    ...         lv = bb.emit(relax.op.add(x, x))
    ...         gv = bb.emit_output(lv)
    ...     bb.emit_func_output(gv)
    >>> mod = bb.get()
    """

    @staticmethod
    def current() -> BlockBuilder | None:
        """The builder with the innermost open function in this thread."""
        stack = _stack()
        return stack[-1] if stack else None

    def function(
        self,
        name: str,
        params: Var | Sequence[Var] | None = None,
        attrs: dict[str, Any] | None = None,
        private: bool = False,
        pure: bool | None = None,
    ) -> FunctionScope:
        """Begins a function. Without ``params``, free variables become parameters when they appear,
        or the parameters are given to ``emit_func_output``. By default, the function is pure if its
        calls have no side effects."""
        return FunctionScope(self, name, params, attrs, pure, private)

    def dataflow(self) -> DataflowScope:
        """Begins a dataflow block."""
        return DataflowScope(self)

    def call_te(
        self, func: Callable[..., Any], *args: Any, te_attrs: dict[str, Any] | None = None, **kwargs: Any
    ) -> Expr:
        """A call of the loop function that ``func(*args)`` defines. Tensors in ``args`` (also
        inside lists, tuples and dicts) are replaced by ``te`` placeholders."""
        hint = kwargs.pop("primfunc_name_hint", None) or getattr(func, "__name__", "te_func")
        kwargs.pop("primfunc_attrs", None)
        if not str(hint).isidentifier():
            hint = "te_func"
        counter = [0]

        def convert(value: Any) -> Any:
            if isinstance(value, _relax.Expr):
                return self._te_argument(value, counter)
            if isinstance(value, list):
                return [convert(v) for v in value]
            if isinstance(value, tuple):
                return tuple(convert(v) for v in value)
            if isinstance(value, dict):
                return {k: convert(v) for k, v in value.items()}
            return value

        outputs = func(*convert(args), **convert(kwargs))
        if isinstance(outputs, Tensor):
            outputs = [outputs]
        if not isinstance(outputs, list | tuple) or not all(isinstance(t, Tensor) for t in outputs):
            raise TypeError(f"{hint} must return a te.Tensor or a list of them, not {type(outputs).__name__}")
        return self._call_tensors(list(outputs), hint)

    def _te_argument(self, value: Expr, counter: list[int]) -> Any:
        if isinstance(value, _relax.ShapeExpr):
            return list(value.values)
        if isinstance(value, _relax.PrimValue):
            return value.value
        if isinstance(value, _relax.StringImm | _relax.DataTypeImm):
            return value.value
        info = value.struct_info_
        if isinstance(info, _relax.TupleStructInfo):
            return tuple(self._te_argument(value[i], counter) for i in range(len(info.fields)))
        if isinstance(info, _relax.ShapeStructInfo) and info.values is not None:
            return list(info.values)
        if isinstance(info, _relax.PrimStructInfo) and info.value is not None:
            return info.value
        tensor = self.te_tensor(value, counter[0])
        counter[0] += 1
        return tensor

    def emit_te(self, func: Callable[..., Any], *args: Any, **kwargs: Any) -> Var:
        """Emits a call of the loop function that ``func(*args)`` defines (see :meth:`call_te`)."""
        name_hint = kwargs.pop("name_hint", "")
        return self.emit(self.call_te(func, *args, **kwargs), name_hint)


def te_tensor(expr: Expr, name: str = "rxplaceholder") -> Tensor:
    """The ``te`` placeholder for an expression of known shape in the current function."""
    builder = BlockBuilder.current()
    if builder is None:
        raise ValueError("te_tensor requires an open function: call it inside 'with bb.function(...)'")
    return builder.te_tensor(expr)


__all__ = ["BlockBuilder", "DataflowScope", "FunctionScope", "te_tensor"]
