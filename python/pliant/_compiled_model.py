"""`Model`: a compiled model. The extension module implements it; this class adds what only needs Python."""

from __future__ import annotations

import functools
import html
from typing import Any

from pliant import _core

__all__ = ["Model"]


class Model(_core.Model):
    """A compiled model. ``model(x)`` runs its entry function with inputs of any valid shape: the function ``main``, or the only graph
    function.

    Inputs are passed by position or by name. ``model(x, timeout=0.5)`` stops a run that takes longer than 0.5 seconds with a
    ``TimeLimitError``. ``model[name]`` is another function of the model. A call raises ``CallError``, ``ShapeError`` or ``DTypeError``
    for invalid inputs, and ``TypeError`` for unknown names of inputs and for a model without an entry function.
    """

    async def arun(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the model like a call, on another thread, so that the event loop continues: ``await model.arun(x, timeout=2)``.

        The run is not stopped if the task that awaits it is cancelled, but by its ``timeout``.
        """
        import asyncio  # Imported here, because the import takes as long as that of the package.

        return await asyncio.to_thread(functools.partial(self, *args, **kwargs))

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


def _from_bytes(cls: type[Model], data: bytes) -> Model:
    return cls(_core.Executable.from_bytes(data))
