"""A pool of threads for asynchronous runs, which all sessions share."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

__all__ = ["run_in_background"]

_lock = threading.Lock()
_pool: ThreadPoolExecutor | None = None


def run_in_background(task: Callable[[], None]) -> None:
    """Runs a task on a thread of the pool. An exception of the task is printed, like one of a thread."""
    global _pool
    with _lock:
        if _pool is None:
            _pool = ThreadPoolExecutor(thread_name_prefix="pliant-run-async")
        _pool.submit(_run, task)


def _run(task: Callable[[], None]) -> None:
    try:
        task()
    except BaseException:
        sys.excepthook(*sys.exc_info())


def _forget_pool() -> None:
    """Drops the pool in a forked child, which has none of its threads."""
    global _lock, _pool
    _lock, _pool = threading.Lock(), None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)
