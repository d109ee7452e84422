"""Runs the benchmarks of `make bench` and prints their tables. Each can also run alone."""

from __future__ import annotations

import python_call_overhead
import minilm_encoder
import long_operator_chain
import control_flow_cost
import onnx_import_cost
import analyzer_against_sympy

BENCHMARKS = {
    "symbolic": analyzer_against_sympy,
    "calls": python_call_overhead,
    "loops": control_flow_cost,
    "encoder": minilm_encoder,
    "long chain": long_operator_chain,
    "onnx": onnx_import_cost,
}


def main() -> None:
    """Runs the benchmarks in sequence."""
    for name, module in BENCHMARKS.items():
        print(f"\n== {name} ==", flush=True)
        module.main()


if __name__ == "__main__":
    main()
