"""The names of ``pliant.frontend.torch``, under TVM's module name."""

from __future__ import annotations

from pliant.frontend.torch import detach_params, from_exported_program, from_fx

__all__ = ["detach_params", "from_exported_program", "from_fx"]
