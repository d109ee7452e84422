"""Collects the operators of a model that cannot be imported, and reports all of them in one error."""

from __future__ import annotations

import os
import re
from collections import Counter
from typing import TYPE_CHECKING

from pliant.error import UnsupportedError

if TYPE_CHECKING:
    import torch.fx

_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<function>[^\n]+)(?:\n\s+(?P<code>[^\n]+))?')


def source_line(node: torch.fx.Node) -> str | None:
    """The source line of the user's model that created a node, as ``model.py:12 in forward: y = torch.foo(x)``.

    This is the innermost frame outside of the packages of the environment, or the innermost frame if there is no other. ``None`` if
    torch recorded no lines.
    """
    frames = list(_FRAME.finditer(node.meta.get("stack_trace") or ""))
    if not frames:
        return None
    own = [f for f in frames if f"{os.sep}site-packages{os.sep}" not in f["file"]]
    frame = (own or frames)[-1]
    code = f": {frame['code'].strip()}" if frame["code"] else ""
    return f"{frame['file']}:{frame['line']} in {frame['function'].strip()}{code}"


class Problems:
    """The unsupported nodes of a program, grouped by operator and reason."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str]] = Counter()
        self._lines: dict[tuple[str, str], str] = {}

    def add(self, node: torch.fx.Node, reason: str) -> None:
        """Records that a node cannot be imported."""
        problem = (str(node.target), reason)
        self._counts[problem] += 1
        line = source_line(node)
        if line is not None:
            self._lines.setdefault(problem, line)

    def __bool__(self) -> bool:
        return bool(self._counts)

    def raise_if_any(self) -> None:
        """Raises ``UnsupportedError`` with all recorded problems."""
        if not self._counts:
            return
        count = len(self._counts)
        lines = [f"the model cannot be imported: {count} unsupported operator{'s' if count > 1 else ''}"]
        for (operator, reason), times in self._counts.most_common():
            lines.append(f"  - {operator} ({times} node{'s' if times > 1 else ''}): {reason}")
            if (operator, reason) in self._lines:
                lines.append(f"    at {self._lines[operator, reason]}")
        raise UnsupportedError("\n".join(lines))
