"""Formats profiles of models as JSON, as a trace for Perfetto, and as HTML."""

from __future__ import annotations

import html
import json
import os
from typing import TYPE_CHECKING

from pliant import _core

if TYPE_CHECKING:
    from pliant._core import Profile

__all__ = ["save_trace", "to_html", "to_json"]


def to_json(profile: Profile) -> str:
    """Returns a profile as JSON text: ``runs``, ``seconds``, ``peak_gflops``, ``calls`` and ``events``."""
    facts = {"runs": profile.runs, "seconds": profile.seconds, "peak_gflops": _core.machine_peak_gflops()}
    return json.dumps({**facts, "calls": profile.calls, "events": profile.events})


def save_trace(profile: Profile, path: str | os.PathLike[str]) -> None:
    """Writes the calls of the last run as a trace in Chrome's format, with a counter of the memory.

    Raises ``OSError`` if the file cannot be written.
    """
    process = os.getpid()
    events: list[dict[str, object]] = []
    for call in profile.events:
        start, duration = call["start"] * 1e6, call["seconds"] * 1e6
        details = {key: call[key] for key in ("location", "kind", "tensors", "flops", "bytes")}
        if call["flops"] and duration > 0:
            details["GFLOP/s"] = round(call["flops"] / duration / 1e3, 3)
        common = {"pid": process, "tid": 1}
        name = call["location"] or call["name"]
        events.append({**common, "ph": "X", "cat": call["kind"], "name": name, "ts": start, "dur": duration, "args": details})
        events.append({**common, "ph": "C", "name": "memory", "ts": start + duration, "args": {"bytes": call["memory"]}})
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"traceEvents": events, "displayTimeUnit": "ms"}, file)


_COLUMNS = ("share", "calls/run", "ms/run", "GFLOP/s", "% of peak", "GB/s", "function", "nodes or lines")


def to_html(profile: Profile) -> str:
    """Returns a profile as an HTML table, the slowest functions first."""
    rows = []
    for call in profile.calls:
        seconds = call["seconds"]
        cells = [
            f"{seconds / max(profile.seconds, 1e-12):.1%}",
            f"{call['calls'] / profile.runs:g}",
            f"{seconds * 1e3 / profile.runs:.4f}",
            _rate(call["gflops"]),
            _rate(call["percent_of_peak"]),
            _rate(call["gigabytes"]),
            f"<code>{html.escape(call['name'])}</code>",
            html.escape(", ".join(call["locations"])),
        ]
        rows.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    header = "".join(f"<th>{column}</th>" for column in _COLUMNS)
    return f"<table><thead><tr>{header}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _rate(value: float) -> str:
    return f"{value:.1f}" if value else "–"
