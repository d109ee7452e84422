"""Functions and classes to build and run executables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from statistics import fmean, median, pstdev
from time import perf_counter
from typing import TYPE_CHECKING, Any

from pliant import _core
from pliant._core import Executable, Model, Operand, VMFunction
from pliant._model import compile_module
from pliant.error import UnsupportedError

if TYPE_CHECKING:
    from pliant._core import Device, IRModule
    from pliant._core.relax import Function
    from pliant.target import Target
    from pliant.transform import Pass

__all__ = [
    "BenchmarkResult",
    "ExecBuilder",
    "Executable",
    "VMExecutable",
    "VMFunction",
    "VMInstrumentReturnKind",
    "VirtualMachine",
    "build",
]

VMExecutable = Executable


def _vmcodegen(builder: ExecBuilder, mod: IRModule, exec_mode: str = "bytecode") -> IRModule:
    """Takes a lowered module for the builder, and returns its loop functions. :func:`_vmlink` builds the executable. TVM's two
    steps of code generation have these names."""
    builder._lowered = (mod, exec_mode)
    loops = {var: func for var, func in mod.functions_items() if isinstance(func, _core.PrimFunc)}
    return _core.IRModule(loops)


def _vmlink(
    builder: ExecBuilder,
    target: str | Target | None,
    tir_mod: IRModule | None = None,
    tir_pipeline: str | None = "default",
    ext_libs: Sequence[Any] | None = None,
    params: dict[str, Any] | None = None,
    **options: Any,
) -> Executable:
    """Builds the executable of a builder, or of the module that :func:`_vmcodegen` took for it. ``tir_mod`` is part of that
    module. Raises ``UnsupportedError`` for ``ext_libs`` and ``params``."""
    if ext_libs:
        raise UnsupportedError("relax.vm._vmlink: external libraries are not supported; export the program with pliant.export_library")
    lowered = builder._lowered
    if lowered is None:
        return builder.get()
    mod, exec_mode = lowered
    return build(mod, target, params, relax_pipeline=None, exec_mode=exec_mode)


def build(
    mod: IRModule | Function,
    target: str | Target | None = None,
    params: dict[str, Any] | None = None,
    relax_pipeline: str | Pass | Callable[[IRModule], IRModule] | None = "default",
    tir_pipeline: str | None = "default",
    exec_mode: str = "bytecode",
    **options: Any,
) -> Executable:
    """Builds a module, at any stage of lowering, into an executable.

    ``relax_pipeline`` is the pipeline for the graph: a name (``"default"``, ``"zero"``,
    ``"minimum"``, or one registered with ``relax.register_pipeline``), a pass or a list of passes.
    ``None`` means ``"minimum"``. After a user-defined pipeline, the lowering passes run; they do
    not change code that is already lowered. ``exec_mode`` is ``"bytecode"``, or ``"compiled"`` to
    compile graph functions to machine code. The current ``PassContext`` and its instruments apply
    to all passes. Other options are those of ``pliant.compile``.

    Raises ``UnsupportedError`` for ``params`` and for another ``tir_pipeline``, and the errors of
    ``pliant.compile``.
    """
    if params:
        raise UnsupportedError(
            "relax.build: the argument params is not supported; bind the parameters as constants of the module "
            "(relax.transform.BindParams)"
        )
    if tir_pipeline not in (None, "default"):
        raise UnsupportedError("relax.build: tir_pipeline must be \"default\", the only pipeline for loop functions")
    if "pipeline" in options:
        raise TypeError("relax.build() takes no 'pipeline' (help: pass the graph passes as relax_pipeline=)")
    options["pipeline"] = "minimum" if relax_pipeline is None else relax_pipeline
    options["exec_mode"] = exec_mode
    return compile_module(mod, target, options)


@dataclass(frozen=True)
class BenchmarkResult:
    """Measured durations in seconds, and their statistics. ``std`` is the standard deviation of the
    population."""

    results: list[float]
    """The result of each measurement."""
    mean: float = field(init=False)
    median: float = field(init=False)
    min: float = field(init=False)
    max: float = field(init=False)
    std: float = field(init=False)

    def __post_init__(self) -> None:
        values = {
            "mean": fmean(self.results),
            "median": median(self.results),
            "min": min(self.results),
            "max": max(self.results),
            "std": pstdev(self.results),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)


class VMInstrumentReturnKind(IntEnum):
    """The values that an instrument returns before a call, to run or to skip the call. An instrument is a function that
    the VM calls before and after each call of a program."""

    NO_OP = 0
    """The call is executed."""
    SKIP_RUN = 1
    """The call is skipped."""


class VirtualMachine(_core.VirtualMachine):
    """Runs the functions of an executable with inputs of any valid shape, from any thread:
    ``vm["main"](x)``.

    ``vm["main"](x, timeout=0.5)`` stops a run that takes longer than 0.5 seconds with a
    ``TimeLimitError``. ``invoke_stateful`` and ``invoke_closure`` also accept ``timeout``.

    ``functions`` are packed functions for this VM only, which take precedence over registered ones.
    ``max_depth`` is the maximum depth of calls between the program's functions, 100,000 by default.
    A deeper recursion fails with a ``VMError``. Tail calls do not increase the depth.
    ``vm.max_depth = n`` changes the limit. ``memory_cfg`` and ``profile`` are ignored.
    ``exec`` is the name of ``rt_mod`` in older versions of TVM.

    Raises ``VMError`` if the program calls packed functions that are not registered,
    ``UnsupportedError`` for a device other than the CPU, and ``ValueError`` for a ``max_depth``
    below 1.
    """

    # With slots, setting a misspelt attribute is an error.
    __slots__ = ("_saved",)
    _saved: dict[str, Callable[[], Any]]

    def __new__(
        cls,
        rt_mod: Executable | Model | None = None,
        device: Device | Sequence[Device] | None = None,
        memory_cfg: Any = None,
        profile: bool = False,
        functions: Sequence[tuple[str, Callable[..., Any]]] | None = None,
        max_depth: int | None = None,
        *,
        exec: Executable | None = None,
    ) -> VirtualMachine:
        rt_mod = exec if rt_mod is None else rt_mod
        if rt_mod is None:
            raise TypeError("VirtualMachine() is missing the executable")
        if isinstance(rt_mod, Model):
            rt_mod = rt_mod.executable
        table = list(functions) if functions else None
        self = super().__new__(cls, rt_mod, device, memory_cfg, profile, table, max_depth)
        self._saved = {}
        return self

    def __getitem__(self, name: str) -> Any:
        return self._saved.get(name) or super().__getitem__(name)

    @property
    def module(self) -> VirtualMachine:
        """The VM itself, for code that calls ``vm.module.time_evaluator``."""
        return self

    def save_function(
        self, func_name: str, saved_name: str, *args: Any, include_return: bool = True, **kwargs: Any
    ) -> None:
        """Stores a function together with its arguments under another name. The stored function
        takes no arguments except a ``timeout`` in seconds. With ``include_return=False``, it
        returns ``None``.

        Raises ``KeyError`` if there is no such function, or if an argument is missing among
        ``kwargs``.
        """
        func = super().__getitem__(func_name)
        if kwargs:
            names = func.params[len(args) :]
            args = (*args, *(kwargs[name] for name in names))

        def saved(*, timeout: float | None = None) -> Any:
            result = func(*args, timeout=timeout)
            return result if include_return else None

        self._saved[saved_name] = saved

    def time_evaluator(
        self,
        func_name: str,
        dev: Device | None = None,
        number: int = 10,
        repeat: int = 1,
        min_repeat_ms: float = 0,
        **options: Any,
    ) -> Callable[..., BenchmarkResult]:
        """Returns a function that measures ``func_name(*args)`` and returns a
        :class:`BenchmarkResult`. It takes ``repeat`` measurements, each the mean of ``number``
        runs, or of more runs if these take less than ``min_repeat_ms``. ``dev`` and ``options`` are
        ignored.

        For ``"invoke_stateful"``, the argument of the returned function is the name of a function
        with inputs stored by ``set_input``. The returned function raises ``ValueError`` if
        ``number`` or ``repeat`` is 0.
        """

        def measure(*args: Any) -> BenchmarkResult:
            if func_name in self._saved:
                return BenchmarkResult(_durations(self._saved[func_name], number, repeat, float(min_repeat_ms)))
            if func_name == "invoke_stateful" and func_name not in self:
                (name,) = args
                return BenchmarkResult(self._time_stateful(name, number, repeat, float(min_repeat_ms)))
            return BenchmarkResult(self._time(func_name, args, number, repeat, float(min_repeat_ms)))

        return measure


def _durations(run: Callable[[], Any], number: int, repeat: int, min_repeat_ms: float) -> list[float]:
    """Measures a function without arguments. Returns the mean seconds of a run for each measurement."""
    if number < 1 or repeat < 1:
        raise ValueError(f"time_evaluator: number and repeat must be positive, got {number} and {repeat}")
    results = []
    for _ in range(repeat):
        runs, elapsed = 0, 0.0
        while runs == 0 or elapsed * 1000 < min_repeat_ms:
            start = perf_counter()
            for _ in range(number):
                run()
            elapsed += perf_counter() - start
            runs += number
        results.append(elapsed / runs)
    return results


class _FunctionScope:
    def __init__(self, builder: ExecBuilder, name: str, num_inputs: int, names: list[str] | None) -> None:
        self._builder = builder
        self._args = (name, num_inputs, names)

    def __enter__(self) -> _FunctionScope:
        self._builder._begin_function(*self._args)
        return self

    def __exit__(self, *exc: object) -> None:
        self._builder._end_function()


class ExecBuilder(_core.ExecBuilder):
    """Builds an executable by hand.

    >>> ib = ExecBuilder()
    >>> with ib.function("main", num_inputs=1):
    ...     ib.emit_call("vm.builtin.copy", args=[ib.r(0)], dst=ib.r(1))
    ...     ib.emit_ret(ib.r(1))
    >>> ex = ib.get()
    """

    # The module that `_vmcodegen` took, and its execution mode.
    _lowered: tuple[IRModule, str] | None = None

    def function(
        self, func_name: str, num_inputs: int = 0, param_names: list[str] | None = None
    ) -> _FunctionScope:
        """Returns a context manager that begins a function and ends it. The inputs are in the first
        registers. Their names are by default ``arg0``, ``arg1`` and so on.

        Entering the block raises ``ValueError`` if the number of names is not ``num_inputs``.
        """
        return _FunctionScope(self, func_name, num_inputs, param_names)

    def emit_call(
        self, name: str, args: Sequence[Operand | Any] | None = None, dst: Operand | None = None
    ) -> None:
        """Emits a call of the function ``name``. Arguments that are not operands become constants.
        The result is written to the register ``dst``, or discarded for ``None``."""
        super().emit_call(name, list(args or ()), dst)
