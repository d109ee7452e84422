"""Named sequences of passes: the pipelines of Pliant, and pipelines that the user registers."""

from __future__ import annotations

import threading
from collections.abc import Callable
from difflib import get_close_matches
from typing import Any, TypeVar

from pliant import _core
from pliant.transform import Pass, get_pass

F = TypeVar("F", bound=Callable[..., Any])

__all__ = ["get_pipeline", "list_pipelines", "register_pipeline"]

_registered: dict[str, Callable[..., Any]] = {}
_lock = threading.Lock()


def _own_names() -> list[str]:
    return [name for name, _, _, level in _core.transform.pass_table() if level == "pipeline"]


def list_pipelines() -> list[str]:
    """Returns the names of all pipelines."""
    return [*_own_names(), *_registered]


def register_pipeline(name: str) -> Callable[[F], F]:
    """Registers a function that returns a pass as a pipeline, for :func:`get_pipeline`,
    ``relax.build`` and ``pliant.compile``.

    >>> @relax.register_pipeline("mine")
    ... def mine():
    ...     return Sequential([MyPass(), relax.get_pipeline("default")])

    Raises ``ValueError`` if a pipeline with this name exists, and ``TypeError`` if the decorator
    has no name or decorates something that is not callable.
    """
    if not isinstance(name, str):
        raise TypeError('register_pipeline expects a name: write @register_pipeline("name")')

    def register(make: F) -> F:
        if not callable(make):
            raise TypeError(f"register_pipeline expects a function that returns a pass, got {make!r}")
        with _lock:
            if name in _registered or name in _own_names():
                raise ValueError(f"a pipeline named '{name}' exists already")
            _registered[name] = make
        return make

    return register


def get_pipeline(name: str = "zero", **kwargs: Any) -> Pass:
    """Returns the pipeline with this name: ``zero`` (graph level only), ``minimum`` (lowering
    only), ``default`` (both), or a registered pipeline, whose function is called with ``kwargs``.

    Raises ``ValueError`` for an unknown name. Raises ``TypeError`` for arguments to a pipeline of
    Pliant, and if the function of a registered pipeline does not return a pass.
    """
    make = _registered.get(name)
    if make is not None:
        result = make(**kwargs)
        if not callable(result):
            raise TypeError(f"the function of the pipeline '{name}' returned {type(result).__name__}, not a pass (help: return Sequential([...]))")
        return result  # type: ignore[no-any-return]
    names = list_pipelines()
    if name not in names:
        near = get_close_matches(str(name), names, 1)
        hint = f"did you mean '{near[0]}'?" if near else f"there are: {', '.join(names)}"
        raise ValueError(f"there is no pipeline '{name}' ({hint})")
    if kwargs:
        raise TypeError(f"the pipeline '{name}' takes no arguments, but some are passed")
    return get_pass(name)


def as_pipeline(pipeline: Any) -> Any:
    """Converts the ``pipeline`` argument of a compilation. The name of a built-in pipeline is
    returned unchanged. The name of a pipeline that the user registered becomes a pass. A pass, a
    list of passes and ``None`` are returned unchanged.

    Raises ``TypeError`` for other objects.
    """
    if isinstance(pipeline, str):
        return pipeline if pipeline in _own_names() else get_pipeline(pipeline)
    if pipeline is None or callable(pipeline) or isinstance(pipeline, list | tuple):
        return pipeline
    raise TypeError(f"the pipeline must be a name, a pass, or a list of passes, got {type(pipeline).__name__}")
