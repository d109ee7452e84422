"""The block builder: builds the functions of a module binding by binding."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pliant import _core
from pliant._core import Tensor

if TYPE_CHECKING:
    from pliant._core import IRModule, PrimFunc
    from pliant._core import Var as TirVar
    from pliant._core.relax import Expr, Function, GlobalVar, StructInfo, Var

_relax = _core.relax
_local = threading.local()


def _stack() -> list[BlockBuilder]:
    stack: list[BlockBuilder] | None = getattr(_local, "stack", None)
    if stack is None:
        stack = _local.stack = []
    return stack


class FunctionScope:
    """The context manager of ``with bb.function(name, params):``, which begins a function and ends
    it."""

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
    """The context manager of ``with bb.dataflow():``, which begins a dataflow block and ends it."""

    def __init__(self, builder: BlockBuilder) -> None:
        self._builder = builder

    def __enter__(self) -> DataflowScope:
        self._builder._begin_dataflow()
        return self

    def __exit__(self, *exc: object) -> None:
        self._builder._end_dataflow()


class BlockBuilder(_relax.BlockRewriter):
    """Builds the functions of a module binding by binding, in A-normal form. The type of each
    binding is inferred.

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

    # Whether the open function is a scratch function.
    _in_scratch = False
    # What `tvm_precision` was set to.
    _tvm_precision: bool | None = None

    @staticmethod
    def current() -> BlockBuilder | None:
        """Returns the builder with the innermost open function in this thread, or ``None``."""
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
        """Returns a context manager that begins a function and ends it. Without ``params``, either
        ``emit_func_output`` gets the parameters, or free variables become parameters in the order
        of their first use. By default, the function is pure if its calls have no side effects.

        Leaving the block raises ``ValueError`` if ``emit_func_output`` was not called.
        """
        return FunctionScope(self, name, params, attrs, pure, private)

    def _begin_function(self, *args: Any) -> None:
        if self._in_scratch:
            self._in_scratch = False
            self._end_function(True)
        super()._begin_function(*args)

    def _begin_binding_block(self) -> None:
        self._begin_block(super()._begin_binding_block)

    def _begin_dataflow_block(self) -> None:
        self._begin_block(super()._begin_dataflow_block)

    def _begin_block(self, begin: Callable[[], None]) -> None:
        """Begins a block. Outside of functions, the block belongs to a scratch function, which is discarded when the next
        function begins."""
        try:
            begin()
        except ValueError:
            if self._in_scratch:
                raise
            super()._begin_function("scratch", None)
            self._in_scratch = True
            begin()

    @property
    def tvm_precision(self) -> bool:
        """Whether :meth:`normalize` derives types of calls outside of functions as imprecisely as TVM: unknown dims if the
        equality of two dims is not proved, if they are in a shape variable, or if a size is not constant. True if ``import tvm``
        is Pliant. Calls in functions always have the types that Pliant derives."""
        if self._tvm_precision is None:
            from pliant.tvm._finder import is_installed

            return is_installed()
        return self._tvm_precision

    @tvm_precision.setter
    def tvm_precision(self, value: bool) -> None:
        self._tvm_precision = bool(value)

    def normalize(self, expr: Any) -> Expr:
        """Converts an expression to A-normal form and infers its type. Bindings that this requires are added at the
        builder's current position. Outside of functions, :attr:`tvm_precision` applies.

        Raises the errors of the operators' type rules.
        """
        return self._normalize(expr, self.tvm_precision)

    def match_shape(self, value: Expr, pattern: Sequence[Any], name_hint: str = "") -> Var:
        """Binds the result of a run-time check that a tensor or shape has the sizes ``pattern``, and returns the new variable.
        TVM had this method in 2022; newer code uses ``match_cast``."""
        info = value.struct_info
        if isinstance(info, _relax.ShapeStructInfo):
            return self.match_cast(value, _relax.ShapeStructInfo(pattern), name_hint)
        return self.match_cast(value, _relax.TensorStructInfo(pattern, info.dtype or None), name_hint)

    def begin_scope(self, params: Any = None) -> None:
        """Does nothing. TVM opens a scope of size variables by this method; here, every function has one."""

    def end_scope(self) -> None:
        """Does nothing. See :meth:`begin_scope`."""

    @contextmanager
    def testing_scope(self, def_vars: Sequence[TirVar]) -> Iterator[None]:
        """Opens a scratch function, in which expressions over the size variables ``def_vars`` can be normalized. It is
        discarded at the end."""
        sizes = _relax.Var("sizes", _relax.ShapeStructInfo(list(def_vars)))
        with self.function("scratch", [sizes]):
            yield
            self.emit_func_output(_relax.Tuple([]))

    def dataflow(self) -> DataflowScope:
        """Returns a context manager that begins a dataflow block and ends it."""
        return DataflowScope(self)

    def call_te(
        self, func: Callable[..., Any], *args: Any, te_attrs: dict[str, Any] | None = None, **kwargs: Any
    ) -> Expr:
        """Creates a call of the loop function that ``func(*args, **kwargs)`` defines. Tensors in
        the arguments, also inside lists, tuples and dicts, are replaced by ``te`` placeholders.
        ``primfunc_name_hint`` is the name of the loop function. ``te_attrs`` and ``primfunc_attrs``
        are ignored.

        Raises ``TypeError`` if ``func`` does not return a tensor or a list of tensors.
        """
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
        """Emits a call of the loop function that ``func(*args, **kwargs)`` defines (see
        :meth:`call_te`), and returns its variable. ``name_hint`` is the name of the variable."""
        name_hint = kwargs.pop("name_hint", "")
        return self.emit(self.call_te(func, *args, **kwargs), name_hint)


def te_tensor(expr: Expr, name: str = "rxplaceholder") -> Tensor:
    """Creates the ``te`` placeholder of an expression of known shape in the current function.
    ``name`` is ignored.

    Raises ``ValueError`` if no function is open.
    """
    builder = BlockBuilder.current()
    if builder is None:
        raise ValueError("te_tensor requires an open function: call it inside 'with bb.function(...)'")
    return builder.te_tensor(expr)


__all__ = ["BlockBuilder", "DataflowScope", "FunctionScope", "te_tensor"]
