"""Compile time of one module that uses every operator once.

``python benches/all_operators_compile_time.py`` takes one program per operator from the operators' test suite, all with symbolic dims only, as the
functions of one module.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from pathlib import Path

import pliant
from pliant import relax
from pliant.script import from_source

ROOT = Path(__file__).resolve().parent.parent


def programs() -> dict[str, str]:
    """Returns, for each operator, the first program of the operators' test suite that uses the
    operator.
    """
    sys.path.insert(0, str(ROOT / "tests" / "python" / "operators"))
    from cases import CASES  # type: ignore[import-not-found]

    programs_by_operator: dict[str, str] = {}
    for case in CASES:
        for name in re.findall(r"\bR\.((?:\w+\.)*\w+)\(", case.expr):
            programs_by_operator.setdefault(name, case.script)
    return programs_by_operator


def combine_programs(scripts: dict[str, str]) -> pliant.IRModule:
    """Returns one module that contains the functions of all given programs."""
    module = pliant.IRModule()
    for name, script in scripts.items():
        program = from_source(script)
        for var, func in program.functions_items():
            label = f"{name.replace('.', '_')}_{var.name_hint}"
            module[label] = func.with_attr("global_symbol", label) if isinstance(func, relax.Function) else func
    return module


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    args = parser.parse_args()
    scripts = programs()
    module = combine_programs(scripts)
    times = []
    for _ in range(args.runs):
        start = time.perf_counter()
        pliant.compile(module)
        times.append(time.perf_counter() - start)
    cores = len(os.sched_getaffinity(0))
    profile = pliant._core.build_info()["profile"]
    print(f"{len(scripts)} operators in {len(list(module.functions_items()))} functions, {cores} cores, {profile} build")
    print("compile: " + ", ".join(f"{t:.2f} s" for t in times))


if __name__ == "__main__":
    main()
