"""The conditions on sizes under which a traced program is valid (guards), as run-time checks.

torch records a guard whenever tracing depends on sizes: in branches of the model, and in its own inference of shapes and strides.
The former become checks. The latter are dropped: Pliant checks the shapes of all operators itself, and strides do not matter.
"""

from __future__ import annotations

import linecache
import os
import re
from typing import TYPE_CHECKING, Any

import torch.fx

from pliant.error import UnsupportedError

if TYPE_CHECKING:
    from pliant.frontend.torch.function_importer import FunctionImporter

_INFERENCE = re.compile(
    r"torch/(_refs|_prims|_prims_common|_meta_registrations|_subclasses|fx|_decomp|_functorch|export|_export"
    r"|nn/modules/module\.py)\b"
)
"""The files of torch that infer shapes and strides, and the frame that stands for its native code."""

_BRANCH = re.compile(r"\b(if|elif|while|assert|for|and|or|not|max|min|bool)\b|[<>]|[!=]=")
"""What a source line contains that branches on sizes."""


def shape_env_of(module: torch.fx.GraphModule) -> Any:
    """torch's record of the symbols and guards of a graph, or ``None`` if all sizes are constant."""
    for node in module.graph.nodes:
        meta = node.meta.get("val")
        if node.op != "placeholder" or not isinstance(meta, torch.Tensor | torch.SymInt):
            continue
        for dim in [meta] if isinstance(meta, torch.SymInt) else meta.shape:
            env = getattr(getattr(dim, "node", None), "shape_env", None)
            if env is not None:
                return env
    return None


def check_guards(cx: FunctionImporter, env: Any) -> None:
    """Emits checks of the guards that the code of the model has caused, as far as the parameters define their symbols."""
    seen = set()
    for guard in getattr(env, "guards", ()):
        location = getattr(guard.sloc, "maybe_user_loc", None) or getattr(guard.sloc, "framework_loc", None)
        expr = guard.expr.xreplace(env.replacements) if env.replacements else guard.expr
        if expr in seen or _INFERENCE.search(str(location).replace(os.sep, "/")):
            continue
        seen.add(expr)
        if _separates_one(expr) and not _BRANCH.search(_source(location)):
            continue
        if not {s.name for s in expr.free_symbols} <= cx.sizes.defined:
            continue
        try:
            condition = cx.sizes.convert(expr)
        except UnsupportedError:
            continue
        text = re.sub(r"\b[su]\d+\b", lambda m: cx.sizes.name(m[0]), str(expr))
        cx.check(condition, f"the model was traced for sizes with {text}{_where(location)}; other sizes may take another branch")


def _separates_one(expr: Any) -> bool:
    """Whether a guard only states that a size is not 0 or 1. torch's native code adds such guards when it infers strides."""
    return type(expr).__name__ == "Unequality" and any(a in (0, 1) for a in expr.args)


def _source(location: Any) -> str:
    where = _where(location)
    file, _, line = where[2:-1].rpartition(":")
    return linecache.getline(file, int(line)) if line.isdigit() else ""


def _where(location: Any) -> str:
    file, line = getattr(location, "filename", None), getattr(location, "lineno", None)
    if file is None:
        found = re.search(r"file (\S+), line (\d+)", str(location))
        if found is None:
            return ""
        file, line = found[1], found[2]
    return f" ({file}:{line})"
