"""The profile of a session: the times of its creation, of its runs and of the nodes in them, in Chrome's trace format."""

from __future__ import annotations

import json
import os
import re
import threading
import time
from dataclasses import dataclass, field
from typing import Any

from pliant._core import CancelToken, Model

__all__ = ["Profiler"]

_ONE_NODE = re.compile(r"(?P<operator>[\w.:]+) '(?P<name>[^']*)'")
"""The description of a single node. Calls that compute several nodes have other descriptions."""


@dataclass
class Profiler:
    """Records events of a session. Adding events from several threads is safe."""

    prefix: str
    """The path of the file, to which the date is appended."""
    start_ns: int = field(default_factory=time.monotonic_ns)
    """The time at which the profile started, on the clock of ``time.monotonic_ns``."""
    _events: list[dict[str, Any]] = field(default_factory=list)
    _written: bool = False
    _running: threading.Lock = field(default_factory=threading.Lock)

    def add(self, name: str, start_ns: int, **details: str) -> None:
        """Adds an event of the session that ends now."""
        self._add("Session", name, start_ns, time.monotonic_ns() - start_ns, details)

    def run(self, model: Model, arguments: list[object], cancel: CancelToken | None) -> object:
        """Runs a model, and adds an event for the run and one for each call in it. Runs on several threads take turns, because a
        model records one run at a time."""
        with self._running:
            start = time.monotonic_ns()
            profile = model.profile(*arguments, runs=1, cancel=cancel, warm_up=False)
            self.add("model_run", start)
        for call in profile.events:
            one = _ONE_NODE.fullmatch(call["location"])
            name = one["name"] if one else call["location"] or call["name"]
            details = {"op_name": one["operator"] if one else "", "function": call["name"], "provider": "CPUExecutionProvider"}
            sizes = {"tensors": ", ".join(call["tensors"]), "bytes": str(call["bytes"]), "flops": str(call["flops"])}
            kind = "_kernel_time" if call["kind"] == "loops" else "_call_time"
            self._add("Node", name + kind, start + int(call["start"] * 1e9), int(call["seconds"] * 1e9), {**details, **sizes})
        return profile.result

    def _add(self, category: str, name: str, start_ns: int, duration_ns: int, details: dict[str, str]) -> None:
        event = {"cat": category, "pid": os.getpid(), "tid": threading.get_native_id()}
        times = {"dur": duration_ns // 1000, "ts": (start_ns - self.start_ns) // 1000}
        self._events.append({**event, **times, "ph": "X", "name": name, "args": details})

    def write(self) -> str:
        """Writes the events to a file, one a line, and returns its path. Returns ``""`` if the profile was already written."""
        if self._written:
            return ""
        self._written = True
        path = f"{self.prefix}_{time.strftime('%Y-%m-%d_%H-%M-%S')}_{time.time_ns() // 10**6 % 1000}.json"
        with open(path, "w", encoding="utf-8") as file:
            file.write("[\n" + ",\n".join(json.dumps(event) for event in self._events) + "\n]\n")
        return path
