"""The modules of TVM that have another name in Pliant. TVM itself has renamed some of them several times."""

from __future__ import annotations

RENAMED: dict[str, str] = {
    "tvm.tirx": "pliant.tir",
    "tvm.s_tir": "pliant.tir",
    "tvm.script.parser.ir": "pliant.script.ir",
    "tvm.script.parser.relax": "pliant.script.relax",
    "tvm.script.parser.tir": "pliant.script.tir",
    "tvm.script.parser.tirx": "pliant.script.tir",
    "tvm.script.relax.parser": "pliant.script.relax",
    "tvm.script.tirx": "pliant.script.tir",
    "tvm.tir.function": "pliant.tir",
    "tvm.tir.expr": "pliant.tir",
    "tvm.tir.buffer": "pliant.tir",
    "tvm.ir.expr": "pliant.ir",
    "tvm.ir.function": "pliant.ir",
    "tvm.ir.op": "pliant.ir",
    "tvm.ir.type": "pliant.ir",
    "tvm.ir.container": "pliant.ir",
    "tvm.ir.attrs": "pliant.ir.attrs",
    "tvm.runtime.ndarray": "pliant.nd",
    "tvm.runtime._tensor": "pliant.nd",
    "tvm.runtime.container": "pliant.runtime",
    "tvm.runtime.vm": "pliant.relax.vm",
    "tvm.te.operation": "pliant.te",
    "tvm.te.tensor": "pliant.te",
    "tvm._ffi": "pliant.tvm._ffi",
    "tvm._ffi.base": "pliant.error",
    "tvm._ffi.registry": "pliant.registry",
    "tvm.ir.json_compact": "pliant.ir",
    "tvm.relax.op.op_attrs": "pliant.ir.attrs",
    "tvm.relax.block_builder": "pliant.relax.block_builder",
    "tvm.relax.expr": "pliant.relax.expr",
    "tvm.relax.type": "pliant.relax.struct_info",
    "tvm.target.target": "pliant.target",
    "tvm.error": "pliant.error",
    "tvm.instrument": "pliant.ir.instrument",
    "tvm.container": "pliant.ir",
    "tvm.parser": "pliant.script",
}

# In TVM, the operators are in modules by kind, and `relax.op` contains all of them.
_OPERATOR_MODULES = (
    "base binary create datatype index linear_algebra manipulate mask qdq sampling search set sorting statistical ternary unary"
)
RENAMED.update({f"tvm.relax.op.{name}": "pliant.relax.op" for name in _OPERATOR_MODULES.split()})
