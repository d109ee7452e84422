"""From decorated classes and functions to IR: their source, and the Python program around it."""

from __future__ import annotations

import inspect
from types import FrameType, FunctionType
from typing import Any

from pliant import _core
from pliant.error import ScriptError


def in_class_body(frame: FrameType) -> bool:
    """Whether the frame is the body of a class: its decorator reads the functions inside."""
    return "__qualname__" in frame.f_locals and "__module__" in frame.f_locals


def parse(obj: type | FunctionType, frame: FrameType, check_well_formed: bool = True) -> Any:
    """Parses the source of a class or function with the names that are visible in ``frame``."""
    try:
        lines, first = inspect.getsourcelines(obj)
        file = inspect.getsourcefile(obj) or "<unknown>"
    except (OSError, TypeError) as error:
        raise ScriptError(
            f"the source of {obj.__name__} cannot be read ({error}); pass its text to pliant.script.from_source"
        ) from None
    dedent = len(lines[0]) - len(lines[0].lstrip())
    text = "".join(_strip(line, dedent) for line in lines)
    result = _core.parse_script(text, file, max(first, 1), dedent, captured(obj, frame), frame.f_globals)
    if check_well_formed:
        check(result, file)
    return result


def _strip(line: str, dedent: int) -> str:
    return line[dedent:] if not line[:dedent].strip() else line.lstrip()


def captured(obj: type | FunctionType, frame: FrameType) -> dict[str, Any]:
    """The local names around a class or function: those of the frame, and what its functions capture."""
    names = dict(frame.f_locals) if frame.f_locals is not frame.f_globals else {}
    functions = [obj] if isinstance(obj, FunctionType) else list(vars(obj).values())
    for function in functions:
        if not isinstance(function, FunctionType) or not function.__closure__:
            continue
        for name, cell in zip(function.__code__.co_freevars, function.__closure__, strict=True):
            try:
                names.setdefault(name, cell.cell_contents)
            except ValueError:
                # The variable has no value yet.
                pass
    return names


def check(result: Any, file: str) -> None:
    """Raises ``ScriptError`` for what parses but breaks the rules of the IR."""
    module = result if isinstance(result, _core.IRModule) else _core.IRModule.from_expr(result)
    try:
        _core.check_script(module)
    except ScriptError as error:
        error.filename = error.filename or file
        raise
