"""Estimation of the memory that the functions of a module allocate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pliant import _core

if TYPE_CHECKING:
    from pliant._core import IRModule
    from pliant._core.relax import Function

_relax = _core.relax
_BITS = {"bool": 8}


def _item_bytes(dtype: str) -> int:
    bits = _BITS.get(dtype)
    if bits is None:
        bits = int("".join(c for c in dtype if c.isdigit()) or 8)
    return (bits + 7) // 8


def _size_of(shape: Any, dtype: str) -> int | None:
    """Returns the size of a tensor in bytes, or ``None`` if a dim is not constant."""
    total = _item_bytes(dtype)
    for dim in shape.values:
        if not isinstance(dim, _core.IntImm):
            return None
        total *= int(dim)
    return total


class _Total:
    """The number and the total size of allocations."""

    def __init__(self) -> None:
        self.count = 0
        self.bytes = 0
        self.dynamic = 0

    def add(self, size: int | None) -> None:
        if size is None:
            self.dynamic += 1
        else:
            self.count += 1
            self.bytes += size

    def __str__(self) -> str:
        text = f"{self.count} constant-size memory allocation(s) with total size {self.bytes / 2**30:.4} GB"
        return text + (f", {self.dynamic} with sizes known only at run time" if self.dynamic else "")


def _estimate(func: Function) -> tuple[_Total, _Total]:
    """Returns the total of the tensors that a function allocates, and the total of the storage objects that these tensors
    share."""
    tensors, storages = _Total(), _Total()
    for binding in _relax.all_bindings(func):
        call = binding.value
        if not isinstance(call, _relax.Call) or not isinstance(call.op, _relax.OpFunction):
            continue
        shapes = [a for a in call.args if isinstance(a, _relax.ShapeExpr)]
        dtypes = [a.value for a in call.args if isinstance(a, _relax.DataTypeImm)]
        if not shapes or not dtypes:
            continue
        if call.op.name in ("relax.builtin.alloc_tensor", "relax.memory.alloc_tensor"):
            tensors.add(_size_of(shapes[0], dtypes[0]))
        if call.op.name == "relax.memory.alloc_storage":
            storages.add(_size_of(shapes[0], "uint8"))
    return tensors, storages


def estimate_memory_usage(mod: IRModule | Function) -> str:
    """Returns a report on the memory that the functions of a module allocate: the total size of the
    tensors, and after memory planning (``StaticPlanBlockMemory``) also of the shared storage."""
    pairs = [(f"{mod.__name__}", mod)] if isinstance(mod, _relax.Function) else mod.functions_items()
    lines = ["Memory usage estimation:"]
    for var, func in pairs:
        if not isinstance(func, _relax.Function):
            continue
        tensors, storages = _estimate(func)
        name = var if isinstance(var, str) else var.name_hint
        lines.append(f"- Function {name}:")
        lines.append(f" * Without memory planning, there are {tensors}.")
        lines.append(f" * With memory planning, there are {storages}.")
        if tensors.bytes:
            lines.append(f" * Memory planning reduces constant memory size to {storages.bytes / tensors.bytes:.1%}.")
    return "\n".join(lines)


__all__ = ["estimate_memory_usage"]
