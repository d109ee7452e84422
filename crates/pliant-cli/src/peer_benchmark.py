"""Times an ONNX model with another runtime for `pliant bench --against`.

Reads `job.json` and the arrays from the folder argv[1], and writes `answer.json`. Each stream is a thread that runs the model until
the time is over; runs release Python's global lock.
"""

import json
import sys
import threading
import time
from pathlib import Path

# The exit code if the peer is not installed.
PEER_MISSING = 3

folder = Path(sys.argv[1])
job = json.loads((folder / "job.json").read_text())
try:
    import numpy as np

    if job["peer"] == "onnxruntime":
        import onnxruntime
    else:
        import openvino
except ImportError as e:
    print(e, file=sys.stderr)
    sys.exit(PEER_MISSING)


def load_onnxruntime():
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    if job["threads"]:
        options.intra_op_num_threads = job["threads"]
    session = onnxruntime.InferenceSession(job["model"], options, providers=["CPUExecutionProvider"])
    return lambda: lambda feeds: session.run(None, feeds)


def load_openvino():
    core = openvino.Core()
    config = {"INFERENCE_NUM_THREADS": job["threads"]} if job["threads"] else {}
    compiled = core.compile_model(job["model"], "CPU", {"PERFORMANCE_HINT": "LATENCY", **config})

    def stream():
        request = compiled.create_infer_request()
        return lambda feeds: request.infer(feeds, share_inputs=True)

    return stream


def measure(stream, feeds):
    """Returns the times of all runs in milliseconds, and the time of the measurement in seconds."""
    run = stream()
    run(feeds)
    end = time.perf_counter() + job["warm_up"]
    while time.perf_counter() < end:
        run(feeds)
    times, errors = [], []
    begin = time.perf_counter()

    def work(run):
        own = []
        try:
            while len(own) < 3 or (time.perf_counter() - begin < job["seconds"] and len(own) < 100_000):
                start = time.perf_counter()
                run(feeds)
                own.append((time.perf_counter() - start) * 1e3)
        except Exception as e:
            errors.append(e)
        times.extend(own)

    threads = [threading.Thread(target=work, args=(stream(),)) for _ in range(job["streams"] - 1)]
    for thread in threads:
        thread.start()
    work(run)
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return times, time.perf_counter() - begin


start = time.perf_counter()
stream = load_onnxruntime() if job["peer"] == "onnxruntime" else load_openvino()
load_seconds = time.perf_counter() - start
points = [measure(stream, {name: np.load(folder / file) for name, file in files}) for files in job["points"]]
version = (onnxruntime if job["peer"] == "onnxruntime" else openvino).__version__
(folder / "answer.json").write_text(json.dumps({"version": version, "load_seconds": load_seconds, "points": points}))
