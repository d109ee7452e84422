"""The error for names that modules do not have."""

from __future__ import annotations


def absent_attribute(module: str, name: str) -> AttributeError:
    """Creates the exception for an attribute that a module does not have. For names of TVM's API, its message gives the reason."""
    from pliant.tvm._absent_names import AbsentNameError, absent

    reason = absent(f"{module}.{name}")
    return AttributeError(f"module {module!r} has no attribute {name!r}") if reason is None else AbsentNameError(reason)
