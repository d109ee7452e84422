"""Helpers for tests."""

from __future__ import annotations

import inspect
import sys
from typing import Any, NoReturn

import numpy as np

from pliant import _core
from pliant.testing._pass_cases import CompareBeforeAfter
from pliant.testing._requirements import *  # noqa: F403
from pliant.testing._requirements import __all__ as _requirement_names
from pliant.testing._requirements import feature

__all__ = ["CompareBeforeAfter", "assert_allclose", "interpret", "main", "object_use_count", "xfail", *_requirement_names]


def assert_allclose(actual: Any, desired: Any, rtol: float = 1e-7, atol: float = 1e-7, verbose: bool = True) -> None:
    """Raises ``AssertionError`` unless both arrays have the same shape and their elements agree
    within the tolerances."""
    left, right = (np.asanyarray(side.numpy() if isinstance(side, _core.NDArray) else side) for side in (actual, desired))
    np.testing.assert_allclose(left.shape, right.shape)
    np.testing.assert_allclose(left, right, rtol=rtol, atol=atol, verbose=verbose)


def interpret(module: _core.IRModule, *args: Any, func: str = "main") -> Any:
    """Runs a function in the reference interpreter, without compiling the module, and returns its
    result. The interpreter is slow and strict.

    Raises ``VMError`` if the run fails.
    """
    return _core.interpret(module, func, *args)


def object_use_count(obj: Any) -> int:
    """Returns the number of references to an object."""
    return sys.getrefcount(obj) - 1


def xfail(reason: str = "") -> Any:
    """Marks a test that is expected to fail."""
    import pytest

    return pytest.mark.xfail(reason=reason)


def main() -> NoReturn:
    """Runs the tests in the calling file with pytest and the command-line arguments, and exits."""
    import pytest

    frame = inspect.currentframe()
    caller = frame.f_back if frame else None
    if caller is None:
        raise RuntimeError(
            "the calling file is unknown, because this Python implementation does not expose the caller's stack frame"
            " (inspect.currentframe() has no caller); use CPython, or call pytest.main([__file__])"
        )
    sys.exit(pytest.main([caller.f_code.co_filename, *sys.argv[1:]]))


def __getattr__(name: str) -> Any:
    found = feature(name.removeprefix("requires_")) if name.startswith("requires_") else None
    if found is None:
        raise AttributeError(f"module 'pliant.testing' has no attribute {name!r}")
    return found
