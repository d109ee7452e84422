"""The extension module: the part of the package that is written in Rust. A test compares this file
with the module."""

from collections.abc import Callable, Iterator, Sequence
from os import PathLike
from typing import Any, Self, SupportsFloat, SupportsIndex, TypeAlias

import numpy

from pliant._core import relax as relax
from pliant._core import transform as transform
from pliant._core.relax import GlobalVar
from pliant.ir.attrs import Attrs
from pliant.tir.op import Op

DTypeLike: TypeAlias = Any
PrimExprLike: TypeAlias = PrimExpr | SupportsIndex | SupportsFloat

class PrimExpr:
    """A scalar expression: a size, an index or an element of a tensor. Immutable.

    Arithmetic, comparison and bitwise operators create new expressions. `//` and `%` round towards
    minus infinity. `==` and `!=` create expressions whose `bool()` compares the structure of the
    operands. `bool()` of any other non-constant expression raises `ValueError`, `/` on two integers
    raises `TypeError`, and a division by the integer constant 0 raises `ZeroDivisionError`.

    A property that this kind of expression does not have raises `AttributeError`.
    """
    def __copy__(self) -> Self: ...
    def __deepcopy__(self, _memo: Any) -> Self: ...
    def __abs__(self) -> PrimExpr: ...
    def __add__(self, value: Any, /) -> PrimExpr: ...
    def __and__(self, value: Any, /) -> PrimExpr: ...
    def __rand__(self, value: Any, /) -> PrimExpr: ...
    def __or__(self, value: Any, /) -> PrimExpr: ...
    def __ror__(self, value: Any, /) -> PrimExpr: ...
    def __xor__(self, value: Any, /) -> PrimExpr: ...
    def __rxor__(self, value: Any, /) -> PrimExpr: ...
    def __lshift__(self, value: Any, /) -> PrimExpr: ...
    def __rlshift__(self, value: Any, /) -> PrimExpr: ...
    def __rshift__(self, value: Any, /) -> PrimExpr: ...
    def __rrshift__(self, value: Any, /) -> PrimExpr: ...
    def __invert__(self) -> PrimExpr: ...
    def __bool__(self) -> bool: ...
    def __eq__(self, other: object, /) -> PrimExpr: ...  # type: ignore[override]
    def __float__(self) -> float: ...
    def __floordiv__(self, value: Any, /) -> PrimExpr: ...
    def __ge__(self, value: Any, /) -> PrimExpr: ...
    def __gt__(self, value: Any, /) -> PrimExpr: ...
    def __hash__(self) -> int: ...
    def __index__(self) -> int: ...
    def __int__(self) -> int: ...
    def __le__(self, value: Any, /) -> PrimExpr: ...
    def __lt__(self, value: Any, /) -> PrimExpr: ...
    def __mod__(self, value: Any, /) -> PrimExpr: ...
    def __mul__(self, value: Any, /) -> PrimExpr: ...
    def __ne__(self, other: object, /) -> PrimExpr: ...  # type: ignore[override]
    def __neg__(self) -> PrimExpr: ...
    def __pos__(self) -> PrimExpr: ...
    def __radd__(self, value: Any, /) -> PrimExpr: ...
    def __repr__(self) -> str: ...
    def __rfloordiv__(self, value: Any, /) -> PrimExpr: ...
    def __rmod__(self, value: Any, /) -> PrimExpr: ...
    def __rmul__(self, value: Any, /) -> PrimExpr: ...
    def __rsub__(self, value: Any, /) -> PrimExpr: ...
    def __rtruediv__(self, value: Any, /) -> PrimExpr: ...
    def __str__(self) -> str: ...
    def __sub__(self, value: Any, /) -> PrimExpr: ...
    def __truediv__(self, value: Any, /) -> PrimExpr: ...
    @property
    def _node_id(self) -> int:
        """A number that identifies the expression while it is alive. It is equal for all Python
        objects that represent the same variable."""
    @property
    def a(self) -> PrimExpr:
        """The first operand of a binary expression, or the operand of `Not`."""
    @property
    def args(self) -> tuple[PrimExpr, ...]:
        """The arguments of a call."""
    def astype(self, dtype: DTypeLike, span: Any = None) -> PrimExpr:
        """Converts the expression to another data type. Raises `DTypeError` for an unknown data
        type. `span` is ignored."""
    @property
    def b(self) -> PrimExpr:
        """The second operand of a binary expression."""
    @property
    def buffer(self) -> Any:
        """The `tir.Buffer` that a `ProducerLoad` reads."""
    @property
    def condition(self) -> PrimExpr:
        """The condition of a `Select`."""
    @property
    def dtype(self) -> str:
        """The data type of the expression as a string, such as `"int64"` or `"float32x4"`.
        `"handle"` for an address.
        """
    def equal(self, other: Any) -> PrimExpr:
        """Creates the expression `self == other`."""
    @property
    def indices(self) -> tuple[PrimExpr, ...]:
        """The indices of a `ProducerLoad`."""
    @property
    def name(self) -> str:
        """The name of a variable."""
    @property
    def name_hint(self) -> str:
        """The name of a variable. TVM has this property in addition to `name`."""
    @property
    def op(self) -> Op:
        """The intrinsic that a `Call` calls."""
    def same_as(self, other: Any) -> bool:
        """Whether both Python objects represent the same expression object or the same variable."""
    @property
    def value(self) -> Any:
        """The value of a constant or string, or the operand of a `Cast` or `Broadcast`."""

class Add(PrimExpr):
    """The sum of two values."""
    def __new__(cls, a: Any, b: Any, span: Any = None) -> Self: ...

class Analyzer:
    """Simplifies integer expressions and proves facts about them.

    All methods except `simplify` raise `TypeError` for an expression that is not over integers, or that contains elements of
    tensors or bit operations.
    """
    def __new__(cls) -> Self: ...
    def bind(self, var: PrimExpr, expr: Any, allow_override: bool = False) -> None:
        """Declares that `var` is equal to an expression or lies in a range: a `Range` or a pair
        `(begin, end)`. A further range narrows the earlier ones, also with `allow_override`.

        Raises `ValueError` if the variable is already bound to an expression, unless
        `allow_override` is set, or if the expression contains the variable.
        """
    def can_prove(self, cond: Any, strength: int = 0) -> bool:
        """Whether `cond` provably always holds. `False` means that it is not proved, not that it is
        false. `strength` is ignored."""
    def can_prove_equal(self, lhs: Any, rhs: Any) -> bool:
        """Whether `lhs == rhs` provably always holds."""
    def can_prove_greater_equal(self, expr: Any, lower_bound: Any) -> bool:
        """Whether `expr >= lower_bound` provably always holds."""
    def can_prove_less(self, expr: Any, upper_bound: Any) -> bool:
        """Whether `expr < upper_bound` provably always holds."""
    def canonical_simplify(self, expr: Any) -> PrimExpr:
        """The same as `simplify`, under one of TVM's names."""
    def clone(self) -> Analyzer:
        """A copy of the analyzer with the current facts. Constraints of open scopes stay assumed in
        the copy after the scopes end."""
    def const_int_bound(self, expr: Any, dom_map: Any = None) -> ConstIntBound:
        """Constant bounds on the values of `expr`. They may be wider than the exact range. Raises
        `UnsupportedError` if `dom_map` is given."""
    def constraint_scope(self, constraint: Any) -> ConstraintScope:
        """A context manager in whose block `constraint` is assumed to hold."""
    def modular_set(self, expr: Any) -> ModularSet:
        """A set `coeff * k + base` that contains all values of `expr`. It may contain further
        integers."""
    def rewrite_simplify(self, expr: Any) -> PrimExpr:
        """The same as `simplify`, under one of TVM's names."""
    def simplify(self, expr: Any, steps: int = 2) -> PrimExpr:
        """Simplifies an expression of any type. Integer expressions are simplified under the known
        facts. `steps` is ignored."""
    def update(self, var: PrimExpr, info: Any, override_info: bool = False) -> None:
        """Adds a fact about a variable: bounds (`ConstIntBound`) or residues (`ModularSet`).
        Earlier facts remain, and `override_info` is ignored. Raises `TypeError` for other facts."""

class And(PrimExpr):
    """The logical and of two conditions."""
    def __new__(cls, a: Any, b: Any, span: Any = None) -> Self: ...

class Broadcast(PrimExpr):
    """A vector with the same scalar in every lane. Raises `ValueError` for fewer than two lanes."""
    def __new__(cls, value: Any, lanes: int) -> Self: ...
    @property
    def lanes(self) -> int:
        """The number of lanes (elements) of the vector."""

class Call(PrimExpr):
    """A call of an intrinsic. `op` is its name, with or without the prefix `tir.`, and `dtype` is
    the type of the result.

    Raises `ValueError` for an unknown intrinsic, and `TypeError` for a wrong number of arguments or a `dtype` that is not the
    type of the result.
    """
    def __new__(cls, dtype: DTypeLike, op: str, args: Sequence[Any], span: Any = None) -> Self: ...

class CancelToken:
    """Stops runs from another thread. `model(x, cancel=token)` raises `CancelledError` soon after `token.cancel()` was called. Runs
    that start later with the token raise it at once."""
    def __new__(cls) -> Self: ...
    def __repr__(self) -> str: ...
    def cancel(self) -> None:
        """Stops all runs that were started with the token. Does not wait until they have stopped. Packed functions that are running
        are not interrupted."""
    @property
    def cancelled(self) -> bool:
        """Whether `cancel` was called."""

class Cast(PrimExpr):
    """A conversion of a value to another data type."""
    def __new__(cls, dtype: DTypeLike, value: Any, span: Any = None) -> Self: ...

class ConstIntBound:
    """The smallest and the largest value of an expression. An unbounded end is `NEG_INF` or
    `POS_INF`."""
    def __new__(cls, min_value: int, max_value: int) -> Self: ...
    NEG_INF: int
    """The lower bound of an expression without a known minimum."""
    POS_INF: int
    """The upper bound of an expression without a known maximum."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ge__(self, value: Any, /) -> Any: ...
    def __gt__(self, value: Any, /) -> Any: ...
    def __hash__(self) -> int: ...
    def __le__(self, value: Any, /) -> Any: ...
    def __lt__(self, value: Any, /) -> Any: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __repr__(self) -> str: ...
    @property
    def max_value(self) -> int:
        """The largest value that the expression can take, or `POS_INF`."""
    @property
    def min_value(self) -> int:
        """The smallest value that the expression can take, or `NEG_INF`."""

class ConstraintScope:
    """A context manager that assumes a condition inside its `with` block. Entering the block raises
    `TypeError` if the condition is not one over integers."""
    def __enter__(self) -> None: ...
    def __exit__(self, *exc: Any) -> None: ...

class Device:
    """The device of a tensor, which is always the CPU: `pliant.cpu()`."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ge__(self, value: Any, /) -> Any: ...
    def __gt__(self, value: Any, /) -> Any: ...
    def __hash__(self) -> int: ...
    def __le__(self, value: Any, /) -> Any: ...
    def __lt__(self, value: Any, /) -> Any: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __repr__(self) -> str: ...
    @property
    def device_id(self) -> int:
        """The index of the device, which is always 0."""
    @property
    def device_type(self) -> int:
        """The DLPack device type of the CPU."""
    @property
    def exist(self) -> bool:
        """Whether the device exists, which is always `True`."""
    def sync(self) -> None:
        """Does nothing, because calls return only after their work is done."""

class Div(PrimExpr):
    """The quotient of two values, rounded towards zero for integers."""
    def __new__(cls, a: Any, b: Any, span: Any = None) -> Self: ...

class EQ(PrimExpr):
    """The comparison `a == b`."""
    def __new__(cls, a: Any, b: Any, span: Any = None) -> Self: ...

class ExecBuilder:
    """Builds an executable instruction by instruction. After `get`, most methods raise
    `ValueError`."""
    def __new__(cls) -> Self: ...
    def _begin_function(self, name: str, num_inputs: int, param_names: list[str] | None) -> None: ...
    def _end_function(self) -> None: ...
    def c(self, index: int) -> Operand:
        """The operand for the constant with this index (see `convert_constant`)."""
    def convert_constant(self, value: Any) -> Operand:
        """Adds a constant and returns its operand. The value is an array, shape, number, string,
        data type or `None`. Raises `TypeError` for other values."""
    def emit_call(self, name: str, args: Any = ..., dst: Operand | None = None) -> None:
        """Emits a call of the function `name`. Arguments that are not operands become constants.
        The result is written to the register `dst`, or discarded for `None`."""
    def emit_goto(self, pc_offset: int) -> None:
        """Emits a jump. `pc_offset` is the distance from this instruction to the target, in
        instructions."""
    def emit_if(self, cond: Any, false_offset: int) -> None:
        """Emits a branch. If the register `cond` holds a true value, execution continues with the
        next instruction, otherwise with the instruction at distance `false_offset`.
        """
    def emit_ret(self, result: Operand) -> None:
        """Emits the return of the value in the register `result`."""
    def f(self, name: str) -> Operand:
        """The operand that passes the function `name` as a value to a call."""
    def get(self) -> Executable:
        """Finishes the executable, validates it and returns it. Raises `ExecutableError` if the
        bytecode is invalid."""
    def imm(self, value: Any) -> Operand:
        """The operand for an integer."""
    def r(self, index: int) -> Operand:
        """The operand for the register with this index."""
    def void_arg(self) -> int:
        """The number of the register that discards results."""

class LoopRV:
    """A loop of a function that is being scheduled."""

    def __hash__(self) -> int: ...
    def __eq__(self, other: object) -> bool: ...

class BlockRV:
    """A block of a function that is being scheduled."""

    @property
    def name(self) -> str:
        """The name of the block."""

    def __hash__(self) -> int: ...
    def __eq__(self, other: object) -> bool: ...

class ScheduleState:
    """The functions of a module that is being scheduled. `pliant.tir.Schedule` documents the primitives; all raise
    `ScheduleError`."""

    def __new__(cls, module: IRModule) -> ScheduleState: ...
    @property
    def module(self) -> IRModule:
        """The module in its current state."""

    def copy(self) -> ScheduleState:
        """Returns a copy of the schedule. Loops and blocks of the schedule are valid in the copy, too."""

    def get_block(self, name: str, func_name: str) -> BlockRV:
        """Returns the block with this name in a function. Raises an error if there is none, or several."""

    def get_loops(self, block: BlockRV) -> list[LoopRV]:
        """Returns the loops around a block, outermost first."""

    def get_child_blocks(self, parent: LoopRV | BlockRV) -> list[BlockRV]:
        """Returns the blocks directly inside a loop or block, in program order."""

    def get_producers(self, block: BlockRV) -> list[BlockRV]:
        """Returns the blocks that write buffers which a block uses, and that precede it."""

    def get_consumers(self, block: BlockRV) -> list[BlockRV]:
        """Returns the blocks that use buffers which a block writes, and that follow it."""

    def loop_extent(self, l: LoopRV) -> tuple[str, int | None]:
        """Returns the name of a loop, and its extent if that is constant."""

    def split(self, l: LoopRV, factors: list[int | None], tail: bool) -> list[LoopRV]:
        """Splits a loop into a nest with these extents. One may be `None`, which is inferred. `tail` adds a loop for the remainder."""

    def fuse(self, loops: list[LoopRV]) -> LoopRV:
        """Replaces loops, of which each contains only the next one, by one loop. Returns it."""

    def reorder(self, loops: list[LoopRV]) -> None:
        """Puts loops of one nest into this order."""

    def parallel(self, l: LoopRV) -> None:
        """Distributes the iterations of a loop to the worker threads."""

    def vectorize(self, l: LoopRV) -> None:
        """Makes the iterations of a loop, whose extent must be constant, the lanes of a vector."""

    def unroll(self, l: LoopRV) -> None:
        """Unrolls a loop, whose extent must be constant."""

    def bind(self, l: LoopRV, thread: str) -> None:
        """Always raises an error: CPUs have no thread axes."""

    def annotate(self, what: LoopRV | BlockRV, key: str, value: Any) -> None:
        """Adds an annotation to a loop or block, or replaces its value."""

    def unannotate(self, what: LoopRV | BlockRV, key: str) -> None:
        """Removes an annotation from a loop or block."""

    def compute_inline(self, block: BlockRV) -> None:
        """Computes an elementwise block inside the blocks that read its result."""

    def reverse_compute_inline(self, block: BlockRV) -> None:
        """Computes an elementwise block at the end of the elementwise block that writes its operand."""

    def compute_at(self, block: BlockRV, l: LoopRV) -> None:
        """Moves a block into a loop, in front of the blocks that read its result."""

    def reverse_compute_at(self, block: BlockRV, l: LoopRV) -> None:
        """Moves a block into a loop, behind the block that writes its operand."""

    def cache_read(self, block: BlockRV, index: int, scope: str) -> BlockRV:
        """Copies a buffer that a block reads to memory of a scope, "local" or "global". Returns the block that copies."""

    def cache_write(self, block: BlockRV, index: int, scope: str) -> BlockRV:
        """Lets a block write to memory of a scope, "local" or "global". Returns the block that copies the result back."""

    def set_scope(self, block: BlockRV, index: int, scope: str) -> None:
        """Sets the memory scope of a buffer that a block writes."""

    def decompose_reduction(self, block: BlockRV, l: LoopRV) -> BlockRV:
        """Moves the init of a reduction into a block of its own, in front of a loop. Returns the new block."""

    def rfactor(self, l: LoopRV, factor_axis: int) -> BlockRV:
        """Splits a reduction into one partial result for each iteration of a loop, which another block combines.

        The partial results have the loop as an additional dim at the position `factor_axis`. Returns the block that computes the
        partial results.
        """

    def num_axes(self, block: BlockRV) -> int:
        """Returns the number of axes of a block."""

    def buffer_rank(self, block: BlockRV, buffer: str | tuple[str, int]) -> int:
        """Returns the rank of a buffer that a block reads or writes."""

    def set_axis_separator(self, block: BlockRV, buffer: str | tuple[str, int], separators: list[int]) -> None:
        """Checks the positions of separators between dims of a buffer, which have no effect."""

    def transform_layout(
        self,
        block: BlockRV,
        buffer: str | tuple[str, int],
        inputs: list[PrimExpr],
        outputs: list[PrimExpr],
        pad_value: int | float | None,
    ) -> None:
        """Stores a temporary buffer of a block in the layout that the map from `inputs` to `outputs` describes. `pad_value` fills
        padding."""

    def transform_block_layout(self, block: BlockRV, inputs: list[PrimExpr], outputs: list[PrimExpr]) -> None:
        """Replaces the axes of a block by the outputs of a map of its axes, and the loops around it by loops over the new axes."""

    def reindex(self, block: BlockRV, buffer: str | tuple[str, int]) -> BlockRV:
        """Lets a block access a copy of a buffer whose dims are axes of the block. Returns the block that copies."""

    def pad_einsum(self, block: BlockRV, padding: list[int]) -> None:
        """Rounds the extents of the axes of a block up to multiples of `padding`. New blocks pad the operands and copy the result."""

    def blockize(self, l: LoopRV, preserve_unit_iters: bool) -> BlockRV:
        """Makes a loop with the block in it an outer block. Returns the outer block."""

    def tensorize(
        self, what: LoopRV | BlockRV, name: str, functions: tuple[PrimFunc, PrimFunc], preserve_unit_iters: bool
    ) -> None:
        """Replaces the computation of a block or loop by the implementation of a tensor intrinsic. `functions` are its description
        and its implementation."""

def check_tensor_intrin(name: str, desc: PrimFunc, imp: PrimFunc) -> None:
    """Raises `ScheduleError` unless the description and the implementation of a tensor intrinsic have the same parameters, which
    must be tensors of constant sizes."""

class Executable:
    """A compiled program: bytecode, constants and machine code."""
    def jit(self, **options: Any) -> Executable:
        """The executable itself, whose code is compiled on loading. `options` are ignored."""
    def __new__(cls, mod: Executable) -> Executable: ...  # type: ignore[misc]
    @property
    def mod(self) -> Executable:
        """The executable itself, for code that calls `ex.mod.export_library`."""
    def __repr__(self) -> str: ...
    def as_python(self) -> str:
        """The bytecode as the text of a Python program that uses `ExecBuilder`."""
    def as_text(self) -> str:
        """The bytecode as readable text."""
    def export_library(self, file_name: str | PathLike[str]) -> None:
        """Saves the program to a file, which `pliant.runtime.load_module` and `pliant.load` read.
        Raises `OSError` if the file cannot be written."""
    @staticmethod
    def from_bytes(data: bytes) -> Executable:
        """Reads a program from the bytes that `to_bytes` returned. Raises `ExecutableError` if they
        are damaged, invalid or written by another version."""
    @property
    def function_names(self) -> list[str]:
        """The names of the bytecode functions."""
    @staticmethod
    def load(path: str | PathLike[str]) -> Executable:
        """Reads a program from a file that `export_library` wrote. Raises `OSError` if the file
        cannot be read, and `ExecutableError` if it is damaged, invalid or written by another
        version."""
    @property
    def module(self) -> IRModule | None:
        """The module after the last compiler pass. `None` for a program that was loaded from a file
        or built by hand."""
    def save(self, path: str | PathLike[str]) -> None:
        """The same as `export_library`."""
    def stats(self) -> str:
        """Returns the numbers of functions, constants and registers as a text."""
    def timing(self) -> str:
        """Returns a table with the duration of each compilation phase."""
    def to_bytes(self) -> bytes:
        """The program as bytes, in the format of a saved file."""

class FloatImm(PrimExpr):
    """A float constant."""
    def __new__(cls, dtype: DTypeLike, value: Any, span: Any = None) -> Self: ...

class FloorDiv(PrimExpr):
    """The quotient of two values, rounded towards minus infinity."""
    def __new__(cls, a: Any, b: Any, span: Any = None) -> Self: ...

class FloorMod(PrimExpr):
    """The remainder of a `FloorDiv`."""
    def __new__(cls, a: Any, b: Any, span: Any = None) -> Self: ...

class GE(PrimExpr):
    """The comparison `a >= b`."""
    def __new__(cls, a: Any, b: Any, span: Any = None) -> Self: ...

class GT(PrimExpr):
    """The comparison `a > b`."""
    def __new__(cls, a: Any, b: Any, span: Any = None) -> Self: ...

class IRModule:
    """A module: a mutable table from global names to functions. The functions are immutable, and
    several modules may share them.

    `functions` is a dict from names or `GlobalVar` objects to graph functions and loop functions. Names of
    functions are accepted as strings or `GlobalVar` objects; other objects raise `TypeError`. `mod[name]`
    raises `KeyError` if there is no such function.
    """
    def astext(self, show_meta_data: bool = True) -> str:
        """Returns the module as script text, under the name of Relay's text form."""
    def __new__(cls, functions: Any = None, attrs: Any = None) -> Self: ...
    def __contains__(self, key: Any, /) -> bool: ...
    def __copy__(self) -> IRModule: ...
    def __deepcopy__(self, _memo: Any) -> IRModule: ...
    def __delitem__(self, key: Any, /) -> None: ...
    def __getitem__(self, key: Any, /) -> Any: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __len__(self) -> int: ...
    def __repr__(self) -> str: ...
    def __setitem__(self, key: Any, value: Any, /) -> None: ...
    def __str__(self) -> str: ...
    @property
    def attrs(self) -> Attrs:
        """The attributes of the module."""
    def clone(self) -> IRModule:
        """A new module with the same functions and attributes."""
    @staticmethod
    def from_expr(func: Any) -> IRModule:
        """Creates a module with one function. The name of the function is its global symbol, or
        else the name under which it was parsed, or `main`."""
    @property
    def functions(self) -> dict[GlobalVar, Any]:
        """A new dict from global variables to functions."""
    def functions_items(self) -> list[tuple[GlobalVar, Any]]:
        """Returns the pairs of global variable and function, in definition order."""
    def get(self, name: Any, default: Any = None) -> Any:
        """The function with this name, or `default` if there is none."""
    def get_attr(self, attr_key: str) -> Any:
        """The value of an attribute, or `None` if the module does not have it."""
    def get_attrs(self) -> Attrs:
        """The attributes of the module, as for the property `attrs`."""
    def get_global_var(self, name: str) -> GlobalVar:
        """The global variable with this name. Raises `KeyError` if there is no such function."""
    def get_global_vars(self) -> list[GlobalVar]:
        """Returns the global variables of all functions, in definition order."""
    @property
    def global_infos(self) -> dict[str, Any]:
        """Always an empty dict. Programs written for TVM read lists of devices here."""
    def items(self) -> list[tuple[GlobalVar, Any]]:
        """The same as `functions_items`."""
    def keys(self) -> list[GlobalVar]:
        """The same as `get_global_vars`."""
    def replace_global_vars(self, replacements: dict[Any, Any]) -> IRModule:
        """Returns a copy of the module with renamed functions. Calls of these functions use the new names. `replacements` maps
        old names or `GlobalVar` objects to new ones.

        Raises `KeyError` for an unknown function, and `CompileError` if two functions would have
        the same name.
        """
    def script(self, *, name: str | None = None, show_meta: bool = False, **options: Any) -> str:
        """The module as script text. `name` is the name of the class in the text. Large constants
        are included, so that the text parses back, only with `show_meta`."""
    def show(self, style: str | None = None, black_format: bool | None = None) -> None:
        """Prints the script, with colours on a terminal. The style `"none"` disables colours, and
        `black_format` is ignored."""
    def update(self, other: Any) -> None:
        """Adds the functions of another module or of a dict. Functions with the same names are
        replaced. Raises `TypeError` for other objects."""
    def update_func(self, var: Any, func: Any) -> None:
        """Adds a function, or replaces the function with this name."""
    def values(self) -> list[Any]:
        """Returns the functions, in definition order."""
    def with_attr(self, attr_key: Any, attr_value: Any = None) -> IRModule:
        """A copy of the module with one more attribute, or with all attributes of a dict. Functions
        are shared. Raises `TypeError` for a value that cannot be an attribute."""
    def with_attrs(self, attr_map: dict[str, Any]) -> IRModule:
        """A copy of the module with all attributes of a dict added."""
    def without_attr(self, attr_key: str) -> IRModule:
        """A copy of the module without an attribute."""

class InputInfo:
    """The type of an input or output of a model."""
    def __repr__(self) -> str: ...
    @property
    def dtype(self) -> str | None:
        """The data type of the input or output, or `None` if it is not known at compile time."""
    @property
    def name(self) -> str:
        """The name of the input or output. Empty for an output without a name."""
    @property
    def shape(self) -> tuple[int | str, ...] | None:
        """The dims of the input or output: an int for a constant size, and the expression as a
        string for a symbolic size. `None` if the dims are not known at compile time.
        """
    @property
    def struct_info(self) -> str:
        """The type of the input or output in script syntax, such as `R.Tensor(("n", 4),
        dtype="float32")`.
        """

class IntImm(PrimExpr):
    """An integer constant. Raises `ValueError` if the data type cannot represent the value."""
    def __new__(cls, dtype: DTypeLike, value: Any, span: Any = None) -> Self: ...

class IterVar(PrimExpr):
    """An axis of a stage or block: a variable and the range of its values. An axis can be used like
    its variable in expressions.

    `dom` is a `Range` or a pair `(begin, end)`, and `var` is a variable or the name of a new one.
    Raises `UnsupportedError` for a `thread_tag`, and `ValueError` for an unknown `iter_type`.
    """
    def __new__(cls, dom: Any, var: Any, iter_type: int = 0, thread_tag: str = '', span: Any = None) -> Self: ...
    CommReduce: int
    """An axis of a block that is reduced."""
    DataPar: int
    """An axis of a block with independent iterations."""
    Opaque: int
    """An axis of a block without any guarantees."""
    Ordered: int
    """An axis of a block whose iterations are executed in order."""
    def __repr__(self) -> str: ...
    @property
    def dom(self) -> Range:
        """The range of the axis."""
    @property
    def iter_type(self) -> int:
        """The kind of the axis: `DataPar`, `CommReduce` or `Opaque`. An axis that was created as
        `Ordered` is `Opaque`."""
    @property
    def kind(self) -> str:
        """The kind of the axis as a letter: `"S"` (spatial), `"R"` (reduced) or `"O"` (opaque)."""
    @property
    def thread_tag(self) -> str:
        """Always empty, because axes are not bound to threads."""
    @property
    def var(self) -> Var:
        """The variable of the axis."""

class LE(PrimExpr):
    """The comparison `a <= b`."""
    def __new__(cls, a: Any, b: Any, span: Any = None) -> Self: ...

class LT(PrimExpr):
    """The comparison `a < b`."""
    def __new__(cls, a: Any, b: Any, span: Any = None) -> Self: ...

class Max(PrimExpr):
    """The maximum of two values."""
    def __new__(cls, a: Any, b: Any, span: Any = None) -> Self: ...

class Min(PrimExpr):
    """The minimum of two values."""
    def __new__(cls, a: Any, b: Any, span: Any = None) -> Self: ...

class Mod(PrimExpr):
    """The remainder of an integer `Div`."""
    def __new__(cls, a: Any, b: Any, span: Any = None) -> Self: ...

class Model:
    """A compiled model. `model(x)` runs its entry function with inputs of any valid shape: the
    function `main`, or the only graph function.

    Inputs are passed by position or by name. `model(x, timeout=0.5)` stops a run that takes longer
    than 0.5 seconds with a `TimeLimitError`. `cancel` is a `CancelToken` that stops the run from
    another thread. `out` has arrays to which the results are copied, one or a tuple with an array or
    `None` for each result. `model[name]` is another function of the model. A call
    raises `CallError`, `ShapeError` or `DTypeError` for invalid inputs, and `TypeError` for unknown
    names of inputs and for a model without an entry function.
    """
    def __contains__(self, key: Any, /) -> Any: ...
    def __new__(cls, executable: Executable, shapes: str | None = None) -> Self: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def __getitem__(self, key: Any, /) -> Any: ...
    def __repr__(self) -> str: ...
    @property
    def executable(self) -> Executable:
        """The compiled executable that the model runs."""
    @property
    def function_names(self) -> list[str]:
        """The names of the graph functions."""
    @property
    def inputs(self) -> list[InputInfo]:
        """The inputs of the entry function, in order."""
    @property
    def input_names(self) -> list[str]:
        """The names of the inputs. For an imported model, these are the names in the model file; otherwise, they are the names of
        the parameters."""
    @property
    def output(self) -> InputInfo | None:
        """The output of the entry function, or `None` if the model has no entry function."""
    @property
    def output_names(self) -> list[str]:
        """The names of the outputs in the model file. Empty for a model that was not imported."""
    def explain(self) -> str:
        """A text that states which operators run in library kernels, which run in generated loops
        and why, and which loops are slow. A model that was loaded from a file cannot be explained,
        and the text says so."""
    def explain_shapes(self) -> None:
        """Prints the symbols of the inputs and the dims in which they occur. For an imported model,
        prints the importer's report: the ranges of the symbols and the nodes that constrain
        them."""
    @property
    def narrow_outputs(self) -> list[str]:
        """For each output of an imported model, the name of its element type in the package `ml_dtypes` if the type has fewer than
        8 bits or is an 8-bit float, or `""`. The model returns such outputs as 8-bit integers. Empty if there are none."""
    def profile(
        self,
        *args: Any,
        runs: int = 10,
        timeout: float | None = None,
        cancel: CancelToken | None = None,
        warm_up: bool = True,
        **kwargs: Any,
    ) -> Profile:
        """Measures which functions take the time. Runs the model once to warm up, unless `warm_up` is
        `False`, and `runs` times for the measurement, with the given inputs.

        `timeout` is the time limit of each run in seconds, and `cancel` stops the runs from another
        thread. During a profile, runs on other threads
        are slower. Raises `ValueError` if `runs` is 0.
        """
    def export_library(self, file_name: str | PathLike[str]) -> None:
        """The same as `save`, under TVM's name."""
    def run(
        self,
        output_names: Sequence[str] | None,
        feeds: dict[str, Any],
        *,
        out: Any = None,
        timeout: float | None = None,
        cancel: CancelToken | None = None,
    ) -> list[Any]:
        """Runs the model on inputs by name and returns a list of NumPy arrays. The method is
        compatible with `run` of an ONNX Runtime session.

        `output_names` selects the outputs; `None` selects all. A sequence is returned as a list of
        arrays. `out` has an array or `None` for each requested output; the outputs are copied to the
        arrays, which are returned. A run that takes longer than `timeout` seconds raises `TimeLimitError`. Raises
        `ValueError` for missing inputs and for unknown inputs or outputs.
        """
    def save(self, path: str | PathLike[str]) -> None:
        """Saves the model to a file, which `pliant.load` reads. Raises `OSError` if the file cannot
        be written."""
    def stats(self) -> ModelStats:
        """Statistics of the model: compilations, runs and compile time."""
    def wait_optimized(self) -> None:
        """Waits until the background compilation of the model with LLVM has finished.

        The background compilation skips loop functions without loops and very large ones. Returns
        immediately if there is no background compilation: in builds without LLVM, with another
        target than ``"auto"``, and in a forked child process.
        """

class ModelStats:
    """Statistics of a model: its compilations, runs, compile time and functions."""
    def __repr__(self) -> str: ...
    @property
    def compilations(self) -> int:
        """The number of programs that were compiled for the model.

        It is 1 for the model itself, which is compiled or loaded once for all shapes, plus the
        number of programs that runs compiled. A run compiles an operator or ONNX node whose ranks
        or types are known only at run time, once for each combination of ranks and data types, and
        of sizes and values if the operator needs them to be known. The run reuses a program that
        another model compiled.
        """
    @property
    def compile_seconds(self) -> float:
        """The duration of the compilation in seconds."""
    @property
    def functions(self) -> int:
        """The number of graph functions."""
    @property
    def kernels(self) -> int:
        """The number of loop functions that were compiled to machine code. Kernels of the library are
        not counted, in spite of the name."""
    @property
    def phases(self) -> list[tuple[str, float]]:
        """The name of each compilation phase and its duration in seconds."""
    @property
    def runs(self) -> int:
        """The number of runs of the model's functions."""
    @property
    def tier(self) -> str:
        """The code generator whose code runs: ``"cranelift"``, or ``"llvm"`` once LLVM has compiled
        all loop functions, except functions without loops and very large ones."""

class ModularSet:
    """The set of the integers `coeff * k + base` for all integers `k`. If `coeff` is 0, the set
    contains only `base`."""
    def __new__(cls, coeff: int, base: int) -> Self: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ge__(self, value: Any, /) -> Any: ...
    def __gt__(self, value: Any, /) -> Any: ...
    def __hash__(self) -> int: ...
    def __le__(self, value: Any, /) -> Any: ...
    def __lt__(self, value: Any, /) -> Any: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __repr__(self) -> str: ...
    @property
    def base(self) -> int:
        """The smallest non-negative element of the set, or the only element if `coeff` is 0."""
    @property
    def coeff(self) -> int:
        """The distance between neighbouring elements of the set."""

class Mul(PrimExpr):
    """The product of two values."""
    def __new__(cls, a: Any, b: Any, span: Any = None) -> Self: ...

class NDArray:
    """A tensor in host memory.

    NumPy and other libraries access the memory through the buffer protocol or DLPack without a
    copy. Indexing returns and accepts NumPy arrays.
    """
    def astype(self, dtype: str) -> NDArray:
        """Returns a copy with the elements converted to another data type."""
    @property
    def ctx(self) -> Device:
        """The device, under its name in older versions of TVM."""
    def is_contiguous(self) -> bool:
        """Whether the elements are in row-major order without gaps."""
    def same_as(self, other: object) -> bool:
        """Whether both are the same object."""
    def to_dlpack(self) -> Any:
        """Returns the tensor as a DLPack capsule, without a copy."""
    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Any: ...
    def __bool__(self) -> bool: ...
    def __delitem__(self, key: Any, /) -> None: ...
    def __dlpack__(self, *, stream: Any = None, max_version: tuple[int, int] | None = None, dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def __float__(self) -> float: ...
    def __getitem__(self, key: Any, /) -> Any: ...
    def __int__(self) -> int: ...
    def __len__(self) -> int: ...
    def __repr__(self) -> str: ...
    def __setitem__(self, key: Any, value: Any, /) -> None: ...
    def asnumpy(self) -> numpy.ndarray[Any, Any]:
        """The same as `numpy`, under an older name of TVM."""
    def copy(self) -> NDArray:
        """Returns a copy with separate memory."""
    def copyfrom(self, source: Any) -> NDArray:
        """Copies elements into this array and returns it. `source` is an array-like object that
        broadcasts to the shape of this array, as in a NumPy assignment. Raises `ValueError` if this
        array is read-only."""
    def copyto(self, target: Any) -> Any:
        """Copies the elements into `target` and returns it. If `target` is not an `NDArray`, such
        as a device, returns a new array. Raises `ValueError` if `target` is read-only."""
    @property
    def device(self) -> Device:
        """The device of the array, which is the CPU."""
    @property
    def dtype(self) -> str:
        """The data type of the elements as a string."""
    def item(self) -> Any:
        """Returns the element of an array with one element as a Python number. Raises `ValueError`
        for other arrays.
        """
    @property
    def nbytes(self) -> int:
        """The size of the elements in bytes."""
    @property
    def ndim(self) -> int:
        """The rank (number of dims) of the array."""
    def numpy(self) -> numpy.ndarray[Any, Any]:
        """Returns a NumPy array that shares the memory. It is read-only if this array is. Raises
        `UnsupportedError` for bfloat16 elements if the package `ml_dtypes` is not installed.
        """
    @property
    def read_only(self) -> bool:
        """Whether the elements cannot be changed. Constants and memory-mapped weights are
        read-only."""
    @property
    def shape(self) -> tuple[int, ...]:
        """The dims of the array."""
    @property
    def size(self) -> int:
        """The number of elements of the array."""
    @property
    def strides(self) -> tuple[int, ...]:
        """The strides of the array in elements, one for each dim."""
    def to(self, device: Any) -> NDArray:
        """Returns the array itself, because all memory is host memory. `device` is ignored."""

class NE(PrimExpr):
    """The comparison `a != b`."""
    def __new__(cls, a: Any, b: Any, span: Any = None) -> Self: ...

class Not(PrimExpr):
    """The logical negation of a condition."""
    def __new__(cls, a: Any, span: Any = None) -> Self: ...

class Object:
    """A VM value without a Python representation. Python code can only pass it on."""
    def __repr__(self) -> str: ...

class Operand:
    """An operand of an instruction of `ExecBuilder`: a register, an integer, a constant or a
    function."""

class Operation:
    """The operation that produces a tensor: a placeholder or a stage."""
    def __repr__(self) -> str: ...
    @property
    def axis(self) -> list[IterVar]:
        """The axes of the output of a `ComputeOp`. Empty for other operations."""
    @property
    def body(self) -> list[PrimExpr]:
        """The formula of a `ComputeOp`, in a list. Empty for other operations."""
    @property
    def input_tensors(self) -> list[Tensor]:
        """The tensors that a stage reads."""
    @property
    def name(self) -> str:
        """The name of the operation."""
    @property
    def num_outputs(self) -> int:
        """The number of tensors that the operation produces."""
    def output(self, index: int) -> Tensor:
        """Returns the output tensor with this index. Raises `IndexError` if there is none."""
    @property
    def reduce_axis(self) -> list[IterVar]:
        """The axes over which a `ComputeOp` reduces. Empty for other operations."""

class PlaceholderOp(Operation):
    """A placeholder, for a tensor that the caller passes."""

class ComputeOp(Operation):
    """A stage that computes each element by a formula."""

class ExternOp(Operation):
    """A stage that consists of statements or of a call."""

class ScanOp(ExternOp):
    """A scan: a stage that computes each row of its states from earlier rows."""

class TupleReduction:
    """The result of a reducer of several values. `reduction[i]` is the reduction of value `i`."""
    def __getitem__(self, key: int, /) -> TupleReduction: ...
    def __len__(self) -> int: ...

class Or(PrimExpr):
    """The logical or of two conditions."""
    def __new__(cls, a: Any, b: Any, span: Any = None) -> Self: ...

class PackedFunction:
    """A function that Python code can call: a registered packed function, a built-in function of
    the VM, or a function of a program.

    `timeout` is the time limit of a function of a program in seconds. A run that exceeds it raises
    `TimeLimitError`.
    """
    def __call__(self, *args: Any, timeout: float | None = None) -> Any: ...
    def __repr__(self) -> str: ...
    @property
    def name(self) -> str:
        """The name of the function."""

class PrimFunc:
    """A loop function. Immutable; two functions are equal only if they are the same object.

    `params` are variables. A tensor parameter is a handle, and `buffer_map` maps it to its buffer.
    `body` is a statement of `pliant.tir.stmt`, and `ret_type` is ignored. Raises `ValueError` if
    the function is not well-formed.
    """
    @property
    def span(self) -> None:
        """Always `None`."""
    def __new__(cls, params: Any, body: Any, ret_type: Any = None, buffer_map: Any = None, attrs: Any = None) -> Self: ...
    def __copy__(self) -> Self: ...
    def __deepcopy__(self, _memo: Any) -> Self: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ge__(self, value: Any, /) -> Any: ...
    def __gt__(self, value: Any, /) -> Any: ...
    def __hash__(self) -> int: ...
    def __le__(self, value: Any, /) -> Any: ...
    def __lt__(self, value: Any, /) -> Any: ...
    @property
    def __name__(self) -> str: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __repr__(self) -> str: ...
    def __str__(self) -> str: ...
    @property
    def attrs(self) -> Attrs:
        """The attributes of the function. The attribute `global_symbol` is the name of a function
        that is not private.
        """
    @property
    def is_private(self) -> bool:
        """Whether the function is visible only in its module."""
    @property
    def body(self) -> Any:
        """The body of the function, which is a statement of `pliant.tir.stmt`."""
    @property
    def buffer_map(self) -> Any:
        """A dict from the handles of the tensor parameters to their buffers."""
    def with_body(self, new_body: Any) -> PrimFunc:
        """A function with another body. Raises `ValueError` if it would not be well-formed,
        `TypeError` if an object in the body is not a statement, and `UnsupportedError` for
        unsupported kinds of loops and blocks."""
    @property
    def params(self) -> Any:
        """The parameters of the function."""
    @property
    def ret_type(self) -> None:
        """Always `None`, because loop functions return nothing."""
    def same_as(self, other: Any) -> bool:
        """Whether both are the same function object."""
    def script(self, *, name: str | None = None, show_meta: bool = False, **options: Any) -> str:
        """Returns the function as script text. `name` is its name in the text, by default its own
        name. `show_meta` has no effect, because loop functions contain no large constants.
        """
    def show(self, style: str | None = None, black_format: bool | None = None) -> None:
        """Prints the function as a script, with colours on a terminal. The style `"none"` disables
        colours, and `black_format` is ignored.
        """
    def with_attr(self, attr_key_or_dict: Any, attr_value: Any = None) -> PrimFunc:
        """A function with one more attribute, or with all attributes of a dict. A private function
        that gets a `global_symbol` becomes public. Raises `TypeError` for a value that cannot be an
        attribute."""
    def with_attrs(self, attr_map: dict[str, Any]) -> PrimFunc:
        """Returns a copy with all attributes of a dict added."""
    def without_attr(self, attr_key: str) -> PrimFunc:
        """Returns a copy without the attribute `attr_key`. A copy without `global_symbol` is private."""

class PrimFuncBody:
    """The body of a loop function as Python objects, and the mapping from these objects to the
    variables and buffers of the function."""
    @property
    def body(self) -> Any:
        """The body of the function, which is a statement of `pliant.tir.stmt`."""
    @property
    def buffer_map(self) -> Any:
        """A dict from the handles of the tensor parameters to their buffers."""
    @property
    def params(self) -> Any:
        """The parameters of the function."""

class ProducerLoad(PrimExpr):
    """The element of a buffer or tensor at some indices. Raises `IndexError` if the number of
    indices is not the rank, and `UnsupportedError` for a `predicate`."""
    def __new__(cls, buffer: Any, indices: Any, predicate: Any = None, span: Any = None) -> Self: ...

class Ramp(PrimExpr):
    """The vector `base, base + stride, ...` with `lanes` elements. Raises `ValueError` for fewer
    than two lanes."""
    def __new__(cls, base: Any, stride: Any, lanes: int) -> Self: ...
    @property
    def base(self) -> PrimExpr:
        """The value of the first lane."""
    @property
    def lanes(self) -> int:
        """The number of lanes (elements) of the vector."""
    @property
    def stride(self) -> PrimExpr:
        """The difference between neighbouring lanes."""

class Range:
    """A range of integers. `Range(end)` and `Range(begin, end)` contain the same integers as
    Python's `range`."""
    def __new__(cls, begin: Any, end: Any = None) -> Self: ...
    def __repr__(self) -> str: ...
    @property
    def extent(self) -> PrimExpr:
        """The number of integers in the range."""
    @staticmethod
    def from_min_extent(min_value: Any, extent: Any) -> Range:
        """Creates the range of `extent` integers that starts at `min_value`."""
    @property
    def min(self) -> PrimExpr:
        """The first integer of the range."""

class Reduce(PrimExpr):
    """A reduction over axes. `te.sum`, `te.max` and the reducers of `te.comm_reducer` create
    reductions."""

class Select(PrimExpr):
    """One of two values, depending on a condition. Both values are evaluated."""
    def __new__(cls, condition: Any, true_value: Any, false_value: Any, span: Any = None) -> Self: ...

class ShapeTuple:
    """A shape as a run-time value: an immutable sequence of ints. It is equal to tuples and lists
    with the same dims."""
    def __new__(cls, shape: Any) -> Self: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ge__(self, value: Any, /) -> Any: ...
    def __getitem__(self, key: Any, /) -> Any: ...
    def __gt__(self, value: Any, /) -> Any: ...
    def __hash__(self) -> int: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __le__(self, value: Any, /) -> Any: ...
    def __len__(self) -> int: ...
    def __lt__(self, value: Any, /) -> Any: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __repr__(self) -> str: ...
    @property
    def shape(self) -> tuple[int, ...]:
        """Returns the dims of the shape as a tuple."""

class Var(PrimExpr):
    """A variable. `dtype` is int64 by default, `"handle"` for an address, or an `ir.PrimType` or
    `ir.PointerType`."""
    @property
    def type_annotation(self) -> Any:
        """The type of the variable."""
    def __new__(cls, name: str = 'tindex', dtype: Any = None, span: Any = None) -> Self: ...

class SizeVar(Var):
    """A variable that is a size: its value is not negative."""
    def __new__(cls, name: str = 'size', dtype: Any = None, span: Any = None) -> Self: ...

class StringImm(PrimExpr):
    """A string constant, as an argument of a call."""
    def __new__(cls, value: str, span: Any = None) -> Self: ...

class Sub(PrimExpr):
    """The difference of two values."""
    def __new__(cls, a: Any, b: Any, span: Any = None) -> Self: ...

class Tensor:
    """A tensor of a tensor expression: a placeholder, or an output of a stage.

    `A[i, j]` and `A(i, j)` are elements. Arithmetic operators create elementwise stages with
    broadcasting.
    """
    def __add__(self, value: Any, /) -> Any: ...
    def __bool__(self) -> bool: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ge__(self, value: Any, /) -> Any: ...
    def __getitem__(self, key: Any, /) -> Any: ...
    def __gt__(self, value: Any, /) -> Any: ...
    def __hash__(self) -> int: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __le__(self, value: Any, /) -> Any: ...
    def __len__(self) -> int: ...
    def __lt__(self, value: Any, /) -> Any: ...
    def __mul__(self, value: Any, /) -> Any: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __neg__(self) -> Any: ...
    def __radd__(self, value: Any, /) -> Any: ...
    def __repr__(self) -> str: ...
    def __rmul__(self, value: Any, /) -> Any: ...
    def __rsub__(self, value: Any, /) -> Any: ...
    def __rtruediv__(self, value: Any, /) -> Any: ...
    def __sub__(self, value: Any, /) -> Any: ...
    def __truediv__(self, value: Any, /) -> Any: ...
    @property
    def dtype(self) -> str:
        """The data type of the elements as a string."""
    @property
    def name(self) -> str:
        """The name of the tensor."""
    @property
    def ndim(self) -> int:
        """The rank (number of dims) of the tensor."""
    @property
    def op(self) -> Operation:
        """The operation that produces the tensor."""
    @property
    def shape(self) -> tuple[PrimExpr, ...]:
        """The dims of the tensor."""
    @property
    def value_index(self) -> int:
        """The index of the tensor among the outputs of its operation."""

class VMFunction:
    """One function of a VM. Calling it runs the function.

    A run that takes longer than `timeout` seconds raises `TimeLimitError`.
    """
    def __call__(self, *args: Any, timeout: float | None = None) -> Any: ...
    @property
    def __name__(self) -> str: ...
    def __repr__(self) -> str: ...
    @property
    def params(self) -> list[str]:
        """The names of the function's parameters."""

class Profile:
    """The time of some runs of a function, split by the functions that they called. `print` shows
    it as a table."""
    def __repr__(self) -> str: ...
    def __str__(self) -> str: ...
    @property
    def calls(self) -> list[dict[str, Any]]:
        """Returns one dict for each called function, the slowest first. Its keys are `name`,
        `calls` (number of calls in all runs), `seconds` (their time), `gflops` (10^9
        floating-point operations of library kernels per second, 0 for generated loops),
        `percent_of_peak` (these operations relative to the peak rate of the machine),
        `gigabytes` (10^9 bytes of the tensors passed to loop functions per second, 0 for other
        functions) and `locations` (the ONNX nodes or source lines that the calls compute).
        """
    @property
    def events(self) -> list[dict[str, Any]]:
        """Returns one dict for each call of the last run, in the order in which they ended. Its keys are `name`, `kind` (`"loops"`,
        `"builtin"` or `"packed"`), `start` (seconds since the start of the run), `seconds`, `flops`, `bytes`, `location` (the ONNX
        nodes or source lines, or `""`), `tensors` (the types of the tensors among the arguments) and `memory` (the bytes of all
        tensors of the process at the end of the call)."""
    @property
    def result(self) -> Any:
        """The result of the last run."""
    def _repr_html_(self) -> str: ...
    def save_trace(self, path: str | PathLike[str]) -> None:
        """Writes the calls of the last run as a trace, which Perfetto (ui.perfetto.dev) and Chrome show. Raises `OSError` if the
        file cannot be written."""
    def to_json(self) -> str:
        """Returns the profile as JSON text: `runs`, `seconds`, `peak_gflops`, `calls` and `events`."""
    @property
    def runs(self) -> int:
        """The number of measured runs."""
    @property
    def seconds(self) -> float:
        """The time of all measured runs in seconds, including the overhead of profiling."""
    def table(self, top: int | None = None) -> str:
        """Returns the profile as a table of the `top` slowest functions. `None` selects all
        functions.
        """

class VirtualMachine:
    """Runs the functions of an executable with inputs of any valid shape, from any thread.
    `vm[name]` raises `KeyError` if there is no such function."""
    max_depth: int
    """The maximum depth of calls between the program's functions. A new value applies from the next
    call. A value below 1 raises `ValueError`."""
    def __new__(cls, rt_mod: Executable, device: Any = None, memory_cfg: Any = None, profile: bool = False, functions: Any = None, max_depth: int | None = None) -> Self: ...
    def __contains__(self, key: Any, /) -> bool: ...
    def __getitem__(self, key: Any, /) -> Any: ...
    def __repr__(self) -> str: ...
    def _time(self, func_name: str, args: Any, number: int, repeat: int, min_repeat_ms: float) -> list[float]:
        """Measures `func_name(*args)` `repeat` times. Each result is the mean duration of `number`
        runs in seconds, or of more runs if these take less than `min_repeat_ms`."""
    def _time_stateful(self, func_name: str, number: int, repeat: int, min_repeat_ms: float) -> list[float]:
        """Like `_time`, with the arguments that `set_input` stored."""
    @property
    def function_names(self) -> list[str]:
        """The names of the functions that the VM can run."""
    def get_function_arity(self, func_name: str) -> int:
        """The number of parameters of a function. Raises `KeyError` if there is no such
        function."""
    def get_function_param_name(self, func_name: str, index: int) -> str:
        """The name of a parameter of a function. Raises `KeyError` if there is no such function,
        and `IndexError` if it has no such parameter."""
    def get_outputs(self, func_name: str) -> Any:
        """The result of the last `invoke_stateful` of a function. Raises `VMError` if there is
        none."""
    def invoke_closure(self, closure: PackedFunction, *args: Any, timeout: float | None = None) -> Any:
        """Calls a closure that a function of this VM returned. A run that takes longer than
        `timeout` seconds raises `TimeLimitError`."""
    def invoke_stateful(self, func_name: str, *, timeout: float | None = None) -> None:
        """Calls a function with the arguments that `set_input` stored, and stores the result for
        `get_outputs`.

        A run that takes longer than `timeout` seconds raises `TimeLimitError`. Raises `VMError` if
        no arguments are stored.
        """
    def profile(self, func_name: str, *args: Any, runs: int = 1, timeout: float | None = None) -> Profile:
        """Measures which functions take the time of `func_name(*args)`. Calls it once to warm up
        and `runs` times for the measurement.

        `timeout` is the time limit of each run in seconds. The instrument of the VM is removed.
        Raises `ValueError` if `runs` is 0.
        """
    def set_input(self, func_name: str, *args: Any, **kwargs: Any) -> None:
        """Stores arguments, by position or by name, for `invoke_stateful`. Raises `KeyError` for an
        unknown function, `TypeError` for an unknown or missing parameter, and `CallError` for a
        wrong number of arguments."""
    def set_instrument(self, instrument: Callable[..., Any] | None) -> None:
        """Sets a function that is called before and after each call inside the program. `None`
        removes it.

        The function is called as `instrument(function, callee, before, result,
        *args)`. `function` and `callee` are the names of the calling and the called function.
        `before` is true before the call and false after it. `result` is `None` before the call, and
        after a call of a bytecode function. If the function returns
        `VMInstrumentReturnKind.SKIP_RUN` before a call, the call is skipped. An exception in the
        function is reported by `sys.unraisablehook`, and the run continues.
        """

def array(arr: Any, device: Any = None, dtype: DTypeLike | None = None) -> NDArray:
    """Creates an array with a copy of the elements of an array-like object. By default, the array has the data type of the
    object; Python floats become float32, and ints int64. `device` is ignored.

    Raises `TypeError` for an object that is not array-like, and `DTypeError` for an unsupported
    data type.
    """

def set_memory_limit(bytes: int | None) -> None:
    """Sets the maximum number of bytes that Pliant's tensors may take at a time. With `None`, the
    limit follows the available memory."""

def memory_state() -> tuple[int | None, int]:
    """Returns the memory limit that was set, or `None`, and the number of bytes held now."""

def build_info() -> dict[str, Any]:
    """Returns the version and the build configuration of this extension: `version`, `profile`,
    `target`, `backends` and `rust`."""

def cli_main(argv: list[str]) -> int:
    """Runs the command `pliant` and returns its exit status. The first argument is the name of the
    program."""

def compile_module(module: IRModule, kwargs: Any) -> Executable:
    """Compiles a module. `kwargs` are the options of `pliant.compile` and the pass context.

    Raises `CompileError` if the module does not compile, and `TypeError` or `ValueError` for an
    invalid option.
    """

def machine_peak_gflops() -> float:
    """Returns the peak rate of the machine in 10^9 floating-point operations per second, for float32 with all threads. The first call
    measures it."""

def cpu(dev_id: int = 0) -> Device:
    """Returns the CPU. Raises `ValueError` for an index other than 0."""

def device(dev: str, dev_id: int = 0) -> Device:
    """Returns the device with this name: `"cpu"`, `"llvm"`, `"c"` or `"cpu:0"`. Raises
    `UnsupportedError` for other kinds of devices, and `ValueError` for an index other than 0."""

def empty(shape: Any, dtype: DTypeLike | None = None, device: Any = None) -> NDArray:
    """Creates an array of zeros. The default data type is float32. `device` is ignored."""

def explore_module(
    module: IRModule, kwargs: Any, title: str, args: tuple[Any, ...] | None = None, runs: int = 10
) -> str:
    """Compiles a module with the options of `compile_module`, and returns an HTML page that shows the compilation. If `args` is not
    `None`, the page also shows the times of `runs` runs of the entry function with these arguments."""

def export_library(
    executable: Executable,
    path: str,
    emit: str,
    target: tuple[str, str | None, str | None],
    runtime_library: str | None,
) -> None:
    """Writes a program with its machine code to a file of the kind `emit`, as
    `pliant.export_library` does. `target` contains the code generator, the CPU and the target
    triple."""

def from_dlpack(obj: Any) -> NDArray:
    """Creates an array that shares the memory of a DLPack capsule, or of an object with
    `__dlpack__` or the buffer protocol.

    Raises `TypeError` for other objects, `ValueError` for a capsule that was already consumed, and
    `DTypeError` or `UnsupportedError` for unsupported elements, devices and layouts.
    """

def has_reshape_pattern(func: PrimFunc) -> bool:
    """Whether a loop function provably only reshapes its input."""

def highlight_script(text: str) -> str:
    """Adds terminal colours to script text."""

class OnnxFile:
    """A decoded ONNX model file, before any conversion. `import_onnx` accepts it as its source."""

    def __new__(cls, source: str | bytes, limits: dict[str, Any] | None = None) -> Self:
        """Maps and decodes a file, or decodes the bytes of a model. Raises `CompileError` if it is not an ONNX model or exceeds
        a limit."""

    @property
    def inputs(self) -> list[OnnxValueInfo]:
        """The inputs of the graph that have no initializer, in the order of the file."""

    @property
    def outputs(self) -> list[OnnxValueInfo]:
        """The outputs of the graph, in the order of the file."""

    @property
    def overridable_initializers(self) -> list[OnnxValueInfo]:
        """The inputs of the graph that have an initializer, which is their default."""

    @property
    def initializer_names(self) -> list[str]:
        """The names of all initializers, dense and sparse."""

    @property
    def ir_version(self) -> int:
        """The version of the file format."""

    @property
    def opset_imports(self) -> dict[str, int]:
        """The imported versions of operator sets, by domain."""

    @property
    def producer_name(self) -> str:
        """The name of the exporter."""

    @property
    def producer_version(self) -> str:
        """The version of the exporter."""

    @property
    def domain(self) -> str:
        """The namespace of the model."""

    @property
    def model_version(self) -> int | None:
        """The version of the model; `None` if the file does not state it."""

    @property
    def doc_string(self) -> str:
        """The documentation of the model."""

    @property
    def graph_name(self) -> str:
        """The name of the main graph."""

    @property
    def graph_doc_string(self) -> str:
        """The documentation of the main graph."""

    @property
    def metadata_props(self) -> dict[str, str]:
        """The custom properties of the model."""

class OnnxValueInfo:
    """An input, output or initializer, as a model file declares it."""

    @property
    def name(self) -> str:
        """The name in the file."""

    @property
    def type(self) -> str:
        """The type, such as `tensor(float)`; empty if the file declares none."""

    @property
    def shape(self) -> list[int | str | None] | None:
        """The dims of a tensor: sizes, names of symbols, or `None` for unknown sizes. `None` if the file declares no shape."""

    @property
    def denotations(self) -> list[str]:
        """What each dim means, such as `DATA_BATCH`; empty texts if the file does not declare it."""

def import_onnx(source: str | bytes | OnnxFile, keep_params: bool = False, shapes: dict[str, list[int | str]] | None = None, dtypes: dict[str, Any] | None = None, limits: dict[str, Any] | None = None, facts: dict[str, Any] | None = None) -> tuple[IRModule, dict[str, NDArray], list[str], list[str], tuple[str, list[str]]]:
    """Imports an ONNX model from a path, from bytes or from an `OnnxFile`, which has its own limits.
    Returns the module, its parameters by name, the names of the inputs, the names of the outputs, and a report on shapes: a text on the
    symbols, and warnings.

    `shapes` and `dtypes` override the dims and element types of inputs. `facts` declares dims and
    divisors. `pliant.frontend.onnx.from_onnx` describes these arguments. Raises `CompileError` for
    a file that violates ONNX's rules or exceeds a limit, and `UnsupportedError` for unsupported
    features.
    """

def check_onnx(source: str | bytes | OnnxFile, reduce: str | PathLike[str] | None = None, limits: dict[str, Any] | None = None, allow_specialization: bool = False, strict: bool = False) -> tuple[list[tuple[str, str, str, str | None, list[str]]], dict[str, int], str, list[PathLike[str]]]:
    """Checks an ONNX model. Returns its findings, its operators with their counts, the report as
    text, and the paths of the reduced models, which are written into the directory `reduce`. Raises
    `CompileError` if the file is not an ONNX model or exceeds a limit."""

def onnx_operators() -> list[tuple[str, str]]:
    """Returns the domain and name of each operator that can be imported."""

def interpret(module: IRModule, func: str, *args: Any) -> Any:
    """Runs a function of a module in the reference interpreter. The function may call registered
    packed functions. Raises `VMError` if the run fails."""

def module_input_problems(module: IRModule) -> list[str]:
    """The violations of TVM's rules in the functions from which a module was created, one line each.
    Empty unless `import tvm` is Pliant."""

def set_tvm_compatibility(enabled: bool) -> None:
    """Enables or disables TVM's behaviour where Pliant's own API differs. `pliant.tvm.install` and `uninstall` call this
    function."""

def source_texts() -> tuple[int, int]:
    """Returns the number of source texts that are stored for error messages, and their size in
    bytes."""

def check_script(module: IRModule) -> None:
    """Raises `ScriptError`, with source lines, if a parsed module violates the rules of the IR."""

def parse_script(text: str, file: str = '<str>', first_line: int = 1, dedent: int = 0, names: dict[str, Any] | None = None, globals: dict[str, Any] | None = None, macros: list[Any] | None = None) -> Any:
    """Parses a script. Returns a module or a single function. For a class that defines a pattern rewriter, returns its name and
    its module.

    `first_line` and `dedent` locate the text in the user's file. `names` and `globals` are the
    Python names that the text may use, and `macros` its macros. Raises `ScriptError` with the
    source location.
    """

def registry_get(name: str) -> PackedFunction | None:
    """Returns the packed function that is registered under a name, or `None`."""

def registry_names() -> list[str]:
    """Returns the names of all registered packed functions."""

def registry_register(name: str, func: Any, replace: bool = False) -> None:
    """Registers a Python function under a name, by which programs can call it. Raises `ValueError`
    if the name is taken, unless `replace` is set."""

def registry_remove(name: str) -> bool:
    """Removes a packed function from the registry. Returns whether it was registered."""

def structural_difference(lhs: Any, rhs: Any) -> str | None:
    """Describes the first difference between two modules or functions other than names. Returns
    `None` if there is none. Raises `TypeError` for other objects."""

def structural_hash(node: Any) -> int:
    """Computes a hash that is equal for structurally equal modules and functions. Raises
    `TypeError` for other objects."""

def has_te(op: Any) -> bool:
    """Whether an operator can be applied to tensors of `te`."""

def te_checked(tensor: Tensor, shape: Any, check: Any, failed: str, message: str) -> Tensor:
    """Adds a run-time check to a stage. For all indices within `shape`, `check(*idx)` returns a
    condition that must hold, followed by the integers to show in the message. `failed` is the kind
    of error: `shape` or `index`."""

def te_compute(shape: Any, fcompute: Callable[..., Any], name: str = 'compute', varargs_names: list[str] | None = None) -> Any:
    """Creates a tensor whose element at `idx` is `fcompute(*idx)`. If `fcompute` returns several
    values, the result is a list of tensors. Raises `ValueError` if `fcompute` takes another number
    of indices than the shape has dims."""

def te_create_prim_func(args: Any) -> PrimFunc:
    """Creates the loop function that computes the stages among `args` from the placeholders among `args`. Raises `CompileError`
    if the stages cannot be computed from these placeholders."""

def te_extern(name: str, outs: list[Tensor], body: Any) -> list[Tensor]:
    """Creates a stage that consists of a statement of `pliant.tir.stmt`. The statement stores to
    the placeholders `outs`. Returns the outputs of the stage."""

def te_extern_primfunc(inputs: list[Tensor], func: PrimFunc) -> list[Tensor]:
    """Applies the loop function `func` to tensors and returns its outputs. The first buffers of the function are its inputs, and
    the others are its outputs.

    Raises `ValueError` if no buffer is left for an output, and `TypeError` if an input has another
    rank or data type than its buffer.
    """

def te_operator(op: Any, *args: Any, **kwargs: Any) -> Any:
    """Applies an operator to tensors, numbers and shapes. Returns a tensor, or a list of tensors if
    the operator returns a tuple."""

def te_placeholder(shape: Any, dtype: DTypeLike | None = None, name: str = 'placeholder') -> Tensor:
    """Creates a placeholder for a tensor that the caller passes. The default data type is
    float32."""

def te_reduce(name: str, expr: Any, axis: Any, cond: Any = None, init: Any = None) -> PrimExpr:
    """Creates a reduction by name: `sum`, `prod`, `max` or `min`. With `cond`, only elements for
    which it holds are reduced. `init` is the initial value."""

def te_reduce_axis(dom: Any, name: str = 'rv') -> IterVar:
    """Creates an axis of a reduction over a `Range` or a pair `(begin, end)`."""

def te_reduce_several(combine: Any, identity: Any, exprs: Any, axis: Any, cond: Any = None, init: Any = None) -> TupleReduction:
    """Creates a reduction of several values. `combine(x, y)` combines two tuples of values, and
    `identity` is the neutral tuple."""

def te_reduce_with(combine: Any, identity: Any, expr: Any, axis: Any, cond: Any = None, init: Any = None) -> PrimExpr:
    """Creates a reduction. `combine(x, y)` combines two values, and `identity` is the neutral
    value."""

def te_scan(name: str, init: list[Tensor], update: list[Tensor], state: list[Tensor]) -> list[Tensor]:
    """Creates a scan, which computes states step by step: the first rows are those of `init`, each later row is that of `update`,
    and `update` reads earlier rows through the placeholders `state`. Returns the states after all steps. Raises `CompileError` if
    the shapes or data types do not match."""

def tir_binary(name: str, a: PrimExprLike, b: PrimExprLike) -> PrimExpr:
    """Applies a binary operator by name (`add`, `floordiv`, `min`, `eq`, ...). Raises `ValueError`
    for an unknown name, and `ZeroDivisionError` for a division by the integer constant 0."""

def tir_call(name: str, *args: Any) -> PrimExpr:
    """Calls an intrinsic by name (`exp`, `sqrt`, `if_then_else`, ...). Raises `ValueError` for an
    unknown name, and `TypeError` for a wrong number of arguments."""

def tir_call_extern(packed: bool, dtype: DTypeLike, name: str, *args: Any) -> PrimExpr:
    """Calls a linked symbol, or a registered packed function if `packed` is set. A buffer is passed
    as its address."""

def tir_call_typed(name: str, dtype: DTypeLike, arg: Any) -> PrimExpr:
    """Calls an intrinsic whose result type is stated in the call."""

def tir_ceildiv(a: PrimExprLike, b: PrimExprLike) -> PrimExpr:
    """Computes `ceil(a / b)`. `b` must be constant or positive. Raises `ZeroDivisionError` for the
    constant 0."""

def tir_const(value: Any, dtype: DTypeLike | None = None) -> PrimExpr:
    """Creates a constant, or converts an expression if `dtype` is given. Raises `ValueError` if the
    data type cannot represent an integer."""

def tir_free_vars(expr: Any) -> list[PrimExpr]:
    """Returns the variables of an expression, in order of appearance."""

def tir_let(var: Any, value: Any, body: Any) -> PrimExpr:
    """Replaces a variable in `body` by its value.

    Raises `UnsupportedError` if the value calls a packed or extern function, because each use of
    the variable would repeat the call.
    """

def tir_limit(dtype: DTypeLike, max: bool) -> PrimExpr:
    """Returns the largest value of a data type if `max` is set, otherwise the smallest one. For
    floats, the value is finite."""

def tir_not(a: PrimExprLike) -> PrimExpr:
    """Negates a condition."""

def tir_select(cond: Any, a: PrimExprLike, b: PrimExprLike) -> PrimExpr:
    """Selects one of two values, both of which are evaluated."""

def tir_substitute(expr: Any, pairs: list[tuple[PrimExpr, Any]]) -> PrimExpr:
    """Replaces variables in an expression. `pairs` are pairs of a variable and its replacement.
    Raises `TypeError` if a key is not a variable."""

def verify_module(module: IRModule) -> list[str]:
    """Returns the violations of the IR's rules in a module, one line each. The list is empty for a
    well-formed module."""

def recursive_groups(module: IRModule) -> list[list[str]]:
    """Returns the groups of graph functions that call each other recursively, by name."""

def verify_function(func: Any) -> list[str]:
    """Returns the violations of the IR's rules in a function, one line each. Names of other
    functions of the module are not checked."""

def tir_operands(expr: PrimExpr) -> list[PrimExpr]:
    """Returns the direct operands of a scalar expression."""

def tir_renew_defs(func: PrimFunc) -> PrimFunc:
    """Copies a loop function. The copy shares no parameters, buffers and variables with other
    functions."""

def tir_with_operands(expr: PrimExpr, operands: Sequence[PrimExpr]) -> PrimExpr:
    """Creates the same scalar expression with other operands. Raises `ValueError` for a wrong
    number of operands."""
