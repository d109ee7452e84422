"""Passes and instruments that are written in Rust, and the functions that run passes of all kinds.

A function with a capitalized name creates the pass of that name.
"""

from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, Self

from pliant._core import IRModule
from pliant._core.relax import StructInfo, Var

def BindParams(func_name: str, params: dict[Any, Any]) -> CorePass:
    """Binds parameters of a function to values: tensors, numbers, shapes, strings, and tuples of
    these. Keys are names, variables or indices of parameters."""

def BindSymbolicVars(binding_map: dict[Any, Any], func_name: str | None = None) -> CorePass:
    """Binds symbolic sizes to integers or integer expressions, in one function or in all. Keys are
    names or `tir.Var` objects. Variables in expressions refer to sizes of the function by name. Raises
    `TypeError` for other values."""

def BundleModelParams(param_tuple_name: str | None = None) -> CorePass:
    """Combines the parameters of a model into one tuple, from the index that the attribute
    `num_input` states. `param_tuple_name` is the name of the tuple."""

def ConvertToDataflow(min_size: int = 2) -> CorePass:
    """Converts sequences of at least `min_size` bindings without side effects to dataflow blocks.
    Raises `ValueError` for a negative number."""

def Gradient(func_name: Any, require_grads: Any = None, target_index: int = 0) -> CorePass:
    """Differentiates a function with respect to the parameters in `require_grads` (names or variables; by default all), and adds the
    function `<func_name>_adjoint`. Issues a `UserWarning` for each parameter on which the target does not depend. The pass raises an
    error if the target is not a float scalar, or if an operator on which it depends has no gradient."""

class CoreInstrument:
    """An instrument that is written in Rust."""
    @staticmethod
    def dump(dir: str | PathLike[str]) -> CoreInstrument:
        """Creates an instrument that writes the module after every pass into a directory."""
    def entries(self) -> list[tuple[str, int, float]]:
        """The measurements: name, nesting depth and duration in seconds of each pass."""
    def render(self) -> str:
        """Returns the measurements as a table."""
    def reset(self) -> None:
        """Clears the measurements."""
    @staticmethod
    def timing() -> CoreInstrument:
        """Creates an instrument that measures the duration of passes."""

class CorePass:
    """A pass or pipeline that is written in Rust, by name or alias. Raises `ValueError` for an
    unknown name."""
    def __new__(cls, name: str) -> Self: ...
    def __repr__(self) -> str: ...
    @property
    def name(self) -> str:
        """The name of the pass."""
    @property
    def opt_level(self) -> int:
        """The lowest optimization level at which a sequence runs the pass."""

def FuseOps(fuse_opt_level: int = -1) -> CorePass:
    """Groups calls of loop functions that run faster as one function. Level 0 disables fusion, and
    -1 selects the level of the context."""

def LegalizeOps(*, skip_ops: list[str] | None = None, enable_warning: bool = False) -> CorePass:
    """Lowers operators to calls of loop functions, except for those in `skip_ops` (full names).
    `enable_warning` is ignored. Raises `ValueError` for an unknown operator."""

def DeadCodeElimination(entry_functions: Sequence[str] | None = None) -> CorePass:
    """Removes unused bindings, and functions that cannot be reached from public functions or
    `entry_functions`."""

def EliminateCommonSubexpr(call_only: bool = False) -> CorePass:
    """Replaces repeated computations of the same value by one. With `call_only`, this applies only
    to calls."""

def FoldConstant(max_elements: int | None = None) -> CorePass:
    """Evaluates constant expressions. Values with more than `max_elements` elements are not folded.
    `None` selects the limit in the setting `relax.FoldConstant.max_elements` of the context."""

def LiftTransformParams(shared_transform: bool | Sequence[str] | None = None) -> CorePass:
    """Lifts computations that depend only on the parameters of a model into separate functions: one
    for each function, one for all functions (`shared_transform=True`), or one for the functions
    with the given names. Raises `TypeError` for other values."""

def TopologicalSort(
    order: str = "depth-first", direction: str = "from-inputs", starting_location: str | None = None
) -> CorePass:
    """Sorts the bindings of dataflow blocks. `order` is `"depth-first"` or `"breadth-first"`.
    `direction`, or TVM's `starting_location`, is `"from-inputs"` or `"from-outputs"`. Raises
    `ValueError` for other values."""

def UpdateParamStructInfo(sinfo_func: Callable[[Var], StructInfo | None]) -> CorePass:
    """Gives each parameter the type that `sinfo_func(var)` returns, and infers all other types
    again. A parameter keeps its type if the function returns `None`. Raises `TypeError` if
    `sinfo_func` is not callable."""

def apply_pass(one: Any, module: IRModule, context: Any) -> IRModule:
    """Runs a pass on a module with the instruments and verification of a context. The optimization
    level and the disabled passes of the context apply only to the passes of a sequence. Raises
    `TypeError` if `module` is not an `IRModule`."""

def check_config(name: str, value: Any) -> None:
    """Raises `ValueError` if a setting does not exist or does not accept the value."""

def config_table() -> list[tuple[str, str, str]]:
    """Returns the settings of a context: name, type of the values, and description."""

def pass_table() -> list[tuple[str, list[str], str, str]]:
    """Returns the passes and pipelines: name, aliases, description, and level (`graph`, `loop`,
    `pipeline` or `user`)."""

def unknown_pass(name: str) -> str | None:
    """Returns the error message for a name that is not a pass or pipeline, or `None` for a known
    name."""

def register_config(name: str, kind: str, doc: str) -> None:
    """Registers a setting for user-defined passes, or replaces a registered one. `kind` is `bool`,
    `int`, `str` or `any`. Raises `ValueError` for another kind, and for the name of one of Pliant's
    settings."""

def backend_codegens() -> list[str]:
    """Returns the names of the backends with code generators."""

def backend_patterns(prefix: str) -> list[str]:
    """Returns the names of the registered patterns that start with `prefix`, in the order in which
    they are tried."""

def fuse_ops_by_pattern(patterns: list[Any], bind_constants: bool, annotate_codegen: bool) -> CorePass:
    """Creates the pass `FuseOpsByPattern` with patterns from Python. A pattern is the name of a
    registered one or `(name, pattern, [(name, subpattern), ...], check)`. Raises `ValueError` for
    an unknown name."""

def offload_rules() -> list[tuple[str, str, str, str]]:
    """Returns the offload rules in the order in which they are tried: name, pass, kernel and
    description."""

def register_backend_codegen(name: str, generate: Any) -> None:
    """Registers the code generator of a backend. A generator with the same name is replaced."""

def register_backend_patterns(patterns: list[Any]) -> None:
    """Adds patterns to the global table of backend patterns."""

def register_offload_rule(row: Any, inputs: list[Any], kernel: Any, doc: str) -> None:
    """Adds an offload rule: matches of a pattern become calls of a packed function, which is given by name or as a callable. The
    arguments of the packed function are the expressions that `inputs` matched and the memory of the result.

    Raises `ValueError` for the name of one of Pliant's rules, and if an input is not part of the
    pattern or is a call that the pattern matches. Raises `TypeError` if `kernel` is neither
    callable nor a name.
    """

def remove_offload_rule(name: str) -> bool:
    """Removes a registered offload rule. Returns whether there was a rule with this name."""

def run_codegen(target_options: dict[str, dict[str, Any]], entry_functions: list[str] | None) -> CorePass:
    """Creates the pass `RunCodegen` with options for the backends. Raises `TypeError` if the
    options of a backend are not a dict."""
