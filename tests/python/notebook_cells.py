"""Runs the code cells of notebooks."""

from __future__ import annotations

import json
import linecache
from pathlib import Path
from typing import Any

NOTEBOOKS = Path(__file__).parents[2] / "examples" / "notebooks"


def run_notebook(name: str) -> dict[str, Any]:
    """Runs all code cells of a notebook in order, in one namespace, which it returns. The text of each cell is a file, so that
    decorators find their source."""
    notebook = json.loads((NOTEBOOKS / name).read_text(encoding="utf-8"))
    assert notebook["nbformat"] == 4 and not any(cell.get("outputs") for cell in notebook["cells"]), "notebooks are stored without outputs"
    namespace: dict[str, Any] = {"__name__": "__notebook__"}
    for i, cell in enumerate(notebook["cells"]):
        if cell["cell_type"] != "code":
            continue
        source, file = "".join(cell["source"]), f"<{name}, cell {i}>"
        linecache.cache[file] = (len(source), None, source.splitlines(True), file)
        exec(compile(source, file, "exec"), namespace)
    return namespace
