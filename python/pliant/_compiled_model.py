"""`Model`: a compiled model. The extension module implements it; this class adds what only needs Python."""

from __future__ import annotations

import functools
import html
import os
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Any

from pliant import _core
from pliant._explorer import Source
from pliant._narrow_types import from_program, to_program
from pliant.error import UnsupportedError

__all__ = ["BoundCall", "Model"]


class Model(_core.Model):
    """A compiled model. ``model(x)`` runs its entry function with inputs of any valid shape: the function ``main``, or the only graph
    function.

    Inputs are passed by position or by name. ``model(x, timeout=0.5)`` stops a run that takes longer than 0.5 seconds with a
    ``TimeLimitError``. ``cancel`` is a :class:`pliant.CancelToken` that stops the run from another thread. ``out`` has arrays to
    which the results are copied: one array, or a tuple with an array or ``None`` for each result; the call returns them.
    ``model[name]`` is another function of the model.

    A call raises ``CallError``, ``ShapeError`` or ``DTypeError`` for invalid inputs, and ``TypeError`` for unknown names of inputs and
    for a model without an entry function. ``out`` raises ``ShapeError`` or ``DTypeError`` if an array does not fit its result, and
    ``ValueError`` for arrays that are read-only, not contiguous, or share memory with each other or with an input.
    """

    _source: Source | None = None
    """What the model was compiled from; ``None`` for a loaded model."""

    def explore(self, path: str | os.PathLike[str], *inputs: Any, title: str = "model", runs: int = 10) -> str:
        """Compiles the program of the model again, and writes an HTML page that shows the graph, every stage of the compilation, and
        which rules apply. With ``inputs``, it also shows the times and the memory of ``runs`` runs. Returns the path.

        Raises ``UnsupportedError`` for a model that was loaded from a file, and if the module from which it was compiled does not
        exist any more. Raises ``OSError`` if the page cannot be written.
        """
        if self._source is None:
            raise UnsupportedError("the model was not compiled by pliant.compile in this process: call pliant.explore with its program")
        return self._source.write_page(path, inputs, title, runs)

    def run(
        self,
        output_names: Sequence[str] | None,
        feeds: Mapping[str, Any],
        *,
        out: Any = None,
        timeout: float | None = None,
        cancel: _core.CancelToken | None = None,
    ) -> list[Any]:
        """Runs the model on inputs by name and returns a list of NumPy arrays. The method is compatible with ``run`` of an ONNX
        Runtime session.

        ``output_names`` selects the outputs; ``None`` selects all. A sequence is returned as a list of arrays. Inputs may be arrays
        of the package ``ml_dtypes``, and outputs that the model file declares as such are returned in these types. ``out`` has an
        array or ``None`` for each requested output; the outputs are copied to the arrays, which are returned.

        A run that takes longer than ``timeout`` seconds raises ``TimeLimitError``, and one that ``cancel`` stops ``CancelledError``.
        Raises ``ValueError`` for missing inputs and for unknown inputs or outputs, and the errors of a call for wrong arrays.
        """
        values = {name: to_program(value) for name, value in feeds.items()} if isinstance(feeds, Mapping) else feeds
        results = super().run(output_names, values, out=to_program(out), timeout=timeout, cancel=cancel)
        narrow = self.narrow_outputs
        if not any(narrow):
            return results
        indices = [self.output_names.index(name) for name in output_names] if output_names is not None else range(len(results))
        return [from_program(result, narrow[i]) for i, result in zip(indices, results, strict=True)]

    async def arun(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the model like a call, on another thread, so that the event loop continues: ``await model.arun(x, timeout=2)``.

        If the task that awaits the run is cancelled, the run is stopped.
        """
        import asyncio  # Imported here, because the import takes as long as that of the package.

        token = kwargs.setdefault("cancel", _core.CancelToken()) if "cancel" not in self.input_names else None
        try:
            return await asyncio.to_thread(functools.partial(self, *args, **kwargs))
        except asyncio.CancelledError:
            if token is not None:
                token.cancel()
            raise

    def run_async(self, *args: Any, **kwargs: Any) -> Future[Any]:
        """Starts a run like a call on another thread, and returns a future of its result, which also has the exceptions of the run.

        The future cannot be cancelled; pass a token (``cancel``) to stop the run.
        """
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()

        def work() -> None:
            try:
                future.set_result(self(*args, **kwargs))
            except BaseException as error:
                future.set_exception(error)

        threading.Thread(target=work, name="pliant-run", daemon=True).start()
        return future

    def bind(self, *args: Any, out: Any = None, **kwargs: Any) -> BoundCall:
        """Binds the inputs of the model to arrays, and its results to the arrays ``out``, if given. The returned object runs the
        model on the elements that the arrays have at that time, without converting them again: ``call = model.bind(x); call()``.

        Raises ``TypeError`` for a wrong number or unknown names of inputs, and for objects that are not arrays.
        """
        return BoundCall(self, args, kwargs, out)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the program. Machine code is not part of it, so loading compiles the loops again, as :func:`pliant.load` does."""
        return _from_bytes, (type(self), self.executable.to_bytes())

    def __copy__(self) -> Model:
        """Returns the model itself, because models do not change."""
        return self

    def __deepcopy__(self, _memo: dict[int, Any]) -> Model:
        """Returns the model itself, because models do not change."""
        return self

    def _repr_html_(self) -> str:
        """Returns a table of the inputs and the result, which notebooks show."""
        rows = [("input", info.name, info.struct_info) for info in self.inputs]
        if self.output is not None:
            rows.append(("result", ", ".join(self.output_names), self.output.struct_info))
        cells = [f"<td>{kind}</td><td>{html.escape(name)}</td><td><code>{html.escape(ty)}</code></td>" for kind, name, ty in rows]
        return "<table>" + "".join(f"<tr>{row}</tr>" for row in cells) + "</table>"


class BoundCall:
    """A call of a model with fixed arrays, which :meth:`Model.bind` returns. Several threads may call it if it has no ``out``."""

    def __init__(self, model: Model, args: tuple[Any, ...], kwargs: Mapping[str, Any], out: Any = None) -> None:
        """Raises ``TypeError`` for a wrong number or unknown names of inputs, and for objects that are not arrays."""
        names = [info.name for info in model.inputs]
        unknown = [name for name in kwargs if name not in names[len(args) :]]
        missing = [name for name in names[len(args) :] if name not in kwargs]
        if unknown or missing or len(args) > len(names):
            inputs = ", ".join(names)
            raise TypeError(f"bind: the model takes the inputs {inputs}; missing: {missing}, unknown or passed twice: {unknown}")
        values = [*args, *(kwargs[name] for name in names[len(args) :])]
        self._model = model
        self._inputs = [_shared(value, name) for value, name in zip(values, names, strict=True)]
        self._options = {} if out is None else {"out": out}

    def __call__(self, *, timeout: float | None = None, cancel: _core.CancelToken | None = None) -> Any:
        """Runs the model. Raises the errors of a call of the model."""
        if timeout is None and cancel is None:
            return self._model(*self._inputs, **self._options)
        return self._model(*self._inputs, **self._options, timeout=timeout, cancel=cancel)


def _shared(value: Any, name: str) -> _core.NDArray:
    """Returns a tensor that shares the memory of an array."""
    if isinstance(value, _core.NDArray):
        return value
    if not hasattr(value, "__dlpack__"):
        raise TypeError(f"bind: the input '{name}' must be an array, not {type(value).__name__}")
    return _core.from_dlpack(value)


def _from_bytes(cls: type[Model], data: bytes) -> Model:
    return cls(_core.Executable.from_bytes(data))
