"""``R``: graph functions. Operators and struct infos also work outside scripts, as in
``pliant.relax``."""

from __future__ import annotations

import builtins
import inspect
from types import FunctionType
from typing import TYPE_CHECKING, Any

from pliant import _core
from pliant.relax import op as _op
from pliant.script._decorate import NO_CALLER_FRAME, Macro, in_class_body, parse
from pliant.script._script_name_placeholders import ScriptName

if TYPE_CHECKING:
    from pliant._core import IRModule
    from pliant.relax.dpl import PatternMatchingRewriter

_PATH = "pliant.script.relax"
_relax = _core.relax


def function(
    f: FunctionType | None = None, pure: bool = True, private: bool = False, check_well_formed: bool = True
) -> Any:
    """Makes a graph function from the source of a Python function. Inside a class, the decorator of
    the class parses the function. The parser reads ``pure`` and ``private`` from the source.

    Raises ``ScriptError`` if the function is not a valid script.
    """
    frame = inspect.currentframe()
    caller = frame.f_back if frame else None
    if caller is None:
        raise RuntimeError(NO_CALLER_FRAME)
    scope = caller

    def decorate(func: FunctionType) -> Any:
        if not inspect.isfunction(func):
            raise TypeError(f"@R.function decorates a function, not {type(func).__name__}")
        return func if in_class_body(scope) else parse(func, scope, check_well_formed)

    return decorate if f is None else decorate(f)


def macro(*args: Any, hygienic: bool = True) -> Any:
    """Makes a macro from a Python function. A call in a script is replaced by the macro's
    statements.

    Names in a hygienic macro refer to the values at its definition. Names in other macros refer to
    the values at the call. A ``return`` at the end states the value of the call. Arguments may be
    values of the graph and all values that scripts support, such as sizes, strings and data types.

    >>> @R.macro
    ... def scaled(x, factor):
    ...     y = R.multiply(x, R.const(factor, "float32"))
    ...     return y

    Raises ``ScriptError`` if the source of the function cannot be read.
    """
    frame = inspect.currentframe()
    caller = frame.f_back if frame else None
    if caller is None:
        raise RuntimeError(NO_CALLER_FRAME)
    scope = caller

    def decorate(func: FunctionType) -> Any:
        if not inspect.isfunction(func):
            raise TypeError(f"@R.macro decorates a function, not {type(func).__name__}")
        return Macro(func, scope, hygienic)

    if len(args) == 1 and inspect.isfunction(args[0]):
        return decorate(args[0])
    if args:
        raise TypeError("R.macro takes no positional arguments (help: write @R.macro or @R.macro(hygienic=False))")
    return decorate


macro.__pliant_path__ = f"{_PATH}.macro"  # type: ignore[attr-defined]


def rewriter(cls: type) -> Any:
    """Makes a rewriter from a class with the functions ``pattern`` and ``replacement``.

    Raises ``ScriptError`` if the class is not a valid script, and ``ValueError`` if a function is
    missing.
    """
    frame = inspect.currentframe()
    caller = frame.f_back if frame else None
    if caller is None:
        raise RuntimeError(NO_CALLER_FRAME)
    return rewriter_of(parse(cls, caller), cls.__name__)


def rewriter_of(module: IRModule, name: str) -> PatternMatchingRewriter:
    """Creates the rewriter with this name from the functions ``pattern`` and ``replacement`` of a
    module."""
    from pliant.relax.dpl.rewrite import PatternMatchingRewriter
    from pliant.transform import PassInfo

    result = PatternMatchingRewriter.from_module(module)
    result.info = PassInfo(name)
    return result


rewriter.__pliant_path__ = f"{_PATH}.rewriter"  # type: ignore[attr-defined]

func = function
function.__pliant_path__ = f"{_PATH}.function"  # type: ignore[attr-defined]


class _Deferred(ScriptName):
    """A struct info with sizes that are meaningful only inside a script: the result of
    ``R.Tensor(("n", 4))`` when Python evaluates it."""

    __slots__ = ()


def _only_in_script(value: Any) -> bool:
    """Whether a list contains sizes as strings, or struct infos with such sizes."""
    if isinstance(value, list | builtins.tuple):
        return any(isinstance(item, builtins.str) or _only_in_script(item) for item in value)
    return isinstance(value, ScriptName) and not isinstance(value, _Info)


class _Info(ScriptName):
    """A struct info constructor that can also be called outside a script.

    Sizes given as strings are meaningful only inside a script, where the call is parsed from the
    source. Outside, they yield a placeholder. Arguments that are also invalid in scripts raise
    ``TypeError``, ``ValueError`` or ``PliantError``.
    """

    __slots__ = ("_make",)

    def __init__(self, name: Any, make: Any) -> None:
        super().__init__(f"{_PATH}.{name}")
        self._make = make

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if _only_in_script((*filter(_is_no_text, args), *filter(_is_no_text, kwargs.values()))):
            return _Deferred(self.__pliant_path__)
        return self._make(*args, **kwargs)


def _is_no_text(value: Any) -> bool:
    return not isinstance(value, builtins.str)


def _tensor(shape: Any = None, dtype: Any = None, vdevice: Any = None, ndim: int = -1) -> Any:
    if isinstance(shape, builtins.str) and dtype is None:
        # R.Tensor("float32", ndim=3), as in scripts.
        shape, dtype = None, shape
    return _relax.TensorStructInfo(shape, dtype, vdevice, ndim)


def _prim(dtype: Any = None, value: Any = None) -> Any:
    if isinstance(value, builtins.str):
        return _Deferred(f"{_PATH}.Prim")
    return _relax.PrimStructInfo(dtype, value)


def _tuple(*fields: Any) -> Any:
    if len(fields) == 1 and isinstance(fields[0], list | builtins.tuple):
        fields = builtins.tuple(fields[0])
    return _relax.TupleStructInfo([f if isinstance(f, _relax.StructInfo) else f() for f in fields])


Tensor = _Info("Tensor", _tensor)
Shape = _Info("Shape", lambda values=None, ndim=-1: _relax.ShapeStructInfo(values, ndim))
Object = _Info("Object", _relax.ObjectStructInfo)
Any_ = Object
Prim = _Info("Prim", _prim)
Tuple = _Info("Tuple", _tuple)
Callable = _Info("Callable", lambda params=None, ret=None, purity=True: _relax.FuncStructInfo(params, ret or _relax.ObjectStructInfo(), purity))


def const(value: Any, dtype: Any = None) -> Any:
    """Creates a constant from a number, a list or an array. The default data types are those of
    ``relax.const``.
    """
    return _relax.relax_const(value, dtype)


def shape(values: Any) -> Any:
    """Creates a shape from a sequence of sizes."""
    return _relax.ShapeExpr(values)


def prim_value(value: Any) -> Any:
    """Creates a scalar: an integer or a float."""
    return _relax.PrimValue(value)


def str(value: Any) -> Any:
    """Creates a string constant."""
    return _relax.StringImm(value)


def dtype(value: Any) -> Any:
    """Creates a data type as an expression."""
    return _relax.DataTypeImm(value)


def tuple(*fields: Any) -> Any:
    """Creates a tuple of expressions."""
    return _relax.Tuple(fields)


def ExternFunc(name: Any) -> Any:
    """Creates a reference to a packed function by its registered name."""
    return _relax.ExternFunc(name)


call_tir = _op.call_tir
call_dps_packed = _op.call_dps_packed
call_kernel = _op.call_kernel
call_packed = _op.call_packed
call_pure_packed = _op.call_pure_packed
for _name in (
    "const",
    "shape",
    "prim_value",
    "str",
    "dtype",
    "tuple",
    "ExternFunc",
    "call_tir",
    "call_dps_packed",
    "call_kernel",
    "call_packed",
    "call_pure_packed",
):
    globals()[_name].__pliant_path__ = f"{_PATH}.{_name}"


def __getattr__(name: Any) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    try:
        return getattr(_op, name)
    except AttributeError:
        return ScriptName(f"{_PATH}.{name}")
