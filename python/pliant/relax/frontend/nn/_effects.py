"""Effects: printing, and caches of the keys and values of attention."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pliant import _core
from pliant.relax import op as _op
from pliant.relax.frontend.nn.core import Effect, Tensor, current_builder, get_default_dtype

if TYPE_CHECKING:
    from pliant._core import PrimExpr
    from pliant._core.relax import Var
    from pliant.relax.block_builder import BlockBuilder

_relax = _core.relax


class _StateOfOneVariable(Effect):
    """An effect whose state is one object."""

    _state: Any = None

    def create(self, name_hint: str) -> list[Var]:
        """Creates the parameter of a method that holds the state."""
        return [_relax.Var(self._variable_name(name_hint), _relax.ObjectStructInfo())]

    def set_state(self, state_vars: list[Var]) -> None:
        """Sets the variable that holds the state."""
        (self._state,) = state_vars

    def finalize(self) -> list[Var]:
        """Returns the variable that holds the state at the end of a method, and forgets it."""
        state, self._state = self._state, None
        return [state]

    def _variable_name(self, name_hint: str) -> str:
        return name_hint


class IOEffect(_StateOfOneVariable):
    """Input and output, such as printing. The state orders the calls; it has no value."""

    def emit_init(self, name_hint: str, builder: BlockBuilder) -> list[Var]:
        """Emits the initial state, which is no value."""
        return [builder.emit(_op.null_value(), self._variable_name(name_hint))]

    def _variable_name(self, name_hint: str) -> str:
        return f"{name_hint}.io" if name_hint else "_io"

    @property
    def effect(self) -> Var | None:
        """The variable that holds the state, or ``None`` outside of a method."""
        return self._state

    @effect.setter
    def effect(self, state: Var | None) -> None:
        self._state = state

    def call(self, function: str, *args: Any) -> None:
        """Emits a call ``function(state, *args)`` of a packed function, whose result is the new state."""
        operands = [_relax.StringImm(arg) if isinstance(arg, str) else arg for arg in args]
        call = _op.call_pure_packed(function, self._state, *operands, sinfo_args=[_relax.ObjectStructInfo()])
        self._state = current_builder().emit(call, self._state.name_hint)

    def print_(self, tensor: Tensor) -> None:
        """Prints a tensor when the method runs."""
        self.call("effect.print", tensor._expr)


class KVCache(_StateOfOneVariable):
    """A cache of the keys or values of attention, one row per token, that grows as tokens are appended.

    ``unit_shape`` is the shape of a row, such as ``[heads, head_size]``. ``init_seq_len`` is the number of rows for which memory is
    allocated at first. Appended rows are written in place: the capacity doubles when it is exceeded, so that a row is copied
    about once.
    """

    def __init__(self, init_seq_len: int, unit_shape: Sequence[int], dtype: str | None = None) -> None:
        self.init_seq_len = int(init_seq_len)
        self.unit_shape = [int(size) for size in unit_shape]
        self.dtype = dtype or get_default_dtype()

    @property
    def cache(self) -> Var | None:
        """The variable that holds the cache, or ``None`` outside of a method."""
        return self._state

    @cache.setter
    def cache(self, state: Var | None) -> None:
        self._state = state

    def emit_init(self, name_hint: str, builder: BlockBuilder) -> list[Var]:
        """Emits the creation of an empty cache."""
        shape = _relax.ShapeExpr([self.init_seq_len, *self.unit_shape])
        rows = builder.emit(_op.zeros(shape, self.dtype))
        call = _op.call_pure_packed(
            "vm.builtin.attention_kv_cache_create",
            rows,
            shape,
            _relax.PrimValue(0),
            sinfo_args=[_relax.ObjectStructInfo()],
        )
        return [builder.emit(call, name_hint)]

    def to(self, dtype: str | None = None) -> None:
        """Changes the data type of the rows."""
        if dtype is not None:
            self.dtype = dtype

    def view(self, seq_len: PrimExpr | int) -> Tensor:
        """The first ``seq_len`` rows, of shape ``(seq_len, *unit_shape)``. They share memory with the cache. The run fails if
        the cache has fewer rows."""
        shape = _relax.ShapeExpr([seq_len, *self.unit_shape])
        info = _relax.TensorStructInfo(shape, self.dtype)
        call = _op.call_pure_packed("vm.builtin.attention_kv_cache_view", self._state, shape, sinfo_args=[info])
        return Tensor(_expr=current_builder().emit(call))

    def append(self, new_element: Tensor) -> None:
        """Appends rows: a tensor of shape ``(n, *unit_shape)`` or ``unit_shape``.

        Raises ``TypeError`` if its data type is not that of the cache.
        """
        if new_element.dtype != self.dtype:
            raise TypeError(f"the KV cache has the data type {self.dtype}, but the appended tensor has {new_element.dtype}")
        call = _relax.Call(
            _relax.get_op("call_inplace_packed"),
            [_relax.ExternFunc("vm.builtin.attention_kv_cache_append"), self._state, new_element._expr],
            {"inplace_indices": [0]},
            [_relax.ObjectStructInfo()],
        )
        self._state = current_builder().emit(call)


__all__ = ["IOEffect", "KVCache"]
