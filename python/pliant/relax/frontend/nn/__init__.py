"""Defines models as Python classes, as in PyTorch, and exports them as ``IRModule``.

>>> from pliant.relax.frontend import nn
>>> class MLP(nn.Module):
...     def __init__(self):
...         self.up = nn.Linear(64, 256)
...         self.down = nn.Linear(256, 64)
...     def forward(self, x: nn.Tensor):
...         return self.down(nn.relu(self.up(x)))
>>> mod, params = MLP().export_tvm({"forward": {"x": nn.spec.Tensor(["n", 64], "float32")}})
"""

from __future__ import annotations

from pliant.relax.frontend.nn.core import (
    Effect,
    Module,
    ModuleDict,
    ModuleList,
    Object,
    Parameter,
    ParameterDict,
    ParameterList,
    StateDictError,
    Tensor,
    get_default_dtype,
    set_default_dtype,
)
from pliant.relax.frontend.nn import op, spec  # isort: skip
from pliant.relax.frontend.nn.exporter import Exporter, add_extern
from pliant.relax.frontend.nn.extern import ExternModule, ObjectModule, SourceModule
from pliant.relax.frontend.nn.modules import (
    GELU,
    Attention,
    Conv1D,
    Conv2D,
    Conv3D,
    ConvTranspose1D,
    Dropout,
    Embedding,
    GroupNorm,
    Identity,
    IOEffect,
    KVCache,
    LayerNorm,
    Linear,
    MultiLinear,
    ReLU,
    RMSNorm,
    SiLU,
    TimestepEmbedding,
    Timesteps,
)
from pliant.relax.frontend.nn.op import *  # noqa: F403
from pliant.relax.frontend.nn.subroutine import SubroutineMixin
from pliant.relax.frontend.nn.visitor import Mutator

__all__ = [
    "Attention",
    "Conv1D",
    "Conv2D",
    "Conv3D",
    "ConvTranspose1D",
    "Dropout",
    "Effect",
    "Embedding",
    "Exporter",
    "ExternModule",
    "GELU",
    "GroupNorm",
    "IOEffect",
    "Identity",
    "KVCache",
    "LayerNorm",
    "Linear",
    "Module",
    "ModuleDict",
    "ModuleList",
    "MultiLinear",
    "Mutator",
    "Object",
    "ObjectModule",
    "Parameter",
    "ParameterDict",
    "ParameterList",
    "RMSNorm",
    "ReLU",
    "SiLU",
    "SourceModule",
    "StateDictError",
    "SubroutineMixin",
    "Tensor",
    "TimestepEmbedding",
    "Timesteps",
    "add_extern",
    "get_default_dtype",
    "op",
    "set_default_dtype",
    "spec",
    *op.__all__,
]
