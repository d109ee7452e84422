"""Scenarios on memory and time: many shapes, many threads, sizes that go up and down."""

from __future__ import annotations

import gc
import itertools
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import pliant
from scenarios import Outcome, scenario, yes_or_no
from scenarios.small_onnx_models import conv_net, executable_mappings, mlp, rss


@scenario("T1", "memory does not grow with the number of shapes: 50,000 runs over 5,000 shapes on 8 threads")
def many_shapes() -> Outcome:
    """Scenario: runs a model from 8 threads at 5,000 shapes in random order, and reads the resident
    memory.
    """
    tiny = pliant.compile(mlp(8), threads=2)
    tiny.run(None, {"x": np.ones((1, 1, 32), "float32")})
    del tiny
    gc.collect()
    baseline = rss()
    model = pliant.compile(mlp(), threads=2)
    shapes = list(itertools.product(range(1, 51), range(1, 101)))
    r = np.random.default_rng(0)

    def run(count: int) -> None:
        selections = r.integers(0, len(shapes), (8, count // 8))

        def worker(indices: np.ndarray) -> None:
            for i in indices:
                b, s = shapes[i]
                model.run(None, {"x": np.ones((b, s, 32), "float32")})

        with ThreadPoolExecutor(8) as threads:
            list(threads.map(worker, selections))

    run(2000)
    early, maps = rss(), executable_mappings()
    run(48000)
    late, maps_late = rss(), executable_mappings()
    del model
    gc.collect()
    after = rss()
    ratio, left = late / early, after - baseline
    passed = ratio <= 1.05 and maps == maps_late and left <= 10
    measured = f"RSS {early:.0f} MB after 2,000 runs, {late:.0f} after 50,000 ({ratio:.2f}); {left:+.1f} MB after the model is dropped"
    return Outcome(passed, measured, "" if passed else f"executable mappings {maps} and {maps_late}")


@scenario("T16", "peak memory is predicted before a run, and released after a huge run")
def memory_after_huge_run() -> Outcome:
    """Scenario: runs a small shape, a huge one, and the small one again, and reads the memory."""
    model = pliant.compile(conv_net(), threads=2)
    small = np.ones((1, 3, 32, 32), "float32")
    for _ in range(3):
        model.run(None, {"x": small})
    before = rss()
    model.run(None, {"x": np.ones((8, 3, 1024, 1024), "float32")})
    gc.collect()
    model.run(None, {"x": small})
    after = rss()
    holds = after - before <= 80
    return Outcome(
        None if holds else False,
        f"RSS {before:.0f} MB, {after:.0f} after a run with activations of 512 MB",
        "there is no function that predicts the peak memory of a shape",
    )


@scenario("T18", "one model on 32 threads with random shapes; fork before and after the first run")
def threads_and_forks() -> Outcome:
    """Scenario: compares results on 32 threads with results on one thread, and runs the model in forked
    children.
    """
    import os
    import pickle

    model = pliant.compile(mlp(), threads=2)
    r = np.random.default_rng(0)
    inputs = [r.standard_normal((int(b), int(s), 32)).astype("float32") for b, s in r.integers(0, 20, (300, 2))]
    want = [model.run(None, {"x": x})[0] for x in inputs]
    with ThreadPoolExecutor(32) as threads:
        got = list(threads.map(lambda x: model.run(None, {"x": x})[0], inputs))
    same = all(np.array_equal(np.asarray(a), np.asarray(b)) for a, b in zip(want, got, strict=True))
    children = []
    for fresh in (False, True):
        pid = os.fork()
        if pid == 0:
            m = pliant.compile(mlp(), threads=2) if fresh else model
            os._exit(int(not np.allclose(m.run(None, {"x": inputs[0]})[0], want[0])))
        children.append(os.waitpid(pid, 0)[1])
    try:
        pickle.dumps(model)
        pickles = True
    except Exception:
        pickles = False
    passed = same and children == [0, 0]
    return Outcome(
        None if passed and not pickles else passed,
        f"300 shapes on 32 threads: results {'equal' if same else 'differ'}; forked children exit with {' and '.join(map(str, children))}",
        "" if pickles else "models cannot be pickled; free-threaded Python 3.14 is not installed here",
    )


@scenario("T9", "threads follow the CPUs of the process, and nothing spins when idle")
def threads_of_the_process() -> Outcome:
    """Scenario: restricts the process to one CPU, runs 8 models on 8 threads, and measures the CPU
    time of an idle process.
    """
    import os
    import subprocess
    import sys

    code = "import pliant, os; os.sched_setaffinity(0, {0});\nfrom scenarios.small_onnx_models import mlp\n"
    code += "import numpy as np; m = pliant.compile(mlp()); m.run(None, {'x': np.ones((64, 64, 32), 'float32')});"
    code += "print(len(os.listdir('/proc/self/task')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    single, errors = int(done.stdout), done.stderr
    models = [pliant.compile(mlp()) for _ in range(8)]
    x = np.ones((16, 16, 32), "float32")
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda m: [m.run(None, {"x": x}) for _ in range(50)], models))
        total = len(os.listdir("/proc/self/task"))
    time.sleep(0.2)
    before = time.process_time()
    time.sleep(1)
    idle = time.process_time() - before
    passed = single <= 3 and errors == "" and total <= 8 + 1 + 2 * (os.cpu_count() or 1) and idle < 0.01
    measured = f"{single} threads of the process on one CPU, stderr empty: {yes_or_no(not errors)}; {total} threads while 8 threads run 8 models; idle {idle * 100:.1f} % of a CPU"
    return Outcome(None if passed else False, measured, "no container with a CPU quota is available here; throughput and scaling are not compared")
