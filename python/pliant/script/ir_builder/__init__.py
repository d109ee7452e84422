"""Builders of modules and graph functions by nested ``with`` statements, with the names of ``tvm.script.ir_builder``.

>>> with IRBuilder() as builder:
...     with R.function():
...         R.func_name("main")
...         x = R.arg("x", relax.TensorStructInfo((4,), "float32"))
...         y = R.emit(R.add(x, x))
...         R.func_ret_value(y)
>>> func = builder.get()
"""

from __future__ import annotations

from pliant.script.ir_builder import ir, relax
from pliant.script.ir_builder.base import IRBuilder, IRBuilderFrame

__all__ = ["IRBuilder", "IRBuilderFrame", "ir", "relax"]
