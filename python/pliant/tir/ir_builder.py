"""A builder that appends statements one by one. ``tir.ir_builder.create()`` creates it, and
``ib.get()`` returns the resulting statement.

>>> ib = tir.ir_builder.create()
>>> out = ib.buffer_ptr(outs[0])
>>> with ib.for_range(0, n, name="i") as i:
...     out[i] = x[i] + 1
>>> ib.get()
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pliant import _core
from pliant._core import PrimExpr, Tensor, Var
from pliant.tir.stmt import (
    Allocate,
    AssertStmt,
    Buffer,
    BufferStore,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    LetStmt,
    SeqStmt,
    Stmt,
    While,
    decl_buffer,
)

# A statement, or a function that wraps the statements after it.
_Item = Stmt | Callable[[Stmt], Stmt]


class BufferVar:
    """A buffer whose elements are accessed by subscripts, with one index for each dim or with one
    flat index. ``buf[i] = value`` appends a statement to the builder.

    Another number of indices raises ``IndexError``.
    """

    def __init__(self, builder: IRBuilder, buffer: Buffer) -> None:
        self._builder = builder
        self.buffer = buffer

    @property
    def dtype(self) -> str:
        """The data type of the buffer's elements."""
        return self.buffer.dtype

    @property
    def tensor(self) -> Tensor:
        """The placeholder tensor of the buffer, for use in expressions."""
        return self.buffer.tensor

    def asobject(self) -> Buffer:
        """Returns the ``tir.Buffer`` whose elements this object accesses."""
        return self.buffer

    def _indices(self, index: Any) -> list[Any]:
        indices = list(index) if isinstance(index, list | tuple) else [index]
        shape = list(self.buffer.shape)
        if len(indices) == len(shape):
            return indices
        if len(indices) != 1:
            raise IndexError(f"buffer '{self.buffer.name}' has {len(shape)} dims, but is accessed with {len(indices)} indices")
        (rest,) = indices
        own: list[Any] = []
        for dim in reversed(shape[1:]):
            own.append(_core.tir_binary("floormod", rest, dim))
            rest = _core.tir_binary("floordiv", rest, dim)
        return [*own, rest][::-1] if shape else []

    def __getitem__(self, index: Any) -> PrimExpr:
        return self.buffer[tuple(self._indices(index))]

    def __setitem__(self, index: Any, value: Any) -> None:
        self._builder.emit(BufferStore(self.buffer, value, self._indices(index)))


class IRBuilder:
    """Appends statements one by one. ``with`` scopes nest them."""

    def __init__(self) -> None:
        self._open: list[list[_Item]] = [[]]

    def emit(self, stmt: Stmt | PrimExpr | Callable[[Stmt], Stmt]) -> None:
        """Appends a statement, or a call that is evaluated for its side effects. A function is
        called with the statements that follow in its scope, combined into one, and returns a
        statement that contains them."""
        self._open[-1].append(Evaluate(stmt) if isinstance(stmt, PrimExpr) else stmt)

    def _close(self) -> Stmt:
        done: list[Stmt] = []
        for item in reversed(self._open.pop()):
            if isinstance(item, Stmt):
                done.append(item)
            else:
                done = [item(_sequence(done))]
        return _sequence(done)

    def get(self) -> Stmt:
        """Returns all statements, combined into one, and clears the builder.

        Raises ``ValueError`` if a scope is still open.
        """
        if len(self._open) != 1:
            raise ValueError("a scope of the IRBuilder is still open: call get() after its 'with' block")
        stmt = self._close()
        self._open = [[]]
        return stmt

    @contextmanager
    def for_range(
        self, begin: Any, end: Any, name: str = "i", dtype: str | None = None, kind: str = "serial"
    ) -> Iterator[Var]:
        """A scope that is a loop over ``begin .. end``. Yields the loop variable, which is int64 by
        default. ``kind`` is ``"serial"``, ``"parallel"``, ``"vectorized"`` or ``"unrolled"``.

        Raises ``ValueError`` for another kind.
        """
        names = {k.name.lower(): k for k in ForKind} | {"vectorize": ForKind.VECTORIZED, "unroll": ForKind.UNROLLED}
        if kind not in names:
            raise ValueError(f"IRBuilder.for_range: kind must be one of {', '.join(names)}, got '{kind}'")
        var = _core.Var(name, dtype or "int64")
        self._open.append([])
        yield var
        extent = end if isinstance(begin, int) and begin == 0 else _core.tir_binary("sub", end, begin)
        self.emit(For(var, begin, extent, names[kind], self._close()))

    @contextmanager
    def while_loop(self, condition: Any) -> Iterator[None]:
        """A context manager: the statements in its block are repeated while the condition holds."""
        self._open.append([])
        yield
        self.emit(While(condition, self._close()))

    @contextmanager
    def if_scope(self, cond: Any) -> Iterator[None]:
        """A context manager: the statements in its block are executed if the condition holds."""
        self._open.append([])
        yield
        self.emit(IfThenElse(cond, self._close()))

    @contextmanager
    def else_scope(self) -> Iterator[None]:
        """A scope that executes if the condition of the preceding ``if_scope`` does not hold.

        Raises ``ValueError`` if there is no such ``if_scope``.
        """
        last = self._open[-1][-1] if self._open[-1] else None
        if not isinstance(last, IfThenElse) or last.else_case is not None:
            raise ValueError("IRBuilder.else_scope must follow an if_scope without an else_scope")
        self._open.append([])
        yield
        other = self._close()
        self._open[-1][-1] = IfThenElse(last.condition, last.then_case, other)

    def let(self, var_name: str, value: Any) -> Var:
        """Appends a statement that computes a value once, at this point. Returns a variable for the value."""
        value = _core.tir_const(value)
        var = _core.Var(var_name, value.dtype)
        self.emit(lambda body: LetStmt(var, value, body))
        return var

    def assert_(self, condition: Any, message: str) -> None:
        """Appends an assertion. A run in which the condition does not hold fails with the
        message."""
        self.emit(lambda body: AssertStmt(condition, message, body))

    def allocate(self, dtype: str, shape: Any, name: str = "buf", axis_separators: Any = None, scope: str = "") -> BufferVar:
        """Allocates a scratch buffer with undefined contents for the statements that follow.
        ``axis_separators`` and ``scope`` are ignored."""
        buffer = decl_buffer(shape if isinstance(shape, list | tuple) else [shape], dtype, name)
        self.emit(lambda body: Allocate(buffer, body))
        return BufferVar(self, buffer)

    def buffer_ptr(self, buf: Buffer | Tensor, shape: Sequence[Any] | None = None) -> BufferVar:
        """Returns a buffer whose elements are accessed by subscripts. ``shape`` is ignored."""
        return BufferVar(self, buf if isinstance(buf, Buffer) else Buffer(buf))

    def likely(self, expr: Any) -> PrimExpr:
        """Marks a condition that is nearly always true."""
        return _core.tir_call("likely", expr)


def _sequence(reverse: list[Stmt]) -> Stmt:
    return reverse[0] if len(reverse) == 1 else SeqStmt(reverse[::-1])


def create() -> IRBuilder:
    """Creates an empty statement builder."""
    return IRBuilder()


__all__ = ["BufferVar", "IRBuilder", "create"]
