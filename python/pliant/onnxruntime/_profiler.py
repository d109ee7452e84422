"""The profile of a session: the times of its creation and of its runs, in Chrome's trace format."""

from __future__ import annotations

import json
import os
import threading
import time
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Profiler"]


@dataclass
class Profiler:
    """Records events of a session. Adding events from several threads is safe."""

    prefix: str
    """The path of the file, to which the date is appended."""
    start_ns: int = field(default_factory=time.monotonic_ns)
    """The time at which the profile started, on the clock of ``time.monotonic_ns``."""
    _events: list[dict[str, Any]] = field(default_factory=list)
    _written: bool = False

    def add(self, name: str, start_ns: int, **details: str) -> None:
        """Adds an event that ends now."""
        event = {"cat": "Session", "pid": os.getpid(), "tid": threading.get_native_id()}
        times = {"dur": (time.monotonic_ns() - start_ns) // 1000, "ts": (start_ns - self.start_ns) // 1000}
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
