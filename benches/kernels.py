"""The tables of the kernels' benchmarks: each case as a percentage of the machine's peak.

``python kernels.py``, within ``benches/``, runs ``cargo bench -p pliant-kernels`` for all benchmarks, or for the named ones, and prints
tables with one thread and two side by side. ``--write`` replaces the tables in ``docs/internals/measurements/`` and draws the plots again.
The benchmarks of elementary functions and of low-precision weights print their own formats.
"""

from __future__ import annotations

import argparse
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from measurement_pages import write_table
from plots import write_plots

ROOT = Path(__file__).resolve().parents[1]
BENCHES = ["matmul", "float16_matmul", "attention", "convolution", "int8_matmul_and_conv", "recurrent_layers"]
TITLE = re.compile(r"(.+), \w+, (\d+) thr: peak (\d+) GFLOP/s at best, (\d+) in the middle")
CASE = re.compile(r"\| (.+?) \| ([\d.]+) \| (.+?) \| (\d+) \|")


@dataclass
class Table:
    """The results of one benchmark: the machine's peaks and the cases, by number of threads."""

    peaks: dict[int, tuple[str, str]] = field(default_factory=dict)
    cases: dict[str, dict[int, str]] = field(default_factory=dict)

    def markdown(self) -> str:
        """Formats the table in Markdown, with columns of times, rates and percentages for each
        number of threads.
        """
        threads = sorted(self.peaks)
        numbers = {1: "one thread", 2: "two"}
        (best, middle), *others = (self.peaks[n] for n in threads)
        peak = f"Peak {best} GFLOP/s with {numbers[threads[0]]} at best and {middle} in the middle"
        peak += "".join(f", {best} and {middle} with {numbers[n]}" for n, (best, middle) in zip(threads[1:], others, strict=True))
        head = "| case |" + "".join(f" {n} thr us | rate | % of floor |" for n in threads)
        lines = [peak + ".", "", head, "|---" * (1 + 3 * len(threads)) + "|"]
        lines += [
            f"| {name} |" + "|".join(rows_by_threads.get(n, " | | ") for n in threads) + "|"
            for name, rows_by_threads in self.cases.items()
        ]
        return "\n".join(lines) + "\n"


def tables(text: str) -> dict[str, Table]:
    """Parses the tables in the output of `cargo bench`. Returns them by title."""
    tables_by_title: dict[str, Table] = {}
    table, threads = Table(), 0
    for line in text.splitlines():
        if title := TITLE.fullmatch(line.strip()):
            table, threads = tables_by_title.setdefault(title[1], Table()), int(title[2])
            table.peaks[threads] = (title[3], title[4])
        elif (case := CASE.fullmatch(line.strip())) and threads in table.peaks:
            table.cases.setdefault(case[1], {})[threads] = f" {case[2]} | {case[3]} | {case[4]} "
    return tables_by_title


def main() -> None:
    """Runs the benchmarks, prints their tables, and writes them if requested."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="replace the tables in docs/internals/measurements/, and the plots")
    parser.add_argument("bench", nargs="*", help=f"benchmarks to run: {', '.join(BENCHES)} (default: all)")
    args = parser.parse_args()
    for bench in args.bench or BENCHES:
        if bench not in BENCHES:
            parser.error(f"unknown benchmark {bench!r}; choose from {', '.join(BENCHES)}")
        words = ["cargo", "bench", "--package", "pliant-kernels", "--bench", bench]
        process = subprocess.run(words, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
        for title, table in tables(process.stdout).items():
            print(f"{title}\n\n{table.markdown()}", flush=True)
            if args.write:
                write_table(f"benches/kernels.py: {title}", table.markdown())
    if args.write:
        write_plots()


if __name__ == "__main__":
    main()
