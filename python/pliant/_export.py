"""Ahead-of-time compilation: programs with machine code as object files, libraries and executables."""

from __future__ import annotations

import os
from typing import Literal

from pliant import _core
from pliant._core import Model
from pliant.target import Target

__all__ = ["export_library"]

_EMIT_BY_EXTENSION = {".o": "obj", ".a": "static", ".so": "shared", "": "exe"}


def export_library(
    model: Model | _core.Executable,
    path: str | os.PathLike[str],
    *,
    emit: Literal["obj", "static", "shared", "exe"] | None = None,
    target: str | Target | None = None,
    target_cpu: str | None = None,
    target_triple: str | None = None,
    runtime_library: str | os.PathLike[str] | None = None,
) -> None:
    """Writes a compiled program with its machine code to a file, which runs without Pliant's compiler and without Python.

    ``emit`` is the kind of file: an object file (``"obj"``), a static or shared library with a C interface (``"static"``,
    ``"shared"``), or an executable that reads NumPy files (``"exe"``). By default, the extension of the path determines it: ``.o``,
    ``.a``, ``.so`` or none. Beside objects and libraries, the headers ``pliant.h`` and ``<name>.h`` are
    written; the name is that of the file without ``lib``, as an identifier of C.

    ``target`` is the code generator, ``"cranelift"`` or ``"llvm"``; by default, LLVM if it is built in. ``target_cpu`` is
    ``"x86-64"``, ``"x86-64-v2"``, ``"x86-64-v3"`` or ``"x86-64-v4"``; by default, the CPU of this machine. ``target_triple`` selects
    another architecture for an object file, such as ``"aarch64-unknown-linux-gnu"``.

    All kinds except object files are linked with the run-time library ``libpliant_runtime.a``: ``runtime_library``, or the file that
    the environment variable ``PLIANT_RUNTIME_LIBRARY`` names. The C compiler ``cc``, or the command in the variable ``CC``, links.

    Raises ``UnsupportedError`` if the program calls functions that compile at run time, or if the target is unknown,
    ``CompileError`` if the file cannot be written or linked, and ``ValueError`` if the extension determines no kind of file.
    """
    path = os.fsdecode(path)
    extension = os.path.splitext(path)[1]
    kind = _EMIT_BY_EXTENSION.get(extension) if emit is None else emit
    if kind is None:
        raise ValueError(f"the extension '{extension}' determines no kind of file; pass emit=")
    executable = model.executable if isinstance(model, Model) else model
    backend = Target("auto" if target is None else target).backend
    runtime = None if runtime_library is None else os.fspath(runtime_library)
    _core.export_library(executable, path, kind, (backend, target_cpu, target_triple), runtime)
