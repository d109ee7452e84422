"""Names of the script language as Python objects.

A script is read from its source, so these objects do nothing at run time. They exist for annotations
that Python evaluates, for linters, and to map Python names to names of the language.
"""

from __future__ import annotations

from typing import Any


class ScriptName:
    """A placeholder for a name of the script language, such as ``T.Buffer``, so that scripts are valid
    Python. Calls, subscripts and attributes return further placeholders."""

    __slots__ = ("__pliant_path__",)

    def __init__(self, path: str) -> None:
        self.__pliant_path__ = path

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self

    def __getitem__(self, item: Any) -> Any:
        return self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return ScriptName(f"{self.__pliant_path__}.{name}")

    def __enter__(self) -> Any:
        raise TypeError(f"{self.__pliant_path__} can only be used inside a decorated function or class")

    def __exit__(self, *exc: object) -> None:
        return None

    def __repr__(self) -> str:
        return f"<name of the script: {self.__pliant_path__}>"
