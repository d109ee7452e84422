"""The short face: compile a module once, call it at any shape."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Protocol

from pliant import _core
from pliant._core import IRModule, Model, PrimFunc
from pliant._loops import with_callers
from pliant.error import UnsupportedError
from pliant.target import Target

if TYPE_CHECKING:
    from pliant._core.relax import Function

__all__ = ["Model", "build", "compile", "load"]


class OnnxModel(Protocol):
    """An ``onnx.ModelProto``."""

    def SerializeToString(self) -> bytes: ...  # noqa: N802


def as_module(mod: IRModule | Function | PrimFunc) -> IRModule:
    """The module; a function on its own as a module of one function."""
    if isinstance(mod, IRModule):
        return mod
    if isinstance(mod, _core.relax.Function | PrimFunc):
        return IRModule.from_expr(mod)
    raise TypeError(f"expected an IRModule, a function, a path or an ONNX model, got {type(mod).__name__}")


def compile(
    mod: IRModule | Function | PrimFunc | str | os.PathLike[str] | bytes | bytearray | memoryview | OnnxModel,
    target: str | Target | None = None,
    **options: Any,
) -> Model:
    """Compiles a module, a function, a script file (``.py``) or an ONNX model (``.onnx``, its bytes, or a ``ModelProto``)
    into a model that is called at any shape. ``model(x, timeout=0.5)`` stops a run that takes longer than that many seconds, with a
    ``TimeLimitError``.

    Options: ``threads``, ``opt_level``, ``pipeline``, ``disabled_passes``, ``required_passes``, ``verify``,
    ``dump_dir``, ``config``, ``instruments``, ``exec_mode``, ``kernels`` (``"off"``: generated loops
    do what the library's kernels would), ``precision`` (``"bf16"``: constant right operands of products of float32 are rounded to
    bfloat16, which halves them, and where the machine has tile registers so are left operands of five rows and more; sums stay
    float32; needs the kernels), ``seconds`` (how long it may take). They add to the present
    ``PassContext``. ``config={"winograd": "4x4"}`` multiplies convolutions of 3 x 3 by larger tiles, faster and with some twenty times
    the rounding error; ``"off"`` multiplies plainly. For ONNX models also ``dynamic_shapes``, ``divisible``, ``allow_specialization`` and ``limits`` (see
    :func:`pliant.frontend.onnx.from_onnx`).

    Loop functions without a graph function that calls them are called with all their tensors, outputs too.
    """
    program: Any = mod
    shapes: str | None = None
    facts = {name: options.pop(name) for name in ONNX_OPTIONS if name in options}
    if _is_onnx(mod):
        from pliant.frontend.onnx import import_model

        program, shapes = import_model(mod, **facts)
        allowed = getattr(facts.get("limits"), "seconds", None)
        if allowed is not None:
            options.setdefault("seconds", allowed)
    elif facts:
        raise TypeError(f"{', '.join(facts)}: these options are for ONNX models")
    elif isinstance(mod, str | os.PathLike):
        program = _read(os.fspath(mod))
    return Model(compile_module(program, target, options), shapes)


def build(
    mod: IRModule | Function | PrimFunc, target: str | Target | None = None, name: str | None = None, **options: Any
) -> Model:
    """TVM's name for :func:`compile`, mostly for loop functions: ``build(mod)["main"](a, b, out)``. ``name`` is what a
    function on its own is called."""
    options.pop("target_host", None)
    if name is not None and not isinstance(mod, IRModule):
        mod = mod.with_attr("global_symbol", name)
    return compile(mod, target, **options)


def compile_module(
    mod: IRModule | Function | PrimFunc, target: str | Target | None, options: dict[str, Any]
) -> _core.Executable:
    """Compiles under the present pass context."""
    from pliant.relax.pipeline import as_pipeline
    from pliant.transform._context import compiling

    module = with_callers(as_module(mod))
    options = {**options, "target": Target("cranelift" if target is None else target).backend}
    options["pipeline"] = as_pipeline(options.get("pipeline"))
    with compiling(options) as settings:
        return _core.compile_module(module, settings)


ONNX_OPTIONS = ("dynamic_shapes", "divisible", "allow_specialization", "limits")


def _is_onnx(mod: Any) -> bool:
    if isinstance(mod, str | os.PathLike):
        return os.fspath(mod).endswith(".onnx")
    return isinstance(mod, bytes | bytearray | memoryview) or hasattr(mod, "SerializeToString")


def _read(path: str) -> Any:
    if not path.endswith(".py"):
        raise UnsupportedError(
            f"cannot read a model from '{path}': script files (.py) and ONNX models (.onnx) are supported"
        )
    from pliant.script import from_source

    with open(path, encoding="utf-8") as file:
        return from_source(file.read(), file=path)


def load(path: str | os.PathLike[str]) -> Model:
    """Loads a model that ``Model.save`` or ``export_library`` wrote."""
    return Model(_core.Executable.load(os.fspath(path)))
