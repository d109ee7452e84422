"""The simple interface: compile a module once, then call the model with inputs of any valid
shape."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from pliant import _core
from pliant._compiled_model import Model
from pliant._core import IRModule, PrimFunc
from pliant._explorer import Source
from pliant._logging import log_compilation, logger
from pliant._loop_function_callers import with_callers
from pliant.error import UnsupportedError
from pliant.target import Target

if TYPE_CHECKING:
    from pliant._core.relax import Function

__all__ = ["Model", "build", "compile", "load"]


class OnnxModel(Protocol):
    """The protocol of an ``onnx.ModelProto``: any object with its method ``SerializeToString``."""

    def SerializeToString(self) -> bytes:  # noqa: N802
        """Returns the model as bytes."""


class TorchModule(Protocol):
    """The protocol of a ``torch.nn.Module`` and of an ``ExportedProgram``."""

    def named_parameters(self) -> Any:
        """Returns the parameters with their names."""


class TorchOnnxProgram(Protocol):
    """The protocol of an ``ONNXProgram``, which ``torch.onnx.export`` returns."""

    @property
    def model_proto(self) -> Any:
        """The ONNX model."""


TorchProgram: TypeAlias = TorchModule | TorchOnnxProgram
"""A ``torch.nn.Module``, an ``ExportedProgram`` or an ``ONNXProgram``."""


def as_module(mod: IRModule | Function | PrimFunc) -> IRModule:
    """Converts an argument to a module. A single function becomes a module with one function.

    Raises ``TypeError`` for other objects.
    """
    if isinstance(mod, IRModule):
        return mod
    if isinstance(mod, _core.relax.Function | PrimFunc):
        return IRModule.from_expr(mod)
    raise TypeError(f"the program must be an IRModule, a function, a path or an ONNX model, got {type(mod).__name__}")


def compile(
    mod: IRModule | Function | PrimFunc | str | os.PathLike[str] | bytes | bytearray | memoryview | OnnxModel | TorchProgram,
    target: str | Target | tuple[Any, ...] | None = None,
    **options: Any,
) -> Model:
    """Compiles a program to a model, which can be called with inputs of any valid shape.

    ``mod`` is a module, a function, the path of a script (``.py``) or of an ONNX model (``.onnx``),
    the bytes of an ONNX model, a ``ModelProto``, or a model of torch: a module, an ``ExportedProgram`` or an ``ONNXProgram``. A
    module is exported with example inputs: ``compile(module, (x,), dynamic_shapes=...)``. The result takes the module's
    arguments, and torch tensors. A public loop function of a module without
    graph functions takes all its tensors as arguments, including outputs. ``target`` is
    ``"cranelift"`` or one of TVM's names for the CPU. ``model(x, timeout=0.5)`` stops a run that
    takes longer than 0.5 seconds with a ``TimeLimitError``.

    The following options override those of the current ``PassContext``. Options that are lists are added to the lists of the
    context.

    - ``opt_level``: the optimization level from 0 to 3, 2 by default.
    - ``pipeline``: the graph passes: a name, a pass or a list of passes.
    - ``disabled_passes``, ``required_passes``: passes to skip, and passes to run at any level.
    - ``config``: settings of single passes. ``{"winograd": "4x4"}`` uses larger tiles for 3 x 3
      convolutions, which is faster but has about twenty times the rounding error.
      ``{"winograd": "off"}`` disables the Winograd algorithm.
    - ``instruments``: objects that observe the passes.
    - ``verify``: whether to verify the module after every pass. ``dump_dir``: the directory to
      which every stage is written.
    - ``exec_mode``: ``"bytecode"`` (default), or ``"compiled"`` to compile graph functions to
      machine code.
    - ``threads``: the number of threads that compile and that run parallel loops.
    - ``kernels``: ``"off"`` replaces the library kernels by generated loops.
    - ``precision``: ``"bf16"`` rounds constant right operands of float32 matrix products to
      bfloat16, which halves their size. On CPUs with tile registers, left operands with at least
      five rows are rounded too. Sums stay float32. This option requires the library kernels.
    - ``seconds``: the time limit of the compilation.
    - For ONNX models: ``dynamic_shapes``, ``divisible``, ``allow_specialization``, ``strict`` and
      ``limits``,
      as for :func:`pliant.frontend.onnx.from_onnx`.
    - For torch modules: ``args``, ``kwargs`` and ``dynamic_shapes``, as for ``torch.export.export``. ``args`` may be the second
      positional argument.

    Raises ``CompileError`` if the program does not compile or exceeds the time limit,
    ``UnsupportedError`` for unsupported features and kinds of files, ``ScriptError`` for an invalid
    script, ``VMError`` if the program calls packed functions that are not registered, and
    ``TypeError``, ``ValueError`` or ``CompileError`` for an invalid option.
    """
    if _is_torch(mod):
        from pliant.frontend.torch.compiling import compile_torch, is_torch_program

        if is_torch_program(mod):
            return compile_torch(mod, target, options)
        mod = mod.model_proto  # type: ignore[union-attr]
    source = Source(mod, target, options)
    program, shapes = program_of(mod, options)
    model = Model(compile_module(program, target, options), shapes)
    model._source = source
    return model


def program_of(mod: Any, options: dict[str, Any]) -> tuple[Any, str | None]:
    """Reads or imports a program. Returns it, and the report on the sizes of an ONNX model. Removes the options of the import from
    ``options``."""
    facts = {name: options.pop(name) for name in ONNX_OPTIONS if name in options}
    if _is_onnx(mod):
        from pliant.frontend.onnx import ImportOptions, import_model

        imported = import_model(mod, ImportOptions(**facts))
        allowed = getattr(facts.get("limits"), "seconds", None)
        if allowed is not None:
            options.setdefault("seconds", allowed)
        return imported
    if facts:
        raise TypeError(f"the options {', '.join(facts)} are only for ONNX models, but the program is not one")
    return (_read(os.fspath(mod)) if isinstance(mod, str | os.PathLike) else mod), None


def build(
    mod: IRModule | Function | PrimFunc, target: str | Target | None = None, name: str | None = None, **options: Any
) -> Model:
    """Compiles a program as :func:`compile` does. TVM uses this name, mostly for loop functions: ``build(mod)["main"](a, b,
    out)``. If ``mod`` is a single function, ``name`` becomes its name. ``target_host`` is ignored."""
    options.pop("target_host", None)
    if name is not None and not isinstance(mod, IRModule):
        mod = mod.with_attr("global_symbol", name)
    return compile(mod, target, **options)


def compile_module(
    mod: IRModule | Function | PrimFunc, target: Any, options: dict[str, Any]
) -> _core.Executable:
    """Compiles a module or function under the current pass context."""
    with compile_settings(mod, target, options) as (module, settings):
        start = time.perf_counter()
        executable = _core.compile_module(module, settings)
        log_compilation(executable, time.perf_counter() - start)
    return executable


@contextmanager
def compile_settings(mod: Any, target: Any, options: dict[str, Any]) -> Iterator[tuple[IRModule, dict[str, Any]]]:
    """Returns the module to compile and the settings of the extension module, within the current pass context."""
    from pliant.relax.pipeline import as_pipeline
    from pliant.transform._pass_context import compiling

    logger()  # Reports an invalid PLIANT_LOG before the compilation.
    module = with_callers(as_module(mod))
    options = {**options, "target": Target("auto" if target is None else target).backend}
    options["pipeline"] = as_pipeline(options.get("pipeline"))
    with compiling(options) as settings:
        yield module, settings


ONNX_OPTIONS = ("dynamic_shapes", "divisible", "allow_specialization", "strict", "limits")


def _is_torch(mod: Any) -> bool:
    """Whether an object is a module, an exported program or an ONNX program of torch, without importing torch."""
    torch = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "nn"):
        return False
    kind = type(mod)
    return isinstance(mod, torch.nn.Module) or (kind.__module__.startswith("torch.") and kind.__name__ in ("ExportedProgram", "ONNXProgram"))


def _is_onnx(mod: Any) -> bool:
    if isinstance(mod, str | os.PathLike):
        return os.fspath(mod).endswith(".onnx")
    return isinstance(mod, bytes | bytearray | memoryview) or hasattr(mod, "SerializeToString")


def _is_executable(path: str) -> bool:
    """Whether the path names a program that ``Model.save`` wrote, by its extension or its first bytes."""
    if path.endswith(".plx"):
        return True
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        return file.read(8) == b"PLIANTEX"


def _read(path: str) -> Any:
    if not path.endswith(".py"):
        if _is_executable(path):
            raise UnsupportedError(f"'{path}' is a compiled program: load it with pliant.load({path!r})")
        raise UnsupportedError(
            f"cannot read a model from '{path}': script files (.py) and ONNX models (.onnx) are supported"
        )
    from pliant.script import from_source

    with open(path, encoding="utf-8") as file:
        return from_source(file.read(), file=path)


def load(path: str | os.PathLike[str]) -> Model:
    """Loads a model from a file that ``Model.save`` or ``export_library`` wrote.

    Raises ``OSError`` if the file cannot be read, and ``ExecutableError`` if it is damaged, invalid
    or written by another version.
    """
    return Model(_core.Executable.load(os.fspath(path)))
