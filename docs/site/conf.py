"""The settings of the documentation site: `make docs` builds it with Sphinx from the Markdown pages of `docs`, and the reference of
the Python package from its stubs and sources."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import astroid
from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parents[2]
WORKSPACE = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]

project = "Pliant"
version = release = WORKSPACE["version"]
copyright = "the authors of Pliant"  # noqa: A001

extensions = ["autoapi.extension", "myst_parser"]
exclude_patterns = ["site"]

# A link to a heading is checked like a link to a page: `-W` makes each dead one an error.
myst_heading_anchors = 4
# Links that leave `docs` lead to files of the repository.
myst_url_schemes = {"http": None, "https": None}

autoapi_dirs = [str(ROOT / "python" / "pliant")]
autoapi_file_patterns = ["*.pyi", "*.py"]
autoapi_options = ["members", "undoc-members", "show-inheritance", "imported-members"]
autoapi_root = "python"
autoapi_add_toctree_entry = False
autoapi_keep_files = False

html_theme = "furo"
html_title = f"Pliant {release}"
html_copy_source = False
html_theme_options: dict[str, Any] = {"source_repository": WORKSPACE["repository"], "source_branch": "main", "source_directory": "docs/"}

# A class that several modules export has several targets; a reference leads to one of them.
suppress_warnings = ["ref.python", "autoapi.python_import_resolution"]


def hoist_lazy_imports(module: astroid.nodes.Module) -> None:
    """Moves imports from `if TYPE_CHECKING:` blocks to the top level of a module, since the generator of the reference reads only
    the top level. Packages import their exports lazily and list them in such a block."""
    body = []
    for node in module.body:
        hoisted = [node]
        if isinstance(node, astroid.nodes.If) and node.test.as_string() == "TYPE_CHECKING":
            hoisted = node.body
        for child in hoisted:
            child.parent = module
        body += hoisted
    module.body = body


astroid.MANAGER.register_transform(astroid.nodes.Module, hoist_lazy_imports)


def add_navigation(_app: Sphinx, page: str, source: list[str]) -> None:
    """Appends a navigation tree to the index page. It lists, for each section of the page, the pages to which the section
    links."""
    if page != "index":
        return
    for section in source[0].split("\n## ")[1:]:
        title = section.partition("\n")[0]
        pages = re.findall(r"\]\(([\w/-]+)(?:\.md)?\)", section)
        pages += ["python/pliant/index"] if title == "Reference" else []
        source[0] += "\n".join(["", "```{toctree}", ":hidden:", f":caption: {title}", "", *pages, "```", ""])


def setup(app: Sphinx) -> None:
    """Registers `add_navigation` with Sphinx."""
    app.connect("source-read", add_navigation)
