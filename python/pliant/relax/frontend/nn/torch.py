"""Compiled modules that take and return tensors of PyTorch."""

from __future__ import annotations

from typing import Any

import torch  # type: ignore[import-not-found,unused-ignore]

from pliant import _core
from pliant._core import NDArray
from pliant.relax.frontend.nn._compiled_module import CompiledModule


class TorchModule(CompiledModule):
    """A compiled module whose methods take and return tensors of PyTorch: ``compiled["forward"](x)``. Tensors are shared and not
    copied."""

    def _to_ndarray(self, name: str, value: Any) -> NDArray:
        if not isinstance(value, torch.Tensor):
            raise TypeError(f"the argument '{name}' must be a torch.Tensor, got {type(value).__name__}")
        return _core.from_dlpack(value.detach().contiguous())

    def _from_ndarray(self, value: NDArray) -> Any:
        return torch.from_dlpack(value)


__all__ = ["TorchModule"]
