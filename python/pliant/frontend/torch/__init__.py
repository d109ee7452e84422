"""Imports PyTorch models as modules and keeps all symbolic dims.

>>> from pliant.frontend.torch import from_exported_program
>>> program = torch.export.export(model, (x,), dynamic_shapes={"x": {0: torch.export.Dim("batch")}})
>>> module = from_exported_program(program)

``pliant.compile(program)`` and ``pliant.compile(model, (x,))`` do this and compile the module.
"""

from __future__ import annotations

from pliant.frontend._detached_params import detach_params
from pliant.frontend.torch.compiling import any_size
from pliant.frontend.torch.exported_program import from_exported_program
from pliant.frontend.torch.fx_graph import from_fx

__all__ = ["any_size", "detach_params", "from_exported_program", "from_fx"]
