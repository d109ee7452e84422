"""Passes and instruments written in Rust, and what runs passes of all kinds."""

from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, Self

from pliant._core import IRModule
from pliant._core.relax import StructInfo, Var

def BindParams(func_name: str, params: dict[Any, Any]) -> CorePass:
    """Makes parameters of a function constants. Keys are names, variables or indices of parameters."""

def BindSymbolicVars(binding_map: dict[Any, Any], func_name: str | None = None) -> CorePass:
    """Makes symbolic sizes numbers, in one function or in all. Keys are names or `tir.Var`s."""

def BundleModelParams(param_tuple_name: str | None = None) -> CorePass:
    """Makes the parameters of a model, those from the attribute `num_input` on, one tuple."""

def ConvertToDataflow(min_size: int = 2) -> CorePass:
    """Makes dataflow blocks of runs of at least so many bindings without effects."""

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
    """Groups calls of loop functions that are better done together; at level 0 none, -1 stands for the context's level."""

def LegalizeOps(*, skip_ops: list[str] | None = None, enable_warning: bool = False) -> CorePass:
    """Turns operators into calls of loop functions, but for those to be skipped (by their full names)."""

def DeadCodeElimination(entry_functions: Sequence[str] | None = None) -> CorePass:
    """Removes bindings that nothing needs, and functions that neither the public ones nor these reach."""

def EliminateCommonSubexpr(call_only: bool = False) -> CorePass:
    """Computes once what several bindings compute; with `call_only`, calls alone are merged."""

def FoldConstant(max_elements: int | None = None) -> CorePass:
    """Computes what depends on constants alone, values of up to so many elements."""

def LiftTransformParams(shared_transform: bool | Sequence[str] | None = None) -> CorePass:
    """Lifts what depends on a model's parameters alone into a function of its own."""

def TopologicalSort(
    order: str = "depth-first", direction: str = "from-inputs", starting_location: str | None = None
) -> CorePass:
    """Sorts the bindings of dataflow blocks: `order` is "depth-first" or "breadth-first", `direction` (also called
    `starting_location`) "from-inputs" or "from-outputs"."""

def UpdateParamStructInfo(sinfo_func: Callable[[Var], StructInfo | None]) -> CorePass:
    """Gives parameters the struct infos that `sinfo_func(var)` returns (`None` keeps one) and infers the rest again."""

def apply_pass(one: Any, module: IRModule, context: Any) -> IRModule:
    """Runs a pass on a module under a context: skipped, watched and verified as the context says."""

def check_config(name: str, value: Any) -> None:
    """Raises `ValueError` for a setting that does not exist or does not take the value."""

def config_table() -> list[tuple[str, str, str]]:
    """The settings that a context takes: name, the values' type, what it does."""

def pass_table() -> list[tuple[str, list[str], str, str]]:
    """The passes and pipelines by name: name, other names, what it does, and what it works on."""

def unknown_pass(name: str) -> str | None:
    """What to tell of a name that no pass or pipeline has; `None` for one that there is."""

def register_config(name: str, kind: str, doc: str) -> None:
    """Registers a setting for passes of one's own."""

def backend_codegens() -> list[str]:
    """The backends that have code generators."""

def backend_patterns(prefix: str) -> list[str]:
    """The names of the registered patterns that start with `prefix`, in the order in which they are tried."""

def fuse_ops_by_pattern(patterns: list[Any], bind_constants: bool, annotate_codegen: bool) -> CorePass:
    """`FuseOpsByPattern` with patterns of Python."""

def offload_rules() -> list[tuple[str, str, str, str]]:
    """The offload rules in the order in which they are tried: name, pass, kernel and what each replaces."""

def register_backend_codegen(name: str, generate: Any) -> None:
    """Registers the code generator of a backend."""

def register_backend_patterns(patterns: list[Any]) -> None:
    """Adds patterns to the table of all backends."""

def register_offload_rule(row: Any, inputs: list[Any], kernel: Any, doc: str) -> None:
    """Adds an offload rule: matches of a pattern become calls of a packed function, a name or a callable, that takes what
    `inputs` matched and the memory of the result."""

def remove_offload_rule(name: str) -> bool:
    """Removes a registered offload rule; returns whether there was one of that name."""

def run_codegen(target_options: dict[str, dict[str, Any]], entry_functions: list[str] | None) -> CorePass:
    """`RunCodegen` with the options of backends."""
