"""Runs the benchmarks of `make bench` and prints their tables. Each can also run alone."""

from __future__ import annotations

import calls
import encoder
import long_chain
import loops
import onnx_models
import symbolic

BENCHMARKS = {
    "symbolic": symbolic,
    "calls": calls,
    "loops": loops,
    "encoder": encoder,
    "long chain": long_chain,
    "onnx": onnx_models,
}


def main() -> None:
    """Runs the benchmarks in sequence."""
    for name, module in BENCHMARKS.items():
        print(f"\n== {name} ==", flush=True)
        module.main()


if __name__ == "__main__":
    main()
