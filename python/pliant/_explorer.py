"""Writes the page of the explorer: the graph of a model, every stage of its compilation, the rules, and the times of a run."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from typing import Any

from pliant import _core
from pliant.error import UnsupportedError

__all__ = ["Source", "explore"]


def explore(
    mod: Any,
    path: str | os.PathLike[str],
    *inputs: Any,
    target: Any = None,
    title: str | None = None,
    runs: int = 10,
    **options: Any,
) -> str:
    """Compiles a program, and writes an HTML page that shows how. The page loads nothing from a network. Returns its path.

    ``mod`` and ``options`` are those of :func:`pliant.compile`, except that models of torch are not accepted; call ``explore`` of
    their compiled models. With ``inputs``, the page also shows the times and the memory of ``runs`` runs. ``title`` is by default
    the name of the file, or ``"model"``.

    Raises ``OSError`` if the page cannot be written, and the errors of :func:`pliant.compile` and of runs.
    """
    default = os.path.basename(os.fspath(mod)) if isinstance(mod, str | os.PathLike) else "model"
    return write_page(mod, target, options, path, inputs, title or default, runs)


def write_page(
    mod: Any, target: Any, options: dict[str, Any], path: str | os.PathLike[str], inputs: tuple[Any, ...], title: str, runs: int
) -> str:
    """Compiles a program and writes the page. Returns its path."""
    from pliant._model import compile_settings, program_of

    options = dict(options)
    program, _ = program_of(mod, options)
    with compile_settings(program, target, options) as (module, settings):
        page = _core.explore_module(module, settings, title, inputs or None, runs)
    with open(path, "w", encoding="utf-8") as file:
        file.write(page)
    return os.fspath(path)


class Source:
    """What a model was compiled from, so that it can be compiled again for the explorer.

    Only a path is kept, or a weak reference to the program: a model does not keep the weights of its program alive.
    """

    def __init__(self, program: Any, target: Any, options: dict[str, Any]) -> None:
        self._target, self._options = target, dict(options)
        self._program: Callable[[], Any] = lambda: program
        if not isinstance(program, str | os.PathLike):
            try:
                self._program = weakref.ref(program)
            except TypeError:  # The bytes of an ONNX model cannot be referred to weakly.
                self._program = lambda: None

    def write_page(self, path: str | os.PathLike[str], inputs: tuple[Any, ...], title: str, runs: int) -> str:
        """Compiles the program and writes the page. Returns its path.

        Raises ``UnsupportedError`` if the program does not exist any more.
        """
        program = self._program()
        if program is None:
            raise UnsupportedError(
                "the program from which the model was compiled does not exist any more: keep it, or call pliant.explore with it"
            )
        return write_page(program, self._target, self._options, path, inputs, title, runs)
