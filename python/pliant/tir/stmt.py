"""Statements of loop functions, which form :attr:`pliant.tir.PrimFunc.body`.

Statements are immutable. A pass builds new ones and inserts them into a function with
``func.with_body(body)``.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any

from pliant import _core
from pliant._core import IterVar, PrimExpr, ProducerLoad, Range, Tensor


class ForKind(IntEnum):
    """The execution mode of a loop."""

    SERIAL = 0
    PARALLEL = 1
    VECTORIZED = 2
    UNROLLED = 3


class Buffer:
    """A buffer: memory with a shape and a data type. Two buffers are equal only if they are the
    same memory. ``buf[i, j]`` is an element."""

    __slots__ = ("tensor",)

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor

    @property
    def name(self) -> str:
        """The name of the buffer."""
        return self.tensor.name

    @property
    def shape(self) -> Any:
        """The sizes of the buffer's dims."""
        return self.tensor.shape

    @property
    def dtype(self) -> str:
        """The data type of the buffer's elements."""
        return self.tensor.dtype

    def scope(self) -> str:
        """The memory scope of the buffer. Always ``"global"``, because there is one kind of
        memory.
        """
        return "global"

    def __getitem__(self, indices: Any) -> PrimExpr:
        return self.tensor[indices]

    def vload(self, begin: Any, dtype: str | None = None) -> PrimExpr:
        """Returns the element at these indices, given as a sequence or as one index. Raises
        ``TypeError`` if ``dtype`` is given and is not the data type of the buffer.
        """
        self._check_dtype("vload", dtype)
        return ProducerLoad(self, begin)

    def vstore(self, begin: Any, value: Any) -> BufferStore:
        """Creates a statement that writes one element, or the elements at a ramp of indices."""
        return BufferStore(self, value, begin if isinstance(begin, list | tuple) else [begin])

    def _check_dtype(self, what: str, dtype: str | None) -> None:
        if dtype is not None and str(dtype) != self.dtype:
            raise TypeError(
                f"{what}: buffer '{self.name}' has elements of type {self.dtype}, not {dtype}"
                " (help: a ramp among the indices reads a vector, tir.Cast converts)"
            )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Buffer) and self.tensor == other.tensor

    def __hash__(self) -> int:
        return hash(self.tensor)

    def same_as(self, other: object) -> bool:
        """Whether both objects represent the same memory."""
        return self == other

    def __repr__(self) -> str:
        return f"Buffer({self.name}, {list(self.shape)}, {self.dtype!r})"


def decl_buffer(shape: Sequence[Any], dtype: str = "float32", name: str = "buffer", *, scope: str = "") -> Buffer:
    """Creates a buffer. There is one kind of memory, so ``scope`` must be ``""`` or ``"global"``.

    Raises ``ValueError`` for another ``scope``, ``ShapeError`` for an invalid size, and
    ``DTypeError`` for an unknown data type.
    """
    if scope not in ("", "global"):
        raise ValueError(f"decl_buffer: scope must be '' or 'global', got {scope!r}")
    return Buffer(_core.te_placeholder(list(shape), dtype, name))


class Unstated(list[Any]):
    """The placeholder for the regions of a block that does not state what it reads or writes."""

    unstated = True


class BufferRegion:
    """A part of a buffer: a range for each dim."""

    __slots__ = ("buffer", "region")

    def __init__(self, buffer: Buffer, region: Sequence[Range]) -> None:
        self.buffer = buffer
        self.region = list(region)


class Stmt:
    """A statement. ``_fields`` contains the names of its fields in the order of the constructor."""

    __slots__ = ()
    _fields: tuple[str, ...] = ()

    def same_as(self, other: object) -> bool:
        """Whether both are the same statement object."""
        return self is other

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{f}={getattr(self, f)!r}' for f in self._fields)})"


class SeqStmt(Stmt):
    """A sequence of statements."""

    __slots__ = _fields = ("seq",)

    def __init__(self, seq: Sequence[Stmt]) -> None:
        self.seq = list(seq)

    def __len__(self) -> int:
        return len(self.seq)

    def __getitem__(self, index: int) -> Stmt:
        return self.seq[index]


class For(Stmt):
    """A loop over ``min .. min + extent``. ``thread_binding`` is ignored.

    Raises ``ValueError`` for an unknown kind.
    """

    __slots__ = _fields = ("loop_var", "min", "extent", "kind", "body", "thread_binding", "annotations")

    def __init__(
        self,
        loop_var: PrimExpr,
        min: Any,
        extent: Any,
        kind: ForKind | int,
        body: Stmt,
        thread_binding: None = None,
        annotations: dict[str, Any] | None = None,
    ) -> None:
        self.loop_var = loop_var
        self.min = min
        self.extent = extent
        self.kind = ForKind(kind)
        self.body = body
        self.thread_binding = thread_binding
        self.annotations = dict(annotations or {})


class While(Stmt):
    """Repeats the body while the condition holds."""

    __slots__ = _fields = ("condition", "body")

    def __init__(self, condition: Any, body: Stmt) -> None:
        self.condition = condition
        self.body = body


class IfThenElse(Stmt):
    """Executes ``then_case`` if the condition holds, otherwise ``else_case`` unless it is
    ``None``."""

    __slots__ = _fields = ("condition", "then_case", "else_case")

    def __init__(self, condition: Any, then_case: Stmt, else_case: Stmt | None = None) -> None:
        self.condition = condition
        self.then_case = then_case
        self.else_case = else_case


class LetStmt(Stmt):
    """Binds a variable to a value in the body."""

    __slots__ = _fields = ("var", "value", "body")

    def __init__(self, var: PrimExpr, value: Any, body: Stmt) -> None:
        self.var = var
        self.value = value
        self.body = body


class BufferStore(Stmt):
    """Stores a value to an element of a buffer, or a vector to the elements at a ramp of indices."""

    __slots__ = _fields = ("buffer", "value", "indices")

    def __init__(self, buffer: Buffer, value: Any, indices: Sequence[Any]) -> None:
        self.buffer = buffer
        self.value = value
        self.indices = list(indices)


class Allocate(Stmt):
    """Allocates a buffer that lives during the body."""

    __slots__ = _fields = ("buffer", "body")

    def __init__(self, buffer: Buffer, body: Stmt) -> None:
        self.buffer = buffer
        self.body = body


class Evaluate(Stmt):
    """Evaluates an expression for its side effects."""

    __slots__ = _fields = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


class AssertStmt(Stmt):
    """Executes the body if the condition holds. Otherwise the run fails with the message."""

    __slots__ = _fields = ("condition", "message", "body")

    def __init__(self, condition: Any, message: str, body: Stmt) -> None:
        self.condition = condition
        self.message = message
        self.body = body


class Block(Stmt):
    """A block, the unit of scheduling. Its body refers only to its own axes and not to the
    enclosing loops.

    ``reads`` and ``writes`` are the accessed regions, or ``None`` if they are not stated. ``init``
    initializes the result of a reduction. ``match_buffers`` must be empty when the block becomes
    part of a function.
    """

    __slots__ = _fields = (
        "iter_vars",
        "reads",
        "writes",
        "name_hint",
        "body",
        "init",
        "alloc_buffers",
        "match_buffers",
        "annotations",
    )

    def __init__(
        self,
        iter_vars: Sequence[IterVar],
        reads: Sequence[BufferRegion] | None,
        writes: Sequence[BufferRegion] | None,
        name_hint: str,
        body: Stmt,
        init: Stmt | None = None,
        alloc_buffers: Sequence[Buffer] = (),
        match_buffers: Sequence[Any] = (),
        annotations: dict[str, Any] | None = None,
    ) -> None:
        self.iter_vars = list(iter_vars)
        self.reads = Unstated() if reads is None else reads if isinstance(reads, Unstated) else list(reads)
        self.writes = Unstated() if writes is None else writes if isinstance(writes, Unstated) else list(writes)
        self.name_hint = name_hint
        self.body = body
        self.init = init
        self.alloc_buffers = list(alloc_buffers)
        self.match_buffers = list(match_buffers)
        self.annotations = dict(annotations or {})


class BlockRealize(Stmt):
    """Executes a block with values for its axes, if the predicate holds."""

    __slots__ = _fields = ("iter_values", "predicate", "block")

    def __init__(self, iter_values: Sequence[Any], predicate: Any, block: Block) -> None:
        self.iter_values = list(iter_values)
        self.predicate = predicate
        self.block = block


def range_of(start: PrimExpr, extent: PrimExpr) -> Range:
    """Creates the range of ``extent`` integers that starts at ``start``."""
    return Range.from_min_extent(start, extent)


__all__ = [
    "Allocate",
    "AssertStmt",
    "Block",
    "BlockRealize",
    "Buffer",
    "BufferRegion",
    "BufferStore",
    "Evaluate",
    "For",
    "ForKind",
    "IfThenElse",
    "IterVar",
    "LetStmt",
    "SeqStmt",
    "Stmt",
    "While",
    "decl_buffer",
]
