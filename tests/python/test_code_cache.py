"""The code cache of the LLVM code generator: reuse, permissions, damaged entries and concurrent processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from exp_tanh_program import PROGRAM

import pliant

pytestmark = pytest.mark.skipif("llvm" not in pliant.build_info()["backends"], reason="the build does not contain LLVM")

BODY = """
for target in ["llvm", "auto"]:
    model = pliant.compile(module, target=target)
    model.wait_optimized()
    x = np.linspace(-3, 3, 1000, dtype=np.float32)
    np.testing.assert_allclose(model(x).numpy(), np.exp(np.tanh(x)), rtol=1e-6)
    print(model.stats().tier)
"""


def start(cache: object, **variables: str) -> subprocess.Popen[str]:
    """Starts a process that compiles and runs a program with LLVM, with and without tiers."""
    environment = {k: v for k, v in os.environ.items() if k not in ("PLIANT_TIER", "XDG_CACHE_HOME")}
    environment |= {"PLIANT_CODE_CACHE": str(cache)} | variables
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, "-c", PROGRAM + BODY], stdout=pipe, stderr=pipe, text=True, env=environment)


def finish(process: subprocess.Popen[str]) -> None:
    """Waits for a process, and checks that LLVM compiled both programs."""
    output, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    assert output.split() == ["llvm", "llvm"]


def entries(cache: Path) -> dict[str, tuple[int, bytes]]:
    """Returns the inode and the contents of each file of a cache."""
    return {path.name: (path.stat().st_ino, path.read_bytes()) for path in sorted(cache.iterdir())}


def test_a_second_process_reuses_the_entries(tmp_path: Path) -> None:
    cache = tmp_path / "new" / "code"
    finish(start(cache))
    first = entries(cache)
    assert first
    assert cache.stat().st_mode & 0o777 == 0o700
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in cache.iterdir())
    finish(start(cache))
    assert entries(cache) == first


@pytest.mark.parametrize("damage", [b"", b"PLNTOBJ1", b"\0" * 100_000])
def test_damaged_entries_are_replaced(tmp_path: Path, damage: bytes) -> None:
    finish(start(tmp_path))
    before = entries(tmp_path)
    for path in tmp_path.iterdir():
        path.write_bytes(damage)
    finish(start(tmp_path))
    after = entries(tmp_path)
    assert {name: data for name, (_, data) in after.items()} == {name: data for name, (_, data) in before.items()}


def test_truncated_entries_are_replaced(tmp_path: Path) -> None:
    finish(start(tmp_path))
    before = entries(tmp_path)
    for path in tmp_path.iterdir():
        path.write_bytes(path.read_bytes()[:-1])
    finish(start(tmp_path))
    assert {n: d for n, (_, d) in entries(tmp_path).items()} == {n: d for n, (_, d) in before.items()}


def test_entries_that_others_can_write_are_not_used(tmp_path: Path) -> None:
    finish(start(tmp_path))
    for path in tmp_path.iterdir():
        path.chmod(0o666)
    before = entries(tmp_path)
    finish(start(tmp_path))
    after = entries(tmp_path)
    assert before.keys() == after.keys()
    assert all(after[name][0] != before[name][0] for name in before)


def test_unusable_directories_are_ignored(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("not a directory")
    open_to_others = tmp_path / "shared"
    open_to_others.mkdir(mode=0o777)
    open_to_others.chmod(0o777)
    for cache in [file, file / "below", open_to_others, "/dev/null/x", "/proc/pliant"]:
        finish(start(cache))
    assert not any(open_to_others.iterdir())


def test_the_cache_can_be_disabled(tmp_path: Path) -> None:
    finish(start("off", HOME=str(tmp_path)))
    assert not any(tmp_path.rglob("pliant"))


def test_the_default_directory_is_in_the_home_directory(tmp_path: Path) -> None:
    finish(start("", HOME=str(tmp_path)))
    assert entries(tmp_path / ".cache" / "pliant" / "code")


def test_two_processes_can_fill_the_cache(tmp_path: Path) -> None:
    processes = [start(tmp_path) for _ in range(3)]
    for process in processes:
        finish(process)
    names = [path.name for path in tmp_path.iterdir()]
    assert names and all(len(name) == 64 for name in names)
