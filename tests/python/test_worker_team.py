"""How many threads the worker team has: what the system grants the process, and what variables limit further."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="threads are counted by /proc")

PROGRAM = """
import os, sys
import numpy as np
import pliant
from pliant.script import from_source

given = sys.argv[1]
if given.startswith("cpu="):
    os.sched_setaffinity(0, {int(given[4:])})
elif given.startswith("group="):
    with open(given[6:] + "/cgroup.procs", "w") as procs:
        procs.write(str(os.getpid()))

model = pliant.compile(from_source('''
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n",), "float32")):
        with R.dataflow():
            y = R.exp(x)
            R.output(y)
        return y
'''))
x = np.linspace(-1, 1, 1 << 20, dtype="float32")
np.testing.assert_allclose(np.asarray(model(x)), np.exp(x), rtol=1e-6)
names = [open(f"/proc/self/task/{task}/comm").read().strip() for task in os.listdir("/proc/self/task")]
workers = [name for name in names if name.removeprefix("pliant-").isdigit()]
with open(sys.argv[2], "w") as out:
    out.write(str(len(workers) + 1))
"""
GRANTED = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1


def team(folder: Path, given: str = "", **variables: str) -> int:
    """The size of the team of a process that runs something large. It must print nothing."""
    env = {k: v for k, v in os.environ.items() if k not in ("PLIANT_NUM_THREADS", "OMP_NUM_THREADS")}
    args = [sys.executable, "-c", PROGRAM, given, str(folder / "threads")]
    ran = subprocess.run(args, env=env | variables, capture_output=True, text=True, timeout=300, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
    return int((folder / "threads").read_text())


@pytest.fixture(scope="module")
def granted(tmp_path_factory: pytest.TempPathFactory) -> int:
    """What the system grants: as many as there are CPUs, or fewer where the tests run under a quota."""
    size = team(tmp_path_factory.mktemp("granted"))
    assert 1 <= size <= min(GRANTED, 1024)
    return size


@pytest.mark.parametrize("name", ["PLIANT_NUM_THREADS", "OMP_NUM_THREADS"])
@pytest.mark.parametrize(("value", "size"), [("1", 1), ("1,4", 1), ("10000", None), ("0", None), ("-3", None), ("few", None)])
def test_variables_take_threads_away_and_never_add_any(
    name: str, value: str, size: int | None, granted: int, tmp_path: Path
) -> None:
    assert team(tmp_path, **{name: value}) == (granted if size is None else size)


def test_the_smaller_variable_counts(tmp_path: Path) -> None:
    assert team(tmp_path, PLIANT_NUM_THREADS="1", OMP_NUM_THREADS="8") == 1
    assert team(tmp_path, PLIANT_NUM_THREADS="8", OMP_NUM_THREADS="1") == 1


def test_a_process_of_one_cpu_has_a_team_of_one(tmp_path: Path) -> None:
    cpu = min(os.sched_getaffinity(0))
    assert team(tmp_path, f"cpu={cpu}", PLIANT_NUM_THREADS="8") == 1


@pytest.fixture
def group() -> Iterator[Path]:
    """A group of processes that together get the time of one CPU, of whichever version the system has."""
    root = Path("/sys/fs/cgroup")
    second = (root / "cgroup.controllers").exists()
    place = root / ("" if second else "cpu") / f"pliant-test-{os.getpid()}"
    try:
        place.mkdir()
    except OSError as problem:
        pytest.skip(f"groups of processes cannot be made here: {problem}")
    try:
        try:
            if second:
                (place / "cpu.max").write_text("100000 100000")
            else:
                (place / "cpu.cfs_period_us").write_text("100000")
                (place / "cpu.cfs_quota_us").write_text("100000")
        except OSError as problem:
            pytest.skip(f"groups of processes get no quota here: {problem}")
        yield place
    finally:
        place.rmdir()


def test_a_container_with_the_time_of_one_cpu_has_a_team_of_one(group: Path, tmp_path: Path) -> None:
    assert team(tmp_path, f"group={group}") == 1
