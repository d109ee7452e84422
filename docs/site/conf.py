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
# The link to the Python API on the index page leads to its sources in the repository, and on the site to the reference.
PYTHON_SOURCES = "../python/pliant"
PYTHON_REFERENCE = "python/pliant/index"
# Modules whose contents their packages export. Only the pages of the packages describe the contents.
INNER_MODULES = {
    "pliant.ir.attrs",
    "pliant.ir.base",
    "pliant.ir.module",
    "pliant.relax.binding_rewrite",
    "pliant.relax.dpl.context",
    "pliant.relax.dpl.pattern",
    "pliant.relax.expr",
    "pliant.relax.struct_info",
    "pliant.tir.op",
    "pliant.tir.schedule.schedule",
    "pliant.tir.schedule.trace",
    "pliant.tir.stmt",
    "pliant.topi.transform",
    "pliant.topi.tvm_signatures",
}
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

# Single backticks in docstrings are code, as in Markdown.
default_role = "code"

autoapi_dirs = [str(ROOT / "python" / "pliant")]
autoapi_file_patterns = ["*.pyi", "*.py"]
autoapi_options = ["members", "undoc-members", "show-inheritance", "imported-members"]
autoapi_root = "python"
autoapi_add_toctree_entry = False
autoapi_keep_files = False

html_theme = "furo"
html_title = f"Pliant {release}"
html_copy_source = False
html_static_path = ["static"]
html_css_files = ["pages.css"]
html_search_scorer = str(ROOT / "docs" / "site" / "search_scorer.js")
pygments_dark_style = "github-dark"
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
    links. The Python API is listed under the text of its link, since the title of its page is "pliant"."""
    if page != "index":
        return
    source[0] = source[0].replace(f"]({PYTHON_SOURCES})", f"]({PYTHON_REFERENCE})")
    for section in source[0].split("\n## ")[1:]:
        title = section.partition("\n")[0]
        links = re.findall(r"\[([^]]+)\]\(([\w/-]+)(?:\.md)?\)", section)
        pages = [f"{text} <{target}>" if target == PYTHON_REFERENCE else target for text, target in links]
        source[0] += "\n".join(["", "```{toctree}", ":hidden:", f":caption: {title}", "", *pages, "```", ""])


def drop_hidden_rust_lines(_app: Sphinx, page: str, source: list[str]) -> None:
    """Removes the lines of Rust code that rustdoc compiles but does not show: `#` alone, or followed by a space."""
    if page.startswith("embed/"):
        source[0] = re.sub(r"(?ms)^```rust\n.*?^```$", lambda block: re.sub(r"(?m)^#(?: .*)?\n", "", block[0]), source[0])


def drop_links_to_sources(_app: Sphinx, page: str, _template: str, context: dict[str, Any], _doctree: Any) -> None:
    """Removes the links to the source of a page from generated pages, whose source is not in the repository."""
    if page.startswith("python/"):
        context["page_source_suffix"] = ""


def skip_inner_modules(_app: Sphinx, kind: str, name: str, _obj: Any, _skip: bool, _options: list[str]) -> bool | None:
    """Omits the pages of `INNER_MODULES`."""
    return True if kind == "module" and name in INNER_MODULES else None


def setup(app: Sphinx) -> None:
    """Registers the functions above with Sphinx."""
    app.connect("source-read", add_navigation)
    app.connect("source-read", drop_hidden_rust_lines)
    app.connect("html-page-context", drop_links_to_sources)
    app.connect("autoapi-skip-member", skip_inner_modules)
