"""all-MiniLM-L6-v2 over several shapes: Pliant and ONNX Runtime with the same weights, in one run."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
import onnxruntime

import pliant
from peers import onnx_minilm
from timing import geomean, interleaved, require_release

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples"))
from minilm import encoder, weights  # noqa: E402

THREADS = 2


def inputs(batch: int, seq: int) -> tuple[np.ndarray, np.ndarray]:
    """Creates token ids and a padding mask. The first sequence of the batch has the full length."""
    rng = np.random.default_rng(batch * 1000 + seq)
    lengths = np.concatenate([[seq], rng.integers(max(1, seq // 2), seq + 1, batch - 1)])
    mask = (np.arange(seq)[None, :] < lengths[:, None]).astype(np.int64)
    return rng.integers(1000, 30000, (batch, seq)) * mask, mask


def compile_time(module: pliant.IRModule, repeat: int = 5) -> tuple[pliant.Model, float]:
    """Compiles the model several times. Returns a compiled model and the shortest compile time in
    seconds.
    """
    best = float("inf")
    for _ in range(repeat):
        start = time.perf_counter()
        model = pliant.compile(module)
        best = min(best, time.perf_counter() - start)
    return model, best


def first_and_repeated_run_times(model: pliant.Model, count: int = 40) -> tuple[float, float]:
    """Runs the model at `count` new shapes. Returns the median seconds of the first and of the
    second run at each shape.
    """
    first, second = [], []
    for seq in range(9, 9 + count):
        ids, mask = inputs(1, seq)
        for times in (first, second):
            start = time.perf_counter()
            model(ids, mask)
            times.append(time.perf_counter() - start)
    return float(np.median(first)), float(np.median(second))


def main() -> None:
    """Prints the compile time, the run time at new shapes, and a table of run times by shape."""
    require_release()
    config, tensors = weights.load_config(), weights.load_weights()
    model, seconds = compile_time(encoder.build(config, tensors))
    print(f"compile: {seconds:.3f} s")

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = THREADS
    proto = onnx_minilm.model(tensors).SerializeToString()
    peer = onnxruntime.InferenceSession(proto, options, providers=["CPUExecutionProvider"])

    first, second = first_and_repeated_run_times(model)
    print(f"never-seen shape {first * 1e3:.3f} ms, repeated {second * 1e3:.3f} ms, ratio {first / second:.2f}")
    ratios = []
    print(f"{'batch':>6} {'seq':>5} {'pliant ms':>10} {'ort ms':>8} {'ratio':>6} {'max error':>10}")
    for case in onnx_minilm.cases():
        ids, mask = inputs(**case)
        feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        error = np.abs(np.array(model(ids, mask)) - peer.run(None, feed)[0]).max()
        times = interleaved({"ours": lambda: model(ids, mask), "peer": lambda: peer.run(None, feed)})
        ratios.append(times["ours"] / times["peer"])
        print(f"{case['batch']:6} {case['seq']:5} {times['ours'] * 1e3:10.3f} {times['peer'] * 1e3:8.3f}"
              f" {ratios[-1]:6.2f} {error:10.1e}")
    print(f"geomean ratio to ONNX Runtime, {THREADS} threads: {geomean(ratios):.2f}")
    print(f"compilations: {model.stats().compilations}")


if __name__ == "__main__":
    main()
