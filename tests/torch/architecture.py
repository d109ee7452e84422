"""How the test models of ``architectures.py`` are described."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch


class FirstResult(torch.nn.Module):
    """A model of transformers that takes its inputs by position and returns its first tensor."""

    def __init__(self, model: torch.nn.Module, names: tuple[str, ...], **options: Any) -> None:
        super().__init__()
        self.model, self.names, self.options = model, names, options

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        result = self.model(**dict(zip(self.names, inputs, strict=True)), **self.options)
        return result.to_tuple()[0] if hasattr(result, "to_tuple") else result


@dataclass(frozen=True)
class Architecture:
    """How to build a model, its inputs for some sizes, and its dynamic dims."""

    build: Callable[[], torch.nn.Module]
    inputs: Callable[[tuple[int, ...]], tuple[torch.Tensor, ...]]
    shapes: Any
    sizes: tuple[tuple[int, ...], ...]
