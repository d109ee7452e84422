"""Tests the page of the explorer, also in a headless browser."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx_models import FLOAT, model_of, node

import pliant
from pliant.script import ir as I
from pliant.script import relax as R

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
needs_browser = pytest.mark.skipif(BROWSER is None, reason="there is no browser: install the Debian package chromium")


@I.ir_module
class Layer:
    @R.function
    def main(x: R.Tensor(("n", 16), "float32"), w: R.Tensor((16, 8), "float32")) -> R.Tensor(("n", 8), "float32"):
        with R.dataflow():
            h = R.matmul(x, w)
            y = R.nn.relu(h)
            R.output(y)
        return y


def operands(n: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    return np.ones((n, 16), np.float32), np.ones((16, 8), np.float32)


def data_of(page: Path) -> dict[str, Any]:
    """Returns the data in a page."""
    text = re.search(r'<script type="application/json" id="data">(.*?)</script>', page.read_text(), re.S)
    assert text is not None
    data: dict[str, Any] = json.loads(text[1])
    return data


def rendered(page: Path, fragment: str = "", width: int = 1200) -> str:
    """Returns the document of a page in the browser, after its scripts have run."""
    assert BROWSER is not None
    options = ["--headless", "--no-sandbox", "--disable-gpu", f"--window-size={width},900", "--virtual-time-budget=4000"]
    # Every network access fails.
    options += ["--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={page.parent / 'profile'}"]
    run = subprocess.run([BROWSER, *options, "--dump-dom", f"file://{page}{fragment}"], capture_output=True, text=True, timeout=120, check=True)
    return run.stdout


def test_the_page_has_graph_stages_rules_and_times(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    assert pliant.explore(Layer, path, *operands(5), title="A layer", runs=2) == str(path)
    data = data_of(path)
    (main,) = data["functions"]
    assert [n["op"] for n in main["nodes"]] == ["input", "input", "matmul", "nn.relu"]
    assert main["nodes"][2]["type"] == 'R.Tensor((n, 8), dtype="float32")'
    assert main["nodes"][3]["inputs"] == [main["nodes"][2]["id"]] and main["results"] == [main["nodes"][3]["id"]]
    assert "test_explorer.py" in main["nodes"][2]["lines"]["file"]
    names = [name for name, _ in data["stages"]["stages"]]
    assert names[0] == "input" and "LegalizeOps" in names and names[-1] == "Bytecode"
    assert any("matmul" in text for text in data["stages"]["texts"])
    assert {r["kind"] for r in data["remarks"]} <= {"applied", "missed", "slow"} and data["remarks"]
    assert data["profile"]["runs"] == 2 and any(c["flops"] for c in data["profile"]["calls"])
    assert any("R.matmul(x, w)" in source["text"] for source in data["sources"])


def test_the_page_loads_nothing(tmp_path: Path) -> None:
    pliant.explore(Layer, tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    assert not re.search(r"(src|href)=|https?://(?!www\.w3\.org)|@import|url\(", text)


def test_titles_and_constants_cannot_break_the_page(tmp_path: Path) -> None:
    name = "</script><script>alert(1)</script>"
    model = model_of([node("Relu", "x", "y", name=name)], {"x": (FLOAT, ["n"])}, ["y"])
    pliant.explore(model, tmp_path / "page.html", title=name)
    text = (tmp_path / "page.html").read_text()
    assert text.count("<script") == 2 and "alert(1)</script>" not in text
    assert name in data_of(tmp_path / "page.html")["functions"][0]["nodes"][1]["lines"]["text"]


def test_models_remember_their_program(tmp_path: Path) -> None:
    model = pliant.compile(Layer)
    model.explore(tmp_path / "page.html", *operands(2))
    assert data_of(tmp_path / "page.html")["profile"] is not None
    model.save(tmp_path / "model.plx")
    with pytest.raises(pliant.UnsupportedError, match="pliant.explore"):
        pliant.load(tmp_path / "model.plx").explore(tmp_path / "page.html")
    with pytest.raises(OSError):
        model.explore(tmp_path / "absent" / "page.html")
    with pytest.raises(ValueError, match="'runs'"):
        model.explore(tmp_path / "page.html", *operands(2), runs=0)


def test_a_model_does_not_keep_its_program_alive(tmp_path: Path) -> None:
    model = pliant.compile(model_of([node("Relu", "x", "y")], {"x": (FLOAT, ["n"])}, ["y"]))
    with pytest.raises(pliant.UnsupportedError, match="does not exist any more"):
        model.explore(tmp_path / "page.html")


def test_the_command_writes_a_page(tmp_path: Path) -> None:
    import onnx

    onnx.save(model_of([node("Relu", "x", "y", name="act")], {"x": (FLOAT, ["n"])}, ["y"]), tmp_path / "model.onnx")
    command = [sys.executable, "-m", "pliant._cli", "explore", str(tmp_path / "model.onnx"), "-o", str(tmp_path / "page.html")]
    subprocess.run([*command, "--shape", "n=4"], check=True, capture_output=True)
    data = data_of(tmp_path / "page.html")
    assert data["title"] == "model.onnx" and data["profile"] is not None
    assert "act" in data["functions"][0]["nodes"][1]["lines"]["text"]


@needs_browser
def test_a_browser_shows_the_page(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    pliant.explore(Layer, page, *operands(64), title="A layer")
    document = rendered(page)
    assert "4 nodes" in document and document.count('class="node"') == 4
    assert re.search(r"<h2>\w+ = (matmul|nn\.relu)</h2>", document), "the slowest node is selected"
    assert "µs" in document and "% of peak" in document
    assert "<path d=" in document, "the memory is drawn"


@needs_browser
def test_search_and_tabs_work_in_a_browser(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    pliant.explore(Layer, page)
    assert "1 nodes" in rendered(page, "#graph/relu")
    assert "0 nodes" in rendered(page, "#graph/convolution")
    stages = rendered(page, "#stages/LegalizeOps")
    assert re.search(r'<div class="add">\+ .*call_tir', stages) and '<div class="del">- ' in stages
    assert "written without a run" in rendered(page, "#times")
