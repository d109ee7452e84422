"""The graph level (Relax) in the extension module. A test compares this file with the module."""

from collections.abc import Iterator, Sequence
from typing import Any, Self, TypeAlias

from pliant._core import IRModule, NDArray, PrimExpr, Tensor
from pliant._core import Var as TirVar
from pliant.ir.attrs import Attrs

DTypeLike: TypeAlias = Any

class Binding:
    """A binding of a variable to a value or to the result of a `match_cast`."""
    def _relax_script(self, **options: Any) -> str:
        """The same as `script`, under its name in 2023."""
    def script(self, **options: Any) -> str:
        """Returns the node as script text, with the options of TVM's printer. Variables that the node does not define are
        declared in front of it."""
    def show(self, *args: Any, **options: Any) -> None:
        """Prints the node as script text."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ge__(self, value: Any, /) -> Any: ...
    def __gt__(self, value: Any, /) -> Any: ...
    def __hash__(self) -> int: ...
    def __le__(self, value: Any, /) -> Any: ...
    def __lt__(self, value: Any, /) -> Any: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __repr__(self) -> str: ...
    def same_as(self, other: Any) -> bool:
        """Whether both bind the same variable to the same value."""
    @property
    def span(self) -> None:
        """Always `None`, because Python objects do not record source locations. Constructors accept
        `span` for compatibility with TVM."""
    @property
    def value(self) -> Expr:
        """The value to which the variable is bound. For a `MatchCast`, the value before the
        check.
        """
    @property
    def var(self) -> Var:
        """The variable that is bound."""

class VarBinding(Binding):
    """A binding of a variable to a value. Raises `TypeError` if `var` is not a `relax.Var`."""
    def __new__(cls, var: Var, value: Any, span: Any = None) -> Self: ...

class MatchCast(Binding):
    """A binding that checks at run time whether a value has a type. It defines the size variables
    that first occur in the type."""
    @property
    def ty(self) -> StructInfo:
        """The type for which the value is checked, under its name in newer versions of TVM."""
    @property
    def pattern(self) -> tuple[PrimExpr, ...]:
        """The sizes for which the value is checked, under their name in 2022."""
    def __new__(cls, var: Var, value: Any, struct_info: Any, span: Any = None) -> Self: ...
    @property
    def struct_info(self) -> StructInfo:
        """The type for which the value is checked."""

class BindingBlock:
    """A list of bindings. Raises `TypeError` if an item is not a binding."""
    def _relax_script(self, **options: Any) -> str:
        """The same as `script`, under its name in 2023."""
    def script(self, **options: Any) -> str:
        """Returns the node as script text, with the options of TVM's printer. Variables that the node does not define are
        declared in front of it."""
    def show(self, *args: Any, **options: Any) -> None:
        """Prints the node as script text."""
    def __new__(cls, bindings: Sequence[Binding], span: Any = None) -> Self: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ge__(self, value: Any, /) -> Any: ...
    def __gt__(self, value: Any, /) -> Any: ...
    def __hash__(self) -> int: ...
    def __le__(self, value: Any, /) -> Any: ...
    def __lt__(self, value: Any, /) -> Any: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __repr__(self) -> str: ...
    def _function_runs(self) -> list[tuple[int, int]]:
        """Finds the runs of two or more consecutive bindings of local functions. Returns each run as the index of its first
        binding and the index after its last one."""
    @property
    def bindings(self) -> list[Binding]:
        """The bindings of the block, in order."""
    @property
    def is_dataflow(self) -> bool:
        """Whether the block is a dataflow block."""
    def same_as(self, other: Any) -> bool:
        """Whether both blocks have the same bindings in the same order."""
    @property
    def span(self) -> None:
        """Always `None`, because Python objects do not record source locations. Constructors accept
        `span` for compatibility with TVM."""

class DataflowBlock(BindingBlock):
    """A block of bindings without side effects and control flow."""
    def __new__(cls, bindings: Sequence[Binding], span: Any = None) -> Self: ...

class BlockBuilder:
    """Builds the functions of a module binding by binding, in A-normal form. `module` contains the
    initial functions.

    Methods that add to the current function raise `ValueError` if no function is open, and
    `CompileError` if the types of operands are invalid.
    """
    def __new__(cls, module: IRModule | None = None) -> Self: ...
    def _begin_dataflow(self) -> None:
        """Begins a dataflow block."""
    def _begin_function(self, name: str, params: Any = None, attrs: Any = None, pure: bool | None = None, private: bool = False) -> None:
        """Begins a function and makes it the current one. Raises `ValueError` if another function
        is open.
        """
    def _call_tensors(self, outputs: list[Tensor], name_hint: str = 'te_func') -> Expr:
        """Creates a loop function that computes `outputs` from placeholders of the current
        function, and returns a `call_tir` of it."""
    def _end_dataflow(self) -> None:
        """Ends the current dataflow block."""
    def _end_function(self, failed: bool) -> None:
        """Ends the current function. Raises `ValueError` if `emit_func_output` was not called,
        unless `failed` is set.
        """
    def add_func(self, func: Any, func_name: str) -> GlobalVar:
        """Adds a function to the module and returns its global variable. If the module has an equal
        function, that function is used. Otherwise the name is `func_name`, made unique."""
    def emit(self, expr: Any, name_hint: str = '') -> Var:
        """Binds an expression or a `te.Tensor` to a new variable and returns the variable."""
    def emit_func_output(self, output: Any, params: Any = None) -> GlobalVar:
        """Ends the function with `output` as its result, adds it to the module, and returns its
        global variable. A tuple or list becomes a tuple expression. `params` are the parameters if
        the function was begun without them.

        Raises `ValueError` if the function uses a variable that is not a parameter, or a dataflow
        variable outside its block.
        """
    def emit_output(self, output: Any, name_hint: str = '') -> Var:
        """Binds an expression to a new variable that is visible after the dataflow block, and
        returns the variable."""
    def finalize(self) -> IRModule:
        """The same as `get`, under TVM's name."""
    def get(self) -> IRModule:
        """Returns the module with all functions built so far."""
    def get_unique_name(self, name_prefix: str) -> str:
        """Returns a name that starts with `name_prefix` and that no variable of the function
        has.
        """
    def match_cast(self, value: Any, struct_info: Any, name_hint: str = '') -> Var:
        """Binds the result of a run-time check that `value` has the type `struct_info`, and returns
        the new variable. The check defines the size variables that first occur in the type."""
    def te_tensor(self, expr: Any, index: int = 0) -> Tensor:
        """Creates the `te` placeholder of an expression of known shape. The name of the placeholder is the letter with the number
        `index`, for example `A` for 0."""
    def update_func(self, gv: Any, updated_func: Any) -> None:
        """Replaces the function of the module to which `gv` refers."""

class BlockRewriter(BlockBuilder):
    """A block builder that can also rewrite existing functions. Mutators use it."""
    def __new__(cls, module: IRModule | None = None) -> Self: ...
    def _begin_binding_block(self) -> None:
        """Begins a binding block, which `_end_block` ends."""
    def _begin_dataflow_block(self) -> None:
        """Begins a dataflow block, which `_end_block` ends."""
    def _end_block(self, original: Any = None) -> BindingBlock:
        """Ends the current block and returns it. Returns `original` itself if both have the same
        bindings."""
    def _enter_rewrite(self, part: Any) -> None:
        """Begins to rewrite a function, a block or a sequence. Later bindings are emitted into a
        copy of the enclosing function. The original parts stay valid in the copy."""
    def _exit_rewrite(self) -> None:
        """Ends the innermost rewriting. The function that was under construction before becomes
        current again.
        """
    def _rebind(self, binding: Binding, var: Any, value: Any) -> Var:
        """Converts a value to A-normal form and binds it to the variable of a binding. If the type
        of the value differs, binds a new variable of the same name instead. Returns the bound
        variable."""
    def current_block_is_dataflow(self) -> bool:
        """Whether the current block is a dataflow block."""
    def emit_normalized(self, binding: Binding) -> None:
        """Adds an existing binding unchanged."""
    def lookup_binding(self, var: Any) -> Expr | None:
        """The value that this rewriter has bound to a variable, or `None`."""
    def _normalize(self, expr: Any, tvm_precision: bool = False) -> Expr:
        """Converts an expression to A-normal form and infers its type. The bindings of its operands
        are emitted at the current position. Without a current function, `tvm_precision` selects TVM's
        precision of the type."""

class Expr:
    """An expression of the graph level. Immutable.

    Arithmetic and order comparisons create calls of operators, which raise `CompileError` for
    operands of invalid types. `==` compares identity. `expr(*args)` calls a function value, and
    `expr[i]` is a field of a tuple. `bool()` of a tensor or scalar raises `TypeError`.
    """
    @property
    def _checked_type_(self) -> Any:
        """The same as `checked_type_`."""
    @property
    def checked_type(self) -> Any:
        """The type of the expression without sizes: its `struct_info` as TVM had it in 2022."""
    @property
    def checked_type_(self) -> Any:
        """The type of the expression without sizes, or `None` if it is not known yet."""
    @property
    def shape_(self) -> Any:
        """The shape in the type of the expression, or `None` if it is unknown."""
    def _relax_script(self, **options: Any) -> str:
        """The same as `script`, under its name in 2023."""
    def script(self, **options: Any) -> str:
        """Returns the node as script text, with the options of TVM's printer. Variables that the node does not define are
        declared in front of it."""
    def show(self, *args: Any, **options: Any) -> None:
        """Prints the node as script text."""
    def __copy__(self) -> Self: ...
    def __deepcopy__(self, _memo: Any) -> Self: ...
    def __abs__(self) -> Expr: ...
    def __add__(self, value: Any, /) -> Expr: ...
    def __bool__(self) -> bool: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Expr: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __floordiv__(self, value: Any, /) -> Expr: ...
    def __ge__(self, value: Any, /) -> Expr: ...
    def __getitem__(self, key: Any, /) -> Any: ...
    def __gt__(self, value: Any, /) -> Expr: ...
    def __hash__(self) -> int: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __le__(self, value: Any, /) -> Expr: ...
    def __len__(self) -> int: ...
    def __lt__(self, value: Any, /) -> Expr: ...
    def __matmul__(self, value: Any, /) -> Expr: ...
    def __mod__(self, value: Any, /) -> Expr: ...
    def __mul__(self, value: Any, /) -> Expr: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __neg__(self) -> Expr: ...
    def __pow__(self, value: Any, mod: Any = None, /) -> Expr: ...
    def __radd__(self, value: Any, /) -> Expr: ...
    def __repr__(self) -> str: ...
    def __rfloordiv__(self, value: Any, /) -> Expr: ...
    def __rmatmul__(self, value: Any, /) -> Expr: ...
    def __rmod__(self, value: Any, /) -> Expr: ...
    def __rmul__(self, value: Any, /) -> Expr: ...
    def __rpow__(self, value: Any, mod: Any = None, /) -> Expr: ...
    def __rsub__(self, value: Any, /) -> Expr: ...
    def __rtruediv__(self, value: Any, /) -> Expr: ...
    def __sub__(self, value: Any, /) -> Expr: ...
    def __truediv__(self, value: Any, /) -> Expr: ...
    def astype(self, dtype: DTypeLike) -> Expr:
        """Converts the elements to another data type. Raises `CompileError` for an unknown data
        type."""
    def same_as(self, other: Any) -> bool:
        """Whether both are the same expression."""
    @property
    def span(self) -> None:
        """Always `None`, because Python objects do not record source locations. Constructors accept
        `span` for compatibility with TVM."""
    @property
    def struct_info(self) -> Any:
        """The type of the expression. Raises `ValueError` if it is not known before the expression
        is emitted."""
    @property
    def struct_info_(self) -> Any:
        """The type of the expression, or `None` if it is not known yet."""
    @property
    def ty(self) -> Any:
        """The same as `struct_info`, under its name in later versions of TVM."""

class Call(Expr):
    """A call of an operator or of a function. `sinfo_args` are explicit types of the result."""
    @property
    def ty_args(self) -> tuple[StructInfo, ...]:
        """The explicit types of the results, under their name in newer versions of TVM."""
    def __new__(cls, op: Any, args: Any, attrs: Any = None, sinfo_args: Any = None, span: Any = None) -> Self: ...
    def _rebuilt(self, op: Any, args: Sequence[Any], sinfo_args: Any = None) -> Call:
        """Copies the call with another callee and other arguments."""
    @property
    def args(self) -> tuple[Expr, ...]:
        """The arguments of the call."""
    @property
    def attrs(self) -> Attrs:
        """The attributes of the call, including default values of the operator."""
    @property
    def op(self) -> Any:
        """The called operator or function: an `OpFunction`, or an expression whose value is a
        function.
        """
    @property
    def sinfo_args(self) -> tuple[StructInfo, ...]:
        """The explicit types of the results; empty if the callee determines them."""

class Constant(Expr):
    """A tensor constant. `data` is array-like, and `struct_info` is ignored."""
    def __new__(cls, data: bytes, struct_info: Any = None, span: Any = None) -> Self: ...
    @property
    def data(self) -> NDArray:
        """The elements of the constant as a read-only array. Raises `ValueError` for a Python
        number that has no data type before it is emitted.
        """

class DataTypeImm(Expr):
    """A data type as a value. Raises `DTypeError` for an unknown data type."""
    def __new__(cls, value: Any) -> Self: ...
    @property
    def value(self) -> str:
        """The name of the data type."""

class Var(Expr):
    """A variable. A parameter of a function must have a `struct_info`."""
    def __new__(cls, name_hint: str, struct_info: Any = None, span: Any = None) -> Self: ...
    @property
    def name(self) -> str:
        """The name of the variable."""
    @property
    def name_hint(self) -> str:
        """The name of the variable. TVM has this property in addition to `name`."""
    @property
    def vid(self) -> Var:
        """The identity of the variable, which is the variable itself."""

class DataflowVar(Var):
    """A variable that is visible only in its dataflow block."""
    def __new__(cls, name_hint: str, struct_info: Any = None, span: Any = None) -> Self: ...

class ExternFunc(Expr):
    """A reference to a packed function by its registered name."""
    @property
    def attrs(self) -> None:
        """Always `None`."""
    def __new__(cls, global_symbol: str) -> Self: ...
    @property
    def global_symbol(self) -> str:
        """The name under which the packed function is registered."""

class StructInfo:
    """The static type of a graph-level value. Types are equal if they have the same structure and
    the same size variables."""
    @property
    def span(self) -> None:
        """Always `None`."""
    def is_base_of(self, derived: StructInfo) -> bool:
        """Whether every value of the type `derived` has this type."""
    def _relax_script(self, **options: Any) -> str:
        """The same as `script`, under its name in 2023."""
    def script(self, **options: Any) -> str:
        """Returns the node as script text, with the options of TVM's printer. Variables that the node does not define are
        declared in front of it."""
    def show(self, *args: Any, **options: Any) -> None:
        """Prints the node as script text."""
    def __copy__(self) -> Self: ...
    def __deepcopy__(self, _memo: Any) -> Self: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ge__(self, value: Any, /) -> Any: ...
    def __gt__(self, value: Any, /) -> Any: ...
    def __hash__(self) -> int: ...
    def __le__(self, value: Any, /) -> Any: ...
    def __lt__(self, value: Any, /) -> Any: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __repr__(self) -> str: ...
    def same_as(self, other: Any) -> bool:
        """Whether both are the same type, as for `==`."""

class FuncStructInfo(StructInfo):
    """The type of a function. `params` is `None` if the parameters are unknown."""
    @property
    def arg_types(self) -> tuple[StructInfo, ...] | None:
        """The types of the parameters without sizes, or `None` if they are unknown."""
    @property
    def derive_func(self) -> None:
        """Always `None`: result types are not computed by functions."""
    @property
    def ret_type(self) -> StructInfo:
        """The type of the result without sizes."""
    def __new__(cls, params: Any, ret: Any, purity: bool = True) -> Self: ...
    @staticmethod
    def opaque_func(*, ret: StructInfo | None = None, derive_func: None = None, purity: bool = False) -> StructInfo:
        """Creates the type of functions with unknown parameters. The result has the type `ret`, by default `ObjectStructInfo()`.
        Raises `UnsupportedError` for a `derive_func`.
        """
    @property
    def params(self) -> tuple[StructInfo, ...] | None:
        """The types of the parameters, or `None` if they are unknown."""
    @property
    def purity(self) -> bool:
        """Whether calls of the function have no side effects."""
    @property
    def ret(self) -> StructInfo:
        """The type of the function's result."""

class Function(Expr):
    """A graph function. The type of the result is `ret_struct_info`, by default the type of `body`. If `is_pure` is `None`, the
    function is pure if its calls have no side effects."""
    @property
    def ret_ty(self) -> Any:
        """The type of the function's result, under its name in newer versions of TVM."""
    def __new__(cls, params: Sequence[Var], body: Any, ret_struct_info: Any = None, is_pure: bool | None = True, attrs: Any = None, span: Any = None, *, private: bool = False) -> Self: ...
    @property
    def __name__(self) -> str: ...
    def __repr__(self) -> str: ...
    def __str__(self) -> str: ...
    def _copied(self) -> Function:
        """A copy of the function with new variables and size variables."""
    def _finished(self, builder: BlockBuilder | None = None) -> Function:
        """Converts a function that Python code built from parts. Calls by name get the types of the functions in the builder's
        module. Any other function is returned unchanged."""
    @property
    def _is_whole(self) -> bool:
        """Whether this is a whole function and not a local function."""
    def _rebuilt(self, params: Sequence[Var], body: Any) -> Function:
        """The same function with other parameters and another body. The declared result type is
        replaced if the type of the body contradicts it."""
    @property
    def attrs(self) -> Attrs:
        """The attributes of the function. The attribute `global_symbol` is the name of a function
        that is not private.
        """
    def bind_params(self, binding_map: Any) -> Any:
        """Returns a function with parameters bound to constants. `binding_map` maps parameters or
        their names to tensors, arrays or constants.
        """
    def bind_symbolic_vars(self, binding_map: Any) -> Any:
        """Returns a function with symbolic sizes replaced. `binding_map` maps size variables or
        their names to numbers or expressions over sizes.
        """
    @property
    def body(self) -> SeqExpr:
        """The body of the function."""
    @property
    def is_pure(self) -> bool:
        """Whether calls of the function have no side effects."""
    @property
    def params(self) -> list[Var]:
        """The parameters of the function."""
    @property
    def private(self) -> bool:
        """Whether the function is visible only in its module."""
    @property
    def ret_struct_info(self) -> Any:
        """The type of the function's result."""
    def script(self, *, name: str | None = None, show_meta: bool = False, **options: Any) -> str:
        """Returns the function as script text. `name` is its name in the text, by default its own
        name. Large constants are included, so that the text parses back, only with `show_meta`.
        """
    def show(self, style: str | None = None, black_format: bool | None = None) -> None:
        """Prints the function as a script, with colours on a terminal. The style `"none"` disables
        colours, and `black_format` is ignored.
        """
    def with_attr(self, attr_key_or_dict: Any, attr_value: Any = None) -> Function:
        """Returns a function with one more attribute, or with all attributes of a dict. A private
        function that gets a `global_symbol` becomes public. Raises `TypeError` for a value that
        cannot be an attribute.
        """
    def with_attrs(self, attr_map: dict[str, Any]) -> Function:
        """Returns a function with all attributes of a dict added."""
    def without_attr(self, attr_key: str) -> Function:
        """Returns a function without an attribute. Without `global_symbol`, it is equal to a
        function that was built without a name.
        """

class GlobalVar(Expr):
    """A reference to a function of the module by name."""
    def __new__(cls, name_hint: str) -> Self: ...
    @property
    def name(self) -> str:
        """The name of the function in the module."""
    @property
    def name_hint(self) -> str:
        """The name of the function in the module. TVM has this property in addition to `name`."""

class If(Expr):
    """A conditional on a scalar bool."""
    def __new__(cls, cond: Any, true_branch: Any, false_branch: Any, span: Any = None) -> Self: ...
    @property
    def cond(self) -> Expr:
        """The condition of the conditional, which is a scalar bool."""
    @property
    def false_branch(self) -> SeqExpr:
        """The branch that is evaluated if the condition is false."""
    @property
    def true_branch(self) -> SeqExpr:
        """The branch that is evaluated if the condition is true."""

class ObjectStructInfo(StructInfo):
    """The type of any value."""
    def __new__(cls) -> Self: ...

class OpFunction:
    """An operator. Calling it with operands and attributes creates a `Call`.

    Raises `TypeError` for arguments that do not match the signature, and `CompileError` for
    operands of invalid types.
    """
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ge__(self, value: Any, /) -> Any: ...
    def __gt__(self, value: Any, /) -> Any: ...
    def __hash__(self) -> int: ...
    def __le__(self, value: Any, /) -> Any: ...
    def __lt__(self, value: Any, /) -> Any: ...
    def __ne__(self, other: object, /) -> bool: ...
    @staticmethod
    def get(op_name: str) -> OpFunction:
        """Returns the operator with this name, with or without the prefix `relax.`. Raises
        `ValueError` if there is none.
        """
    @staticmethod
    def list_op_names() -> list[str]:
        """Returns the full names of all operators, sorted."""
    def same_as(self, other: Any) -> bool:
        """Whether both are the same operator."""
    @property
    def __name__(self) -> str: ...
    def __repr__(self) -> str: ...
    @property
    def name(self) -> str:
        """The full name of the operator, such as `relax.nn.relu`."""
    @property
    def parameters(self) -> list[tuple[str, str, Any]]:
        """The operands and then the attributes of the operator, as `(name, kind, default)`. The
        kinds are `"operand"`, `"optional"` and `"variadic"` for operands, and `"attr"` and
        `"required"` for attributes.
        """

class PatternNode:
    """A pattern of `pliant.relax.dpl`. It is equal only to itself. Constructors raise `ValueError`
    for a pattern that can never match."""
    def __repr__(self) -> str: ...
    def and_(self, other: PatternNode) -> PatternNode:
        """Creates the pattern that matches if both patterns match."""
    def call(self, args: list[PatternNode], more: bool) -> PatternNode:
        """Creates the pattern of calls whose callee matches this pattern and whose arguments match
        `args`. With `more`, there may be further arguments.
        """
    @staticmethod
    def constant() -> PatternNode:
        """Creates the pattern that matches any tensor constant."""
    @staticmethod
    def dup(patterns: list[PatternNode]) -> list[PatternNode]:
        """Copies patterns. Copies of shared subpatterns are shared, too."""
    @staticmethod
    def extern_func(name: str | None) -> PatternNode:
        """Creates the pattern of packed functions. A name that is not empty restricts the match to
        this name.
        """
    @staticmethod
    def get_item(tuple: PatternNode, index: int | None) -> PatternNode:
        """Creates the pattern of accesses to a field of a tuple that matches `tuple`. `None`
        matches any field.
        """
    @staticmethod
    def global_var(name: str | None) -> PatternNode:
        """Creates the pattern of references to functions of the module. A name that is not empty
        restricts the match to this name.
        """
    def has_attr(self, attrs: dict[str, Any]) -> PatternNode:
        """Creates a pattern like this one, restricted to calls with these attributes."""
    def has_dtype(self, dtype: str) -> PatternNode:
        """Creates a pattern like this one, restricted to values with this data type."""
    def has_shape(self, dims: Any) -> PatternNode:
        """Creates a pattern like this one, restricted to values with these dims."""
    def has_struct_info(self, info: Any) -> PatternNode:
        """Creates a pattern like this one, restricted to values with this type."""
    @property
    def id(self) -> int:
        """The identity of the pattern, which is unique while the pattern is alive."""
    @staticmethod
    def literal(expr: Any) -> PatternNode:
        """Creates the pattern that matches exactly this constant, number, string, data type or
        function name. Raises `TypeError` for other expressions.
        """
    def matches(self, expr: Any, look_through: bool) -> list[tuple[PatternNode, Expr]] | None:
        """Matches an expression. Returns pairs of pattern and expression for each subpattern, or
        `None` if there is no match.

        With `look_through`, variables of a function are replaced by their values. This always
        happens for an expression that belongs to no function.
        """
    def not_(self) -> PatternNode:
        """Creates the pattern that matches if this pattern does not match."""
    @staticmethod
    def op(name: str) -> PatternNode:
        """Creates the pattern that matches an operator as a callee. Raises `ValueError` for an
        unknown operator.
        """
    def or_(self, other: PatternNode) -> PatternNode:
        """Creates the pattern that matches if this pattern or `other` matches. This pattern is tried first."""
    @staticmethod
    def shape_value(dims: Any) -> PatternNode:
        """Creates the pattern of shape values with these dims."""
    @staticmethod
    def tuple_(fields: list[PatternNode], unordered: bool) -> PatternNode:
        """Creates the pattern of tuples whose fields match `fields`, in any order if `unordered` is
        set.
        """
    @staticmethod
    def var(name: str | None, dataflow: bool) -> PatternNode:
        """Creates the pattern of variables, or of dataflow variables only. A name that is not empty
        restricts the match to this name.
        """
    @staticmethod
    def wildcard() -> PatternNode:
        """Creates the pattern that matches any expression."""

class PrimStructInfo(StructInfo):
    """The type of a scalar, with its value if known. By default, the data type is the type of the value. Raises `TypeError` if
    neither a data type nor a value is given."""
    @property
    def var_dtype(self) -> str:
        """The data type of a `tir.Var` with this type."""
    def __new__(cls, dtype: DTypeLike | None = None, value: Any = None) -> Self: ...
    @property
    def dtype(self) -> str:
        """The data type of the scalar."""
    @property
    def value(self) -> PrimExpr | None:
        """The value of the scalar as an expression, or `None` if it is not known."""

class PrimValue(Expr):
    """A scalar: an integer or a float. Python floats are float64."""
    def __new__(cls, value: Any) -> Self: ...
    @property
    def value(self) -> PrimExpr:
        """The value of the scalar as an expression. Raises `ValueError` if it is known only at run
        time.
        """

class SeqExpr(Expr):
    """A sequence of binding blocks and its result."""
    @property
    def struct_info(self) -> Any:
        """The type of the result of the sequence."""
    def __new__(cls, blocks: Sequence[BindingBlock], body: Any, span: Any = None) -> Self: ...
    @property
    def blocks(self) -> list[BindingBlock]:
        """The binding blocks of the sequence, in order."""
    @property
    def body(self) -> Expr:
        """The result expression of the sequence."""

class ShapeExpr(Expr):
    """A shape: a tuple of sizes. Raises `ShapeError` for a negative constant or a float."""
    def __new__(cls, values: Any) -> Self: ...
    @property
    def values(self) -> tuple[PrimExpr, ...]:
        """The sizes of the shape."""

class ShapeStructInfo(StructInfo):
    """The type of a shape, with its dims or its rank if known. Raises `ShapeError` if `ndim`
    differs from the number of dims."""
    def __new__(cls, values: Any = None, ndim: int = -1) -> Self: ...
    @property
    def ndim(self) -> int:
        """The rank of the shape, or -1 if it is unknown."""
    @property
    def values(self) -> tuple[PrimExpr, ...] | None:
        """The dims of the shape, or `None` if they are unknown."""

class StringImm(Expr):
    """A string constant."""
    def __new__(cls, value: Any) -> Self: ...
    @property
    def value(self) -> str:
        """The string as a Python `str`."""

class TemplateRule:
    """A rewrite rule that consists of two functions: a pattern and a replacement. Raises
    `ValueError` if the functions do not form a rule."""
    def __new__(cls, pattern: Any, replacement: Any) -> Self: ...
    @staticmethod
    def apply(rules: list[TemplateRule], func: Any, module: IRModule | None = None) -> Any:
        """Applies rules to a function until none matches. Returns the function itself if nothing
        matched. Raises `ValueError` for rules that do not terminate.

        `module` is the module that contains the function. It is needed only if the function was not
        taken from that module.
        """
    @property
    def pattern(self) -> PatternNode:
        """The pattern of the rule."""

class TensorStructInfo(StructInfo):
    """The type of a tensor. `shape` is a list of sizes or a shape expression; without it, `ndim` is
    the rank, or -1 if that is unknown. An unknown `dtype` is `None` or `""`. `vdevice` is ignored.

    Raises `ShapeError` for invalid sizes or if `ndim` differs from the number of dims, and
    `DTypeError` for an unknown data type.
    """
    def __new__(cls, shape: Any = None, dtype: DTypeLike | None = None, vdevice: Any = None, ndim: int = -1) -> Self: ...
    @property
    def dtype(self) -> str:
        """The data type of the tensor, or an empty string if it is unknown."""
    @property
    def ndim(self) -> int:
        """The rank of the tensor, or -1 if it is unknown."""
    @property
    def shape(self) -> Any:
        """The shape of the tensor as an expression, or `None` if it is unknown."""
    @property
    def vdevice(self) -> None:
        """Always `None`, because there is one device."""

class Tuple(Expr):
    """A tuple of expressions."""
    def __new__(cls, fields: Any, span: Any = None) -> Self: ...
    @property
    def fields(self) -> tuple[Expr, ...]:
        """The fields of the tuple."""

class TupleGetItem(Expr):
    """The field of a tuple with a constant index."""
    def __new__(cls, tuple_value: Expr, index: int, span: Any = None) -> Self: ...
    @property
    def index(self) -> int:
        """The index of the field that is read."""
    @property
    def tuple_value(self) -> Expr:
        """The tuple from which the field is read."""

class TupleStructInfo(StructInfo):
    """The type of a tuple."""
    def __new__(cls, fields: Any) -> Self: ...
    @property
    def fields(self) -> tuple[StructInfo, ...]:
        """The types of the tuple's fields."""

def all_bindings(expr: Any) -> list[Binding]:
    """Returns all bindings in an expression, in textual order."""

def call_dps(packed: bool, func: Any, args: Any, out_sinfo: Any, tir_vars: Any = None) -> Expr:
    """Creates a destination-passing call of a loop function, or of a packed function if `packed` is
    set. Raises `TypeError` if `out_sinfo` is empty."""

def call_kernel(
    kernel: str, arguments: dict[str, Any], axes: dict[str, Sequence[int]] | None, out_sinfo: Any
) -> Expr:
    """Creates a call of a library kernel. `arguments` are its operands and attributes by name.
    Raises `ValueError` for an unknown kernel, and `CompileError` for arguments that do not match
    its declaration."""

def call_packed(pure: bool | None, func: Any, *args: Any, sinfo_args: Any = None) -> Expr:
    """Creates a call of a packed function. With `pure`, the caller guarantees that the call has no
    side effects."""

def get_op(name: str) -> Any:
    """Returns the operator with this name, with or without the prefix `relax.`. Raises `ValueError`
    if there is none."""

def op_gradient(name: str) -> str | None:
    """How the gradient of an operator is defined: `"rule"`, `"te"` (derived from the tensor expression) or `"zero"`. `None` if the
    operator has no gradient or does not exist."""

def op_names() -> list[str]:
    """Returns the full names of all operators, including aliases and user-defined operators."""

def pattern_match_block(
    patterns: list[PatternNode],
    edges: list[tuple[PatternNode, PatternNode, int, bool]],
    same_shape: list[list[PatternNode]],
    block: Any,
) -> list[tuple[PatternNode, Expr]] | None:
    """Matches a context of patterns in a dataflow block. Returns pairs of pattern and expression, or `None` if there is no match.
    An edge `(producer, user, index, only)` requires that the pattern `user` reads the value of the pattern `producer`, as operand
    `index` (-1 for any operand). If `only` is set, no other value may read it.

    Raises `ValueError` if the block does not belong to a function.
    """

def pattern_rewrite_bindings(
    patterns: list[PatternNode],
    edges: list[tuple[PatternNode, PatternNode, int, bool]],
    same_shape: list[list[PatternNode]],
    callback: Any,
    func: Any,
) -> Any:
    """Replaces matches of a context of patterns in the dataflow blocks of a function.
    `callback(pairs, bindings)` returns a dict from variables to their new values. An empty dict or
    `None` leaves the match unchanged.

    Raises `ValueError` for a rewriter that does not terminate.
    """

def pattern_rewrite_calls(
    patterns: list[PatternNode], callback: Any, func: Any, module: IRModule | None = None
) -> Any:
    """Replaces matches of patterns in a function by the results of `callback(rule, expr, pairs)`,
    until nothing matches. A result that is the expression itself or `None` leaves the match
    unchanged.

    `module` is the module that contains the function. It is needed only if the function was not
    taken from that module. Raises `ValueError` for rules that do not terminate, and for a result
    that uses a variable outside its scope.
    """

def register_te_gradient(name: str, func: Any) -> None:
    """Registers a function that computes the gradient of calls of loop functions. It receives the adjoint of the result (or a
    tuple of them), the arguments and keyword arguments, and returns one `te.Tensor` per argument."""

def register_te_op(name: str, operands: list[str], attrs: list[tuple[str, list[Any]]], func: Any) -> str:
    """Registers a user-defined operator and returns its name without the prefix `relax.`.
    `operands` are names, and `attrs` are pairs of a name and a list with the default, which is
    empty for a required attribute. Raises `ValueError` for an invalid name."""

def relax_const(value: Any, dtype: DTypeLike | None = None) -> Constant:
    """Creates a constant from a number, a list or an array. By default, a Python int becomes int32,
    a Python float and a list of floats float32, and a list of ints int64."""

def call_struct_info(func: Any, args: list[Any]) -> StructInfo:
    """Infers the result type of a call of a function of type `func` with arguments of the types
    `args`. Raises `TypeError` if `func` is not the type of a function, and `CompileError` if the
    arguments do not match."""

def erase_struct_info(info: Any, shape_var_map: list[tuple[Any, Any]]) -> StructInfo:
    """Replaces size variables in a type. A shape that contains a variable without replacement keeps only its rank, and a shape
    variable is dropped. Raises `TypeError` if a key is not a variable."""

def find_vars(expr: Any, kind: str) -> list[Any]:
    """Returns variables or functions in an expression, each once, in order. `kind` selects `"all"`,
    `"bound"`, `"free"` or `"used"` variables, `"global"` functions that are referenced, or
    `"called"` functions. Raises `ValueError` for another kind."""

def has_impure_call(expr: Any, own_name: str | None = None) -> bool:
    """Whether an expression contains a call with side effects. Calls of the function named
    `own_name` are not counted."""

def post_order(expr: Any) -> list[Expr]:
    """Returns all subexpressions of an expression. Operands precede their users."""

def static_struct_info(info: Any) -> StructInfo:
    """Removes the dims from a type. Ranks and data types remain."""

def struct_info_check(base: Any, derived: Any) -> int:
    """Whether every value of type `derived` has type `base`. Returns 3 if every value has it, 2 if this depends only on sizes, 1
    if it depends on data types or ranks, and 0 if no value has both types."""

def struct_info_dims(info: Any) -> list[PrimExpr]:
    """Returns the non-constant sizes in a type, each once. They are never negative."""

def struct_info_lca(lhs: Any, rhs: Any) -> StructInfo:
    """Returns the least common supertype of two types."""

def struct_info_vars(info: Any, definable: bool) -> list[TirVar]:
    """Returns the size variables in a type. With `definable`, returns only the variables that a value of the type defines.
    Those are a dim by themselves, as `n` in `(n, 2 * m)` is."""

def symbolic_vars(func: Any, free: bool) -> list[TirVar]:
    """Returns the size variables that the parameters and `match_cast` bindings of a function define. If `free` is set, returns
    instead the size variables that the function uses without defining them."""

def use_chains(block: BindingBlock) -> list[tuple[Var, list[Var]]]:
    """Returns the variables that a block uses or defines, in order, each with the variables whose bound values use it."""

def uses_around(expr: Expr) -> list[tuple[Var, list[Var], Expr | None]]:
    """Returns the variables of the function that contains an expression, parameters first. Each variable comes with the variables
    whose bound values use it, and with its own bound value. The list is empty for an expression that belongs to no function."""
