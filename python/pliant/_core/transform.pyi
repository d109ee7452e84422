"""Passes and instruments written in Rust, and the functions that run passes of all kinds."""

from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, Self

from pliant._core import IRModule
from pliant._core.relax import StructInfo, Var

def BindParams(func_name: str, params: dict[Any, Any]) -> CorePass:
    """Binds parameters of a function to values. Keys are names, variables or indices of
    parameters."""

def BindSymbolicVars(binding_map: dict[Any, Any], func_name: str | None = None) -> CorePass:
    """Binds symbolic sizes to values, in one function or in all. Keys are names or `tir.Var`s."""

def BundleModelParams(param_tuple_name: str | None = None) -> CorePass:
    """Combines the parameters of a model, from the index given by the attribute `num_input` on,
    into one tuple."""

def ConvertToDataflow(min_size: int = 2) -> CorePass:
    """Converts sequences of at least `min_size` bindings without side effects to dataflow
    blocks."""

class CoreInstrument:
    """An instrument written in Rust."""
    @staticmethod
    def dump(dir: str | PathLike[str]) -> CoreInstrument: ...
    def entries(self) -> list[tuple[str, int, float]]: ...
    def render(self) -> str: ...
    def reset(self) -> None: ...
    @staticmethod
    def timing() -> CoreInstrument: ...

class CorePass:
    """A pass written in Rust."""
    def __new__(cls, name: str) -> Self: ...
    def __repr__(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def opt_level(self) -> int: ...

def FuseOps(fuse_opt_level: int = -1) -> CorePass:
    """Groups calls of loop functions that are executed more efficiently together. Level 0 disables
    fusion, and -1 selects the level of the context."""

def LegalizeOps(*, skip_ops: list[str] | None = None, enable_warning: bool = False) -> CorePass:
    """Lowers operators to calls of loop functions, except for those in `skip_ops` (full names)."""

def DeadCodeElimination(entry_functions: Sequence[str] | None = None) -> CorePass:
    """Removes unused bindings and functions that are not reachable from public functions or
    `entry_functions`."""

def EliminateCommonSubexpr(call_only: bool = False) -> CorePass:
    """Merges bindings that compute the same value. With `call_only`, only calls are merged."""

def FoldConstant(max_elements: int | None = None) -> CorePass:
    """Evaluates constant expressions whose values have at most `max_elements` elements."""

def LiftTransformParams(shared_transform: bool | Sequence[str] | None = None) -> CorePass:
    """Lifts computations that depend only on the parameters of a model into separate functions."""

def TopologicalSort(
    order: str = "depth-first", direction: str = "from-inputs", starting_location: str | None = None
) -> CorePass:
    """Sorts the bindings of dataflow blocks. `order` is "depth-first" or "breadth-first".
    `direction` (or `starting_location`) is "from-inputs" or "from-outputs"."""

def UpdateParamStructInfo(sinfo_func: Callable[[Var], StructInfo | None]) -> CorePass:
    """Gives parameters the struct infos that `sinfo_func(var)` returns, and infers all other types
    again. A parameter keeps its type if the function returns `None`."""

def apply_pass(one: Any, module: IRModule, context: Any) -> IRModule:
    """Runs a pass on a module with the instruments and verification of a context."""

def check_config(name: str, value: Any) -> None:
    """Raises `ValueError` if a setting does not exist or does not accept the value."""

def config_table() -> list[tuple[str, str, str]]:
    """The settings of a context: name, type of the values, description."""

def pass_table() -> list[tuple[str, list[str], str, str]]:
    """The passes and pipelines: name, aliases, description, and level."""

def unknown_pass(name: str) -> str | None:
    """The error message for a name that is not a pass or pipeline. `None` for a known name."""

def register_config(name: str, kind: str, doc: str) -> None:
    """Registers a setting for user-defined passes."""

def backend_codegens() -> list[str]:
    """The names of the backends with code generators."""

def backend_patterns(prefix: str) -> list[str]:
    """The names of the registered patterns that start with `prefix`, in the order in which they are
    tried."""

def fuse_ops_by_pattern(patterns: list[Any], bind_constants: bool, annotate_codegen: bool) -> CorePass:
    """`FuseOpsByPattern` with patterns from Python."""

def offload_rules() -> list[tuple[str, str, str, str]]:
    """The offload rules in the order in which they are tried: name, pass, kernel and what each replaces."""

def register_backend_codegen(name: str, generate: Any) -> None:
    """Registers the code generator of a backend."""

def register_backend_patterns(patterns: list[Any]) -> None:
    """Adds patterns to the global table of backend patterns."""

def register_offload_rule(row: Any, inputs: list[Any], kernel: Any, doc: str) -> None:
    """Adds an offload rule: matches of a pattern become calls of a packed function, a name or a callable, that takes what
    `inputs` matched and the memory of the result."""

def remove_offload_rule(name: str) -> bool:
    """Removes a registered offload rule; returns whether there was one of that name."""

def run_codegen(target_options: dict[str, dict[str, Any]], entry_functions: list[str] | None) -> CorePass:
    """`RunCodegen` with options for the backends."""
