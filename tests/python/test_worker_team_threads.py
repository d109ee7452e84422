"""Tests the number of threads of the worker team: the number that the system allows the process,
limited further by environment variables.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import pliant
from pliant.script import from_source

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
others = len(os.listdir("/proc/self/task"))
np.testing.assert_allclose(np.asarray(model(x)), np.exp(x), rtol=1e-6)
with open(sys.argv[2], "w") as out:
    out.write(str(len(os.listdir("/proc/self/task")) - others + 1))
"""
PRODUCT = '''
@R.function
def main(x: R.Tensor(("n", "k"), "float32"), w: R.Tensor(("k", "m"), "float32")):
    y = R.matmul(x, w)
    return y
'''
CONFINED = '''
import sys, time
from test_worker_team_threads import PRODUCT, masks, tasks
import numpy as np, os
import pliant
from pliant.script import from_source

model = pliant.compile(from_source(PRODUCT))
x, given = np.ones((500, 256), "float32"), os.sched_getaffinity(0)

def run():
    for _ in range(10):
        model(x, np.ones((256, 256), "float32"))
        time.sleep(0.003)
    return masks()

def expect(cpus):
    """On a busy machine, a worker may be late to wake and to restore its mask."""
    deadline = time.monotonic() + 20
    while (found := run()) != {frozenset(cpus)}:
        assert time.monotonic() < deadline, f"the workers have {found}, not {cpus}"

expect(given)
one = min(given)
for task in tasks():
    os.sched_setaffinity(task, {one})
expect({one})
for task in tasks():
    os.sched_setaffinity(task, given)
expect(given)
'''
# The process's own team keeps the size that was right at its first use; a team of another size gets
# its own threads.
LATER = """
import os
from test_worker_team_threads import PRODUCT, becomes, tasks
import numpy as np, pliant
from pliant.script import from_source

x = np.ones((500, 256), "float32")
pliant.compile(from_source(PRODUCT))(x, np.ones((256, 256), "float32"))
assert len(tasks()) == 0
del os.environ["PLIANT_NUM_THREADS"]
model = pliant.compile(from_source(PRODUCT), threads=2)
model(x, np.ones((256, 256), "float32"))
assert becomes(1)
"""
GRANTED = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1


def tasks() -> list[int]:
    """Returns the ids of the worker team's threads in this process."""
    names = {int(task.name): (task / "comm").read_text().strip() for task in Path("/proc/self/task").iterdir()}
    return [task for task, name in names.items() if name.removeprefix("pliant-").isdigit()]


def becomes(count: int) -> bool:
    """Waits until the number of worker threads is `count`; returns whether it is. A thread sets its
    own name only when it first runs.
    """
    until = time.monotonic() + 30
    while len(tasks()) != count and time.monotonic() < until:
        time.sleep(0.01)
    return len(tasks()) == count


def masks() -> set[frozenset[int]]:
    """Returns the sets of CPUs on which the worker threads may run."""
    return {frozenset(os.sched_getaffinity(task)) for task in tasks()}


def large(folder: Path, given: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
    """Starts a process that runs a large program and writes the size of its worker team to a file
    in the folder.
    """
    env = {k: v for k, v in os.environ.items() if k not in ("PLIANT_NUM_THREADS", "OMP_NUM_THREADS")}
    args = [sys.executable, "-c", PROGRAM, given, str(folder / "threads")]
    return subprocess.run(args, env=env | variables, capture_output=True, text=True, timeout=300, check=False)


def team(folder: Path, given: str = "", **variables: str) -> int:
    """Returns the worker team's size in a process that runs a large program. The process must print
    nothing.
    """
    ran = large(folder, given, **variables)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
    return int((folder / "threads").read_text())


def alone(program: str, **variables: str) -> None:
    """Runs a program, which may import this file, in a separate process that must print nothing."""
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])} | variables
    ran = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, timeout=300, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


@pytest.fixture(scope="module")
def granted(tmp_path_factory: pytest.TempPathFactory) -> int:
    """Returns the number of worker threads that the system allows: the number of CPUs, or fewer if
    the tests run under a quota.
    """
    size = team(tmp_path_factory.mktemp("granted"))
    assert 1 <= size <= min(GRANTED, 1024)
    return size


@pytest.mark.parametrize("name", ["PLIANT_NUM_THREADS", "OMP_NUM_THREADS"])
@pytest.mark.parametrize(("value", "size"), [("1", 1), ("1,4", 1), ("10000", None)])
def test_variables_only_reduce_the_number_of_threads(
    name: str, value: str, size: int | None, granted: int, tmp_path: Path
) -> None:
    assert team(tmp_path, **{name: value}) == (granted if size is None else size)


@pytest.mark.parametrize("value", ["0", "-3", "few", "2.5", "99999999999999999999"])
def test_invalid_thread_counts_in_pliant_variables_are_reported(value: str, granted: int, tmp_path: Path) -> None:
    assert team(tmp_path, OMP_NUM_THREADS=value) == granted
    ran = large(tmp_path, PLIANT_NUM_THREADS=value)
    assert ran.returncode == 1
    assert f'PLIANT_NUM_THREADS is "{value}", but must be a positive number of threads' in ran.stderr


def test_models_with_equal_thread_counts_share_a_team() -> None:
    x, before = np.ones((500, 256), "float32"), len(tasks())
    models = [pliant.compile(from_source(PRODUCT), threads=GRANTED + 3) for _ in range(4)]
    for model in models:
        model(x, np.ones((256, 256), "float32"))
    assert becomes(before + GRANTED + 2)


@pytest.mark.skipif(GRANTED < 2, reason="there is one CPU alone")
def test_workers_keep_their_cpu_affinity() -> None:
    alone(CONFINED)


def test_later_variable_changes_do_not_affect_running_teams() -> None:
    alone(LATER, PLIANT_NUM_THREADS="1")


def test_smaller_variable_wins(tmp_path: Path) -> None:
    assert team(tmp_path, PLIANT_NUM_THREADS="1", OMP_NUM_THREADS="8") == 1
    assert team(tmp_path, PLIANT_NUM_THREADS="8", OMP_NUM_THREADS="1") == 1


def test_single_cpu_process_has_one_thread(tmp_path: Path) -> None:
    cpu = min(os.sched_getaffinity(0))
    assert team(tmp_path, f"cpu={cpu}", PLIANT_NUM_THREADS="8") == 1


@pytest.fixture
def group() -> Iterator[Path]:
    """Creates a control group (of either cgroup version) whose processes together get the time of
    one CPU.
    """
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


def test_single_cpu_quota_has_one_thread(group: Path, tmp_path: Path) -> None:
    assert team(tmp_path, f"group={group}") == 1
