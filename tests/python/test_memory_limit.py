"""Tests the memory limit that the environment variable ``PLIANT_MEMORY_LIMIT`` sets."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


@pytest.mark.parametrize("text", ["abc", "0", "-5", "4X", "1.5G"])
def test_invalid_memory_limits_are_reported(text: str) -> None:
    program = "import pliant; pliant.runtime.empty((4,))"
    environment = os.environ | {"PLIANT_MEMORY_LIMIT": text}
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=False)
    assert run.returncode != 0
    assert f"PLIANT_MEMORY_LIMIT is '{text}', but must be a positive number of bytes" in run.stderr


def test_memory_limit_units() -> None:
    program = "import pliant; pliant.runtime.empty((4,)); print(pliant.runtime.memory_limit())"
    for text, limit in (("4G", 4 << 30), ("512 MiB", 512 << 20), ("123456789", 123456789)):
        environment = os.environ | {"PLIANT_MEMORY_LIMIT": text}
        said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True)
        assert said.stdout.strip() == str(limit)
