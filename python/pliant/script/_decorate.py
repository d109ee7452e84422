"""Converts decorated classes and functions to IR: reads their source and the Python names around
them."""

from __future__ import annotations

import ast
import functools
import inspect
import linecache
import re
from collections.abc import Iterable
from types import FrameType, FunctionType
from typing import Any

from pliant import _core
from pliant.error import ScriptError

# The error message if Python has no stack frame for the caller of a decorator, whose variables the script may use.
NO_CALLER_FRAME = (
    "the names in the script cannot be resolved, because this Python implementation does not expose the caller's variables"
    " (inspect.currentframe() has no caller); use CPython, or parse the script from a string and pass the names explicitly:"
    " pliant.script.from_source(text, {'name': value})"
)


def in_class_body(frame: FrameType) -> bool:
    """Whether the frame is the body of a class. In that case, the decorator of the class parses the
    functions inside."""
    return "__qualname__" in frame.f_locals and "__module__" in frame.f_locals


def parse(obj: type | FunctionType, frame: FrameType, check_well_formed: bool = True) -> Any:
    """Parses the source of a class or function. Names refer to the values that are visible in
    ``frame``.

    Raises ``ScriptError`` if the source cannot be read, does not parse, or violates the rules of
    the IR (unless ``check_well_formed`` is false).
    """
    lines, first = decorated_source(obj, frame) or source_of(obj)
    file = source_file(obj, frame)
    dedent = len(lines[0]) - len(lines[0].lstrip())
    text = "".join(_strip(line, dedent) for line in lines)
    names = captured(obj, frame)
    used = macros_used(text, [names, frame.f_globals])
    result = _core.parse_script(text, file, max(first, 1), dedent, names, frame.f_globals, used)
    if isinstance(result, tuple):
        result = result[1]  # The module of a rewriter. Its decorator creates the rewriter.
    if check_well_formed:
        check(result, file)
    return result


class Macro:
    """A macro: statements that scripts insert by a call. See :func:`pliant.script.relax.macro`."""

    def __init__(self, func: FunctionType, frame: FrameType, hygienic: bool) -> None:
        lines, first = source_of(func)
        self.dedent = len(lines[0]) - len(lines[0].lstrip())
        self.text = "".join(_strip(line, self.dedent) for line in lines)
        self.file = inspect.getsourcefile(func) or "<unknown>"
        self.first_line = max(first, 1)
        self.hygienic = hygienic
        # The current values of the names. Later assignments do not affect the macro.
        self.names = captured(func, frame)
        self.globals = {n: frame.f_globals[n] for n in _identifiers(self.text) if n in frame.f_globals}
        self.__name__ = func.__name__
        self.__doc__ = func.__doc__ or Macro.__doc__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(f"the macro {self.__name__} can only be called inside a script")

    def __repr__(self) -> str:
        return f"<macro {self.__name__}>"


def _identifiers(text: str) -> Iterable[str]:
    """Returns the identifiers in a text, each once, in order of appearance."""
    return dict.fromkeys(re.findall(r"[^\W\d]\w*", text))


def macros_used(text: str, scopes: list[dict[str, Any]]) -> list[Macro]:
    """Returns the macros that a text may refer to through the names of these scopes (innermost
    first), and the macros to which these macros refer."""
    found: list[Macro] = []
    work = [(text, scopes)]
    while work:
        text, scopes = work.pop()
        for name in _identifiers(text):
            value = next((scope[name] for scope in scopes if name in scope), None)
            if isinstance(value, Macro) and not any(value is m for m in found):
                found.append(value)
                own = [value.names, value.globals]
                work.append((value.text, own if value.hygienic else [*scopes, *own]))
    return found


def decorated_source(obj: type | FunctionType, frame: FrameType) -> tuple[list[str], int] | None:
    """Returns the source lines of a class whose decorator is being called in ``frame``, and the
    number of the first line. ``None`` for other objects.

    Before Python 3.13, ``inspect`` locates only the first of several classes with the same name in
    a scope.
    """
    if not isinstance(obj, type):
        return None
    # Like `inspect`: the file may have changed since it was cached.
    linecache.checkcache(frame.f_code.co_filename)
    lines = linecache.getlines(frame.f_code.co_filename, frame.f_globals)
    for name, decorators, last in _decorated_classes("".join(lines)):
        if name == obj.__name__ and frame.f_lineno in decorators:
            return lines[decorators.start - 1 : last], decorators.start
    return None


@functools.lru_cache(maxsize=8)
def _decorated_classes(text: str) -> list[tuple[str, range, int]]:
    """Lists the decorated classes in a file: name, lines of the decorators, and last line."""
    try:
        nodes = ast.walk(ast.parse(text))
    except (SyntaxError, ValueError):
        return []
    classes = (node for node in nodes if isinstance(node, ast.ClassDef) and node.decorator_list)
    return [(c.name, range(c.decorator_list[0].lineno, c.lineno), c.end_lineno or c.lineno) for c in classes]


def source_of(obj: type | FunctionType) -> tuple[list[str], int]:
    """Returns the source lines of a class or function, and the number of the first line.

    Raises ``ScriptError`` if the source cannot be read.
    """
    try:
        return inspect.getsourcelines(obj)
    except (OSError, TypeError) as error:
        raise ScriptError(
            f"the source of {obj.__name__} cannot be read ({error}); pass its text to pliant.script.from_source"
        ) from None


def source_file(obj: type | FunctionType, frame: FrameType) -> str:
    """Returns the file with the source of a class or function that is decorated in ``frame``. Python does not know the file of a class
    in a cell of a notebook."""
    try:
        return inspect.getsourcefile(obj) or frame.f_code.co_filename
    except (OSError, TypeError):
        return frame.f_code.co_filename


def _strip(line: str, dedent: int) -> str:
    return line[dedent:] if not line[:dedent].strip() else line.lstrip()


def captured(obj: type | FunctionType, frame: FrameType) -> dict[str, Any]:
    """Returns the local names to which a class or function can refer: the names in the frame, and the names that its functions
    capture."""
    names = dict(frame.f_locals) if frame.f_locals is not frame.f_globals else {}
    functions = [obj] if isinstance(obj, FunctionType) else list(vars(obj).values())
    for function in functions:
        if not isinstance(function, FunctionType) or not function.__closure__:
            continue
        for name, cell in zip(function.__code__.co_freevars, function.__closure__, strict=True):
            try:
                names.setdefault(name, cell.cell_contents)
            except ValueError:
                # The variable has not been assigned yet.
                pass
    return names


def check(result: Any, file: str) -> None:
    """Raises ``ScriptError`` for a script that parses but violates the rules of the IR."""
    module = result if isinstance(result, _core.IRModule) else _core.IRModule.from_expr(result)
    try:
        _core.check_script(module)
    except ScriptError as error:
        error.filename = error.filename or file
        raise
