"""Draws the plots of ``docs/serve/performance.md`` from the tables of ``docs/internals/measurements/``.

``python plots.py``, within ``benches/``, writes ``models.svg`` and ``kernels.svg`` into ``docs/serve/``; scripts that replace the tables
call it. Text and axes are mid-grey on a transparent background, which is readable in light and in dark mode.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from measurement_pages import read_rows

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "serve"
# The CPU of all plotted tables; change it when the tables are measured on another one.
CPU = "Intel Xeon (Emerald Rapids), 2 cores under KVM"

WIDTH = 520
LEFT, RIGHT = 40, 6
GREY = "#7b7b7b"
COLOURS = ("#2f7fc1", "#c8701a", "#a8509f")
STYLE = f"text {{ font: 13px sans-serif; fill: {GREY} }} .title {{ font-weight: bold }} .grid {{ stroke: {GREY}; stroke-opacity: 0.25 }}"
STYLE += f" .limit {{ stroke: {GREY}; stroke-width: 1.5 }}"


def text(x: float, y: float, content: str, anchor: str = "start", extra: str = "") -> str:
    """Returns the SVG element of a line of text."""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{extra}>{escape(content)}</text>'


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    """Returns the SVG element of a straight line with a CSS class."""
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def marker(shape: int, x: float, y: float, filled: bool = True) -> str:
    """Returns the SVG element of a data point: a circle, square or triangle in the colour of its
    series.
    """
    colour = COLOURS[shape]
    paint = f'fill="{colour if filled else "none"}" stroke="{colour}" stroke-width="1.5"'
    if shape == 0:
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.8" {paint}/>'
    if shape == 1:
        return f'<rect x="{x - 3.5:.1f}" y="{y - 3.5:.1f}" width="7" height="7" {paint}/>'
    return f'<path d="M{x:.1f} {y - 4.5:.1f}l4.5 8h-9z" {paint}/>'


def document(name: str, description: str, height: float, parts: Sequence[str]) -> str:
    """Returns a complete SVG file."""
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height:.0f}" viewBox="0 0 {WIDTH} {height:.0f}" role="img">'
    head += f"\n<title>{escape(name)}</title>\n<desc>{escape(description)}</desc>\n<style>{STYLE}</style>"
    return "\n".join([head, *parts, "</svg>\n"])


# Whole models.

MODEL_LABELS = 104
MODEL_VALUES = 44
ROW = 16


@dataclass
class ModelCase:
    """A row of the table of whole models."""

    model: str
    shape: list[int]
    peer_is_onnx_runtime: bool
    ratio: float


def model_cases() -> list[ModelCase]:
    """Returns the measured cases of the models, for each model from the smallest input to the
    largest.
    """
    cases = []
    for row in read_rows("benches/peers/models.py"):
        if re.fullmatch(r"[\dx]+", row[1]):
            model, shape, _, onnx_runtime, openvino, ratio, _ = row
            sizes = [int(size) for size in shape.split("x")]
            cases.append(ModelCase(model, sizes, float(onnx_runtime) <= float(openvino), float(ratio)))
    models = list(dict.fromkeys(case.model for case in cases))
    return sorted(cases, key=lambda case: (models.index(case.model), math.prod(case.shape)))


def draw_models() -> str:
    """Draws, for each model and shape, the ratio of the faster peer's time to Pliant's as a line that starts at 1 and ends at the
    ratio.
    """
    cases = model_cases()
    low = math.floor(min(case.ratio for case in cases) * 5) / 5
    high = math.ceil(max(case.ratio for case in cases) * 5) / 5
    left, right = MODEL_LABELS, WIDTH - MODEL_VALUES

    def at(ratio: float) -> float:
        return left + (ratio - low) / (high - low) * (right - left)

    parts = [text(0, 14, "Time of the faster peer / time of Pliant", extra=' class="title"')]
    parts += [text(0, 33, f"2 threads, float32, {CPU}")]
    parts += [marker(0, 6, 49), text(16, 53, "faster peer: ONNX Runtime"), marker(1, 206, 49), text(216, 53, "faster peer: OpenVINO")]
    rows, y, model = [], 74.0, ""
    for case in cases:
        if case.model != model:
            model = case.model
            y += 6
            rows.append(text(0, y + 4, model, extra=' class="title"'))
            y += ROW
        shape = 0 if case.peer_is_onnx_runtime else 1
        rows.append(text(left - 10, y + 4, " x ".join(map(str, case.shape)), "end", ' style="font-size: 12px"'))
        ends = f'x1="{at(1):.1f}" y1="{y:.1f}" x2="{at(case.ratio):.1f}" y2="{y:.1f}"'
        rows.append(f'<line {ends} stroke="{COLOURS[shape]}" stroke-width="2"/>')
        rows += [marker(shape, at(case.ratio), y), text(WIDTH - 2, y + 4, f"{case.ratio:.2f}", "end")]
        y += ROW
    ticks = [low + 0.2 * k for k in range(round((high - low) * 5) + 1)]
    for tick in ticks:
        parts.append(line(at(tick), 68, at(tick), y, "limit" if abs(tick - 1) < 1e-6 else "grid"))
        parts.append(text(at(tick), y + 15, f"{tick:.1f}", "middle"))
    parts += [text(at(1) - 6, y + 33, "Pliant slower", "end"), text(at(1) + 6, y + 33, "Pliant faster: times as fast as the faster peer")]
    return document("Whole models compared with ONNX Runtime and OpenVINO", f"{len(cases)} shapes, {CPU}", y + 42, [*parts, *rows])


# Kernels.

PANEL = 104
PANEL_STRIDE = 196


@dataclass
class Series:
    """A line of a plot panel. `cases` is a regular expression for the names of its cases; its first
    group is the position on the x axis.
    """

    name: str
    cases: str


@dataclass
class Panel:
    """A panel of the kernel plot. It shows the percentages of one table against the size of the cases, which is on a logarithmic
    x axis."""

    title: str
    table: str
    x_label: str
    x_ticks: list[int]
    y_max: int
    y_step: int
    series: list[Series]


# The layers of a ResNet: fewer channels in larger images.
DIRECT = r"(?=7 x 7 x 512|14 x 14 x 256|28 x 28 x 128|56 x 56 x 64)(\d+) x \d+ x (\d+) to \2, 3 x 3 / 1"
DEPTHWISE = r"(\d+) x \d+ x (\d+) to \2, 3 x 3 / 1, depthwise"
PANELS = [
    Panel(
        "Products by constant float32 weights",
        "packed",
        "rows",
        [1, 2, 4, 8, 16, 32, 64, 128, 256],
        150,
        50,
        [Series("weights of 384 x 384", r"(\d+) x 384 x 384"), Series("1024 x 1024", r"(?!1024)(\d+) x 1024 x 1024")],
    ),
    Panel(
        "Attention, 12 heads",
        "attention",
        "queries, with as many keys",
        [7, 16, 33, 64, 128, 256, 512],
        100,
        50,
        [Series(f"head size {size}", rf"1 x 12/12 heads of {size}, (\d+) by \1") for size in (32, 64)],
    ),
    Panel(
        "Convolution of 3 x 3, float32",
        "convolution",
        "height and width of the image in pixels",
        [7, 14, 28, 56, 112],
        200,
        50,
        [Series("implicit GEMM", DIRECT), Series("Winograd F(2x2)", DIRECT + r", Winograd F\(2x2\)"), Series("depthwise", DEPTHWISE)],
    ),
    Panel(
        "Recurrent layers, one sequence of 128 steps",
        "recurrent",
        "units",
        [64, 128, 256, 512],
        100,
        50,
        [Series("LSTM", r"Lstm of (\d+) units, batch 1"), Series("GRU, linear before reset", r"LinearGru of (\d+) units, batch 1")],
    ),
    Panel(
        "Products of 8-bit integers",
        "int8",
        "rows",
        [1, 8, 64, 512, 1024],
        800,
        200,
        [Series("weights of 1024 x 1024", r"(\d+) x 1024 x 1024")],
    ),
    Panel(
        "Convolution of 3 x 3, 8-bit integers",
        "int8 convolution",
        "height and width of the image in pixels",
        [7, 14, 28, 56],
        1000,
        200,
        [Series("im2col", DIRECT), Series("depthwise", DEPTHWISE)],
    ),
]


def points(series: Series, rows: list[list[str]], threads: int) -> list[tuple[int, int]]:
    """Returns the data points of a series: pairs of size and percentage."""
    found = [(re.fullmatch(series.cases, row[0]), row[3 * threads]) for row in rows]
    return sorted((int(match[1]), int(percentage)) for match, percentage in found if match)


def draw_panel(panel: Panel, top: float) -> list[str]:
    """Draws one panel. Lines are solid for one thread and dashed for two; data points are filled
    for one thread and hollow for two.
    """
    rows = read_rows(f"benches/kernels.py: {panel.table}")
    left, right, bottom = LEFT, WIDTH - RIGHT, top + 42 + PANEL
    low, high = math.log(panel.x_ticks[0]), math.log(panel.x_ticks[-1])

    def at(size: int, percentage: int) -> tuple[float, float]:
        x = left + 14 + (math.log(size) - low) / (high - low) * (right - left - 28)
        return x, bottom - percentage / panel.y_max * PANEL

    parts = [text(0, top + 14, panel.title, extra=' class="title"')]
    for percentage in range(0, panel.y_max + 1, panel.y_step):
        y = at(panel.x_ticks[0], percentage)[1]
        parts += [line(left, y, right, y, "limit" if percentage == 100 else "grid"), text(left - 6, y + 4, str(percentage), "end")]
    if panel.y_max > 100 and 100 % panel.y_step:
        y = at(panel.x_ticks[0], 100)[1]
        parts.append(line(left, y, right, y, "limit"))
    parts += [text(at(tick, 0)[0], bottom + 16, str(tick), "middle") for tick in panel.x_ticks]
    parts.append(text((left + right) / 2, bottom + 33, panel.x_label, "middle"))
    parts.append(text(0, top + 33, "% of peak"))
    x = 82.0
    for shape, series in enumerate(panel.series):
        parts += [marker(shape, x + 5, top + 29), text(x + 14, top + 33, series.name)]
        x += 34 + 6.8 * len(series.name)
        for threads in (1, 2):
            positions = [at(*point) for point in points(series, rows, threads)]
            if not positions:
                raise SystemExit(f"no case of the table {panel.table!r} matches {series.cases!r}")
            path = " ".join(f"{px:.1f},{py:.1f}" for px, py in positions)
            dashes = ' stroke-dasharray="5 4"' if threads == 2 else ""
            parts.append(f'<polyline points="{path}" fill="none" stroke="{COLOURS[shape]}" stroke-width="1.6"{dashes}/>')
            parts += [marker(shape, px, py, filled=threads == 1) for px, py in positions]
    return parts


def draw_kernels() -> str:
    """Draws the kernel plot, with a panel for each family of kernels."""
    parts = [text(0, 14, "Percentage of the machine's peak", extra=' class="title"'), text(0, 33, CPU)]
    parts.append(text(0, 51, "Filled markers, solid lines: 1 thread. Hollow markers, dashes: 2 threads."))
    parts.append(text(0, 69, "100 %: the peak of float32 multiply-adds, or of the read bandwidth"))
    parts.append(text(0, 87, "if reading the operands takes longer."))
    top = 104.0
    for panel in PANELS:
        parts += draw_panel(panel, top)
        top += PANEL_STRIDE
    return document("Percent of the machine's peak by kernel family and shape", f"{len(PANELS)} families, {CPU}", top, parts)


def write_plots() -> None:
    """Writes ``models.svg`` and ``kernels.svg``."""
    (FOLDER / "models.svg").write_text(draw_models())
    (FOLDER / "kernels.svg").write_text(draw_kernels())


if __name__ == "__main__":
    write_plots()
