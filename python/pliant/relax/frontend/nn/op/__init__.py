"""The operators on ``nn.Tensor``. Each emits a binding into the method that is being exported; ``name`` is the name of its
variable.

Operators raise ``CompileError`` for operands of invalid types, and ``RuntimeError`` outside of an export."""

from __future__ import annotations

from pliant.relax.frontend.nn.core import wrap_nested
from pliant.relax.frontend.nn.op import _calls, _collective, _elementwise, _layers, _sampling, _shapes
from pliant.relax.frontend.nn.op._calls import *  # noqa: F403
from pliant.relax.frontend.nn.op._collective import *  # noqa: F403
from pliant.relax.frontend.nn.op._elementwise import *  # noqa: F403
from pliant.relax.frontend.nn.op._layers import *  # noqa: F403
from pliant.relax.frontend.nn.op._sampling import *  # noqa: F403
from pliant.relax.frontend.nn.op._shapes import *  # noqa: F403

__all__ = ["wrap_nested"]
for _module in (_calls, _collective, _elementwise, _layers, _sampling, _shapes):
    __all__ += _module.__all__  # noqa: PLE0604
__all__.sort()
