"""The class :class:`Schedule`."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from typing import Any

from pliant import _core
from pliant._core import BlockRV, IRModule, LoopRV, PrimExpr, PrimFunc
from pliant.error import ScheduleError
from pliant.tir.index_map import IndexMap
from pliant.tir.schedule.tensor_intrin import TensorIntrin
from pliant.tir.schedule.trace import ExprRV, Instruction, Trace
from pliant.tir.stmt import Buffer

__all__ = ["Schedule"]

BufferLike = str | tuple[str, int] | Buffer
IndexMapLike = IndexMap | Callable[..., Any]


def _selected(buffer: BufferLike) -> str | tuple[str, int]:
    """Returns what selects a buffer of a block in ``ScheduleState``."""
    return buffer.name if isinstance(buffer, Buffer) else buffer


def _index_map(index_map: IndexMapLike, ndim: int) -> IndexMap:
    """Returns a map of ``ndim`` indices."""
    return index_map if isinstance(index_map, IndexMap) else IndexMap.from_func(index_map, ndim)


class Schedule:
    """Transforms the loops of a module step by step. Each primitive preserves the results of the function, or raises
    ``ScheduleError`` and changes nothing.

    Loops and blocks are those that :meth:`get_block`, :meth:`get_loops` and the primitives return. A primitive that replaces a loop
    makes the old one invalid. Sizes of loops may be symbolic.

    >>> sch = Schedule(func)
    >>> i, j = sch.get_loops(sch.get_block("C"))
    >>> outer, inner = sch.split(j, factors=[None, 16])
    >>> sch.vectorize(inner)
    >>> model = pliant.compile(sch.mod)

    ``mod`` is a module, or a loop function, which becomes the function ``main`` of a module. ``seed`` is the seed of the sampling
    primitives. ``debug_mask``, ``error_render_level`` and ``enable_check`` are accepted for compatibility with TVM; ignored.
    """

    def __init__(
        self,
        mod: IRModule | PrimFunc,
        *,
        seed: int | None = None,
        debug_mask: str | int = "none",
        error_render_level: str = "detail",
        enable_check: bool = True,
    ) -> None:
        module = mod if isinstance(mod, IRModule) else IRModule({"main": mod})
        self._state = _core.ScheduleState(module)
        self._trace = Trace()
        self._function = "main"
        self._random = random.Random(seed)

    # ---- state ----

    @property
    def mod(self) -> IRModule:
        """The module in its current state."""
        return self._state.module

    @property
    def trace(self) -> Trace:
        """The primitives that were applied."""
        return self._trace

    def copy(self) -> Schedule:
        """Returns a copy of the schedule. Loops and blocks of the schedule are valid in the copy, too."""
        new = Schedule.__new__(Schedule)
        new._function = self._function
        new._state, new._trace = self._state.copy(), Trace(list(self._trace.insts))
        new._random = random.Random()
        new._random.setstate(self._random.getstate())
        return new

    def seed(self, seed: int) -> None:
        """Sets the seed of the sampling primitives."""
        self._random.seed(seed)

    def work_on(self, func_name: str) -> None:
        """Selects the function in which :meth:`get_block` looks for blocks. Default: ``main``."""
        self._function = func_name

    def show(self) -> None:
        """Prints the module and the trace."""
        self.mod.show()
        self._trace.show()

    def __repr__(self) -> str:
        return f"Schedule({len(self._trace.insts)} steps)"

    def _record(self, name: str, arguments: dict[str, Any], *results: Any, decision: Any = None, many: bool = False) -> None:
        self._trace.insts.append(Instruction(name, arguments, results, decision, many))

    # ---- loops and blocks ----

    def get_block(self, name: str, func_name: str | None = None) -> BlockRV:
        """Returns the block with a name. If no block has the name ``root``, it means the whole body of the function, to which only
        :meth:`get_child_blocks` and :meth:`get_loops` apply.

        Raises ``ScheduleError`` if there is no such block, or several.
        """
        func_name = self._function if func_name is None else func_name
        block = self._state.get_block(name, func_name)
        self._record("get_block", {"name": name, "func_name": func_name}, block)
        return block

    get_sblock = get_block

    def get_loops(self, block: BlockRV) -> list[LoopRV]:
        """Returns the loops around a block, outermost first, but not those around an outer block that contains it."""
        loops = self._state.get_loops(block)
        self._record("get_loops", {"block": block}, *loops, many=True)
        return loops

    def get_child_blocks(self, block_or_loop: BlockRV | LoopRV) -> list[BlockRV]:
        """Returns the blocks directly inside a loop or block, in the order of the text. Blocks inside of these are not included."""
        blocks = self._state.get_child_blocks(block_or_loop)
        self._record("get_child_blocks", {"block_or_loop": block_or_loop}, *blocks, many=True)
        return blocks

    def get_producers(self, block: BlockRV) -> list[BlockRV]:
        """Returns the blocks that write buffers which a block uses, and that precede it in the same outer block or function."""
        blocks = self._state.get_producers(block)
        self._record("get_producers", {"block": block}, *blocks, many=True)
        return blocks

    def get_consumers(self, block: BlockRV) -> list[BlockRV]:
        """Returns the blocks that use buffers which a block writes, and that follow it in the same outer block or function."""
        blocks = self._state.get_consumers(block)
        self._record("get_consumers", {"block": block}, *blocks, many=True)
        return blocks

    # ---- loops ----

    def split(
        self,
        loop: LoopRV,
        factors: Sequence[int | None],
        preserve_unit_iters: bool = True,
        disable_predication: bool = False,
        *,
        tail: bool = False,
    ) -> list[LoopRV]:
        """Splits a loop into a nest with these extents, outermost first. One factor may be ``None``, which is inferred.

        If the factors do not divide the extent, the blocks in the loop get a predicate; with ``tail=True``, a loop behind the nest
        runs the last iterations instead, in copies of the blocks with the suffix ``_tail``. ``preserve_unit_iters`` and
        ``disable_predication`` are accepted for compatibility with TVM; ignored.
        """
        loops = self._state.split(loop, list(factors), tail)
        options = {"tail": True} if tail else {}
        self._record("split", {"loop": loop, "factors": list(factors), **options}, *loops, many=True)
        return loops

    def fuse(self, *loops: LoopRV, preserve_unit_iters: bool = True) -> LoopRV:
        """Replaces loops, of which each contains only the next one, by one loop."""
        fused = self._state.fuse(list(loops))
        self._record("fuse", {"*": list(loops)}, fused)
        return fused

    def reorder(self, *ordered_loops: LoopRV) -> None:
        """Puts loops of one nest into this order. Other loops of the nest keep their positions."""
        self._state.reorder(list(ordered_loops))
        self._record("reorder", {"*": list(ordered_loops)})

    def parallel(self, loop: LoopRV) -> None:
        """Distributes the iterations of a loop to the worker threads."""
        self._state.parallel(loop)
        self._record("parallel", {"loop": loop})

    def vectorize(self, loop: LoopRV) -> None:
        """Makes the iterations of a loop the lanes of a vector. Its extent must be constant."""
        self._state.vectorize(loop)
        self._record("vectorize", {"loop": loop})

    def unroll(self, loop: LoopRV) -> None:
        """Unrolls a loop. Its extent must be constant."""
        self._state.unroll(loop)
        self._record("unroll", {"loop": loop})

    def bind(self, loop: LoopRV, thread_axis: str) -> None:
        """Raises ``ScheduleError``: CPUs have no thread axes."""
        self._state.bind(loop, thread_axis)

    def annotate(self, block_or_loop: BlockRV | LoopRV, ann_key: str, ann_val: Any) -> None:
        """Adds an annotation to a loop or block, or replaces its value."""
        self._state.annotate(block_or_loop, ann_key, ann_val)
        self._record("annotate", {"block_or_loop": block_or_loop, "ann_key": ann_key, "ann_val": ann_val})

    def unannotate(self, block_or_loop: BlockRV | LoopRV, ann_key: str) -> None:
        """Removes an annotation from a loop or block."""
        self._state.unannotate(block_or_loop, ann_key)
        self._record("unannotate", {"block_or_loop": block_or_loop, "ann_key": ann_key})

    # ---- blocks ----

    def compute_inline(self, block: BlockRV) -> None:
        """Computes an elementwise block inside the blocks that read its result."""
        self._state.compute_inline(block)
        self._record("compute_inline", {"block": block})

    def reverse_compute_inline(self, block: BlockRV) -> None:
        """Computes an elementwise block at the end of the elementwise block that writes its operand."""
        self._state.reverse_compute_inline(block)
        self._record("reverse_compute_inline", {"block": block})

    def compute_at(self, block: BlockRV, loop: LoopRV, preserve_unit_loops: bool = False, index: int = -1) -> None:
        """Moves a block into a loop, in front of the blocks that read its result, where it computes what they need."""
        self._state.compute_at(block, loop)
        self._record("compute_at", {"block": block, "loop": loop})

    def reverse_compute_at(self, block: BlockRV, loop: LoopRV, preserve_unit_loops: bool = False, index: int = -1) -> None:
        """Moves a block into a loop, behind the block that writes its operand."""
        self._state.reverse_compute_at(block, loop)
        self._record("reverse_compute_at", {"block": block, "loop": loop})

    def cache_read(self, block: BlockRV, read_buffer_index: int, storage_scope: str) -> BlockRV:
        """Copies a buffer that a block reads to memory of a scope, ``"local"`` or ``"global"``, from which the block reads it.

        Returns the block that copies.
        """
        copy = self._state.cache_read(block, read_buffer_index, storage_scope)
        arguments = {"block": block, "read_buffer_index": read_buffer_index, "storage_scope": storage_scope}
        self._record("cache_read", arguments, copy)
        return copy

    def cache_write(self, block: BlockRV, write_buffer_index: int, storage_scope: str) -> BlockRV:
        """Lets a block write to memory of a scope, ``"local"`` or ``"global"``, which another block copies to the old buffer.

        Returns the block that copies.
        """
        copy = self._state.cache_write(block, write_buffer_index, storage_scope)
        arguments = {"block": block, "write_buffer_index": write_buffer_index, "storage_scope": storage_scope}
        self._record("cache_write", arguments, copy)
        return copy

    def set_scope(self, block: BlockRV, buffer_index: int, storage_scope: str) -> None:
        """Sets the memory scope of a buffer that a block writes."""
        self._state.set_scope(block, buffer_index, storage_scope)
        arguments = {"block": block, "buffer_index": buffer_index, "storage_scope": storage_scope}
        self._record("set_scope", arguments)

    def decompose_reduction(self, block: BlockRV, loop: LoopRV) -> BlockRV:
        """Moves the init of a reduction into a block of its own, in front of a loop. Returns the new block."""
        init = self._state.decompose_reduction(block, loop)
        self._record("decompose_reduction", {"block": block, "loop": loop}, init)
        return init

    def rfactor(self, loop: LoopRV, factor_axis: int) -> BlockRV:
        """Splits a reduction into partial results over a loop, which another block combines. The partial results have the loop as
        an additional dim at the position ``factor_axis``.

        Returns the block that computes them.
        """
        partial = self._state.rfactor(loop, factor_axis)
        self._record("rfactor", {"loop": loop, "factor_axis": factor_axis}, partial)
        return partial

    # ---- layouts and tiles ----

    def transform_layout(
        self,
        block: BlockRV,
        buffer: BufferLike,
        index_map: IndexMapLike,
        pad_value: float | PrimExpr | None = None,
        *,
        assume_injective_transform: bool = False,
    ) -> None:
        """Stores a temporary buffer that a block reads or writes in another layout. ``index_map`` computes the new indices from the
        old ones, such as ``lambda i, j: (i, j // 16, j % 16)``. Variables that are no indices are sizes of the function with the same
        names.

        ``buffer`` is a name, a ``Buffer``, ``("read", index)`` or ``("write", index)``. If the new layout has padding, ``pad_value``
        is required, and fills it. ``assume_injective_transform`` is accepted for compatibility with TVM; ignored.

        Raises ``ScheduleError`` if the map is not one-to-one, or if the buffer is a parameter, whose layout the callers determine.
        """
        if callable(pad_value):
            raise ScheduleError("transform_layout: pad_value must be a number; functions of indices are not supported")
        number: Any = getattr(pad_value, "value", pad_value)
        selected = _selected(buffer)
        ndim = self._state.buffer_rank(block, selected)
        used = _index_map(index_map, ndim)
        self._state.transform_layout(block, selected, used.initial_indices, used.final_indices, number)
        arguments = {"block": block, "buffer": selected, "index_map": used, "pad_value": number}
        self._record("transform_layout", arguments)

    def set_axis_separator(self, block: BlockRV, buffer: BufferLike, axis_separators: Sequence[int]) -> None:
        """Checks the positions of separators between groups of dims of a buffer. They have no effect, because there is no memory in
        which the groups matter. ``buffer`` is as for :meth:`transform_layout`.

        Raises ``ScheduleError`` if the positions are not ascending positions between dims.
        """
        selected, separators = _selected(buffer), list(axis_separators)
        self._state.set_axis_separator(block, selected, separators)
        arguments = {"block": block, "buffer": selected, "axis_separators": separators}
        self._record("set_axis_separator", arguments)

    def transform_block_layout(self, block: BlockRV, index_map: IndexMapLike) -> None:
        """Replaces the axes of a block by those that ``index_map`` computes from them, and the loops around the block by one loop for
        each new axis.

        Raises ``ScheduleError`` if the map is not bijective, if it combines spatial and reduction axes, or if the axes are not bound
        to one loop each.
        """
        used = _index_map(index_map, self._state.num_axes(block))
        self._state.transform_block_layout(block, used.initial_indices, used.final_indices)
        self._record("transform_block_layout", {"block": block, "index_map": used})

    def reindex(self, block: BlockRV, buffer: BufferLike) -> BlockRV:
        """Lets a block access a copy of a buffer that has one dim for each axis with which the block indexes the buffer. For an
        operand of a convolution, this is im2col. ``buffer`` is as for :meth:`transform_layout`.

        Returns the block that copies.
        """
        selected = _selected(buffer)
        copy = self._state.reindex(block, selected)
        self._record("reindex", {"block": block, "buffer": selected}, copy)
        return copy

    def pad_einsum(self, block: BlockRV, padding: Sequence[int]) -> None:
        """Rounds the extent of each axis of a block up to a multiple of its entry in ``padding``, so that its loops can be split
        without predicates.

        New blocks copy the operands to larger buffers, padded with zeros, and the result from a larger buffer. Raises
        ``ScheduleError`` if an index is neither an axis nor a constant, or if the zeros would change the result.
        """
        self._state.pad_einsum(block, list(padding))
        self._record("pad_einsum", {"block": block, "padding": list(padding)})

    def blockize(self, target: LoopRV, preserve_unit_iters: bool = True) -> BlockRV:
        """Makes a loop with the block in it an outer block, whose axes count tiles. Returns the outer block. Without
        ``preserve_unit_iters``, its axes with only one value are removed.

        Raises ``ScheduleError`` if the loop contains several blocks, or if the axes of its block cannot be divided into tiles.
        """
        if not isinstance(target, LoopRV):
            raise ScheduleError("blockize: the target must be a loop; lists of blocks are not supported")
        outer = self._state.blockize(target, preserve_unit_iters)
        options = {} if preserve_unit_iters else {"preserve_unit_iters": False}
        self._record("blockize", {"target": target, **options}, outer)
        return outer

    def tensorize(self, block_or_loop: BlockRV | LoopRV, tensor_intrin: str, preserve_unit_iters: bool = True) -> None:
        """Replaces the computation of a block by the implementation of a registered :class:`TensorIntrin`. A loop first becomes a
        block (:meth:`blockize`).

        Raises ``ScheduleError`` if the block does not compute the same as the description of the intrinsic, and ``ValueError`` if
        there is no such intrinsic.
        """
        intrin = TensorIntrin.get(tensor_intrin)
        assert intrin is not None
        self._state.tensorize(block_or_loop, tensor_intrin, (intrin.desc, intrin.impl), preserve_unit_iters)
        options = {} if preserve_unit_iters else {"preserve_unit_iters": False}
        self._record("tensorize", {"block_or_loop": block_or_loop, "tensor_intrin": tensor_intrin, **options})

    # ---- sampling ----

    def sample_categorical(
        self, candidates: Sequence[int], probs: Sequence[float], decision: int | None = None
    ) -> ExprRV:
        """Returns one of the candidates, chosen at random with these probabilities. With ``decision``, returns the candidate with
        this index instead.
        """
        if len(candidates) != len(probs) or not candidates:
            raise ScheduleError(
                f"sample_categorical: expected candidates with one probability each, got {len(candidates)} candidates and"
                f" {len(probs)} probabilities"
            )
        if not all(math.isfinite(p) and p >= 0 for p in probs) or sum(probs) <= 0:
            raise ScheduleError(
                f"sample_categorical: probs must be finite and not negative, with a positive sum, got {list(probs)}"
            )
        if decision is None:
            decision = self._random.choices(range(len(candidates)), weights=list(probs))[0]
        if not isinstance(decision, int) or not 0 <= decision < len(candidates):
            raise ScheduleError(
                f"sample_categorical: decision must be the index of one of {len(candidates)} candidates, got {decision}"
            )
        chosen = ExprRV(candidates[decision])
        arguments = {"candidates": list(candidates), "probs": list(probs)}
        self._record("sample_categorical", arguments, chosen, decision=decision)
        return chosen

    def sample_perfect_tile(
        self, loop: LoopRV, n: int, max_innermost_factor: int = 16, decision: Sequence[int] | None = None
    ) -> list[ExprRV]:
        """Returns ``n`` random factors whose product is the constant extent of a loop. The last factor of several is at most
        ``max_innermost_factor``.

        With ``decision``, returns these factors instead.
        """
        name, extent = self._state.loop_extent(loop)
        if extent is None:
            raise ScheduleError(f"sample_perfect_tile: the extent of the loop '{name}' must be constant, but is symbolic")
        if n < 1 or max_innermost_factor < 1:
            least = min(n, max_innermost_factor)
            raise ScheduleError(f"sample_perfect_tile: n and max_innermost_factor must be positive, but one is {least}")
        chosen = self._random_factors(extent, n, max_innermost_factor) if decision is None else list(decision)
        is_positive = all(isinstance(factor, int) and factor > 0 for factor in chosen)
        if len(chosen) != n or not is_positive or math.prod(chosen) != extent:
            raise ScheduleError(
                f"sample_perfect_tile: expected {n} positive factors whose product is the loop extent {extent}, got {chosen}"
            )
        factors = [ExprRV(factor) for factor in chosen]
        arguments = {"loop": loop, "n": n, "max_innermost_factor": max_innermost_factor}
        self._record("sample_perfect_tile", arguments, *factors, decision=chosen, many=True)
        return factors

    def _random_factors(self, extent: int, n: int, max_innermost_factor: int) -> list[int]:
        """Returns ``n`` random factors whose product is ``extent``. The last factor of several is at most
        ``max_innermost_factor``.
        """
        factors, rest = [1] * n, max(extent, 0)
        for position in range(n - 1, 0, -1):
            limit = max_innermost_factor if position == n - 1 else rest
            small = [d for d in range(1, min(math.isqrt(rest), limit) + 1) if rest % d == 0]
            large = [rest // d for d in reversed(small) if d * d != rest and rest // d <= limit]
            factors[position] = self._random.choice([*small, *large] or [1])
            rest //= factors[position]
        factors[0] = rest
        return factors
