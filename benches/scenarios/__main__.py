"""Runs scenarios, each in a separate process, and writes their table. See `scenarios`."""

from __future__ import annotations

import argparse
import importlib
import json
import pkgutil
import platform
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

import pliant
import scenarios
from scenarios import SCENARIOS, Outcome

ROOT = Path(__file__).resolve().parents[2]
PAGE_FILE = ROOT / "docs/internals/scenarios.md"
RESULTS_FILE = Path(__file__).parent / "results.json"
TIMEOUT_SECONDS = 3600

PAGE_HEADER = """# Scenarios

Common problems of other runtimes, as scenarios that Pliant must pass: T1 to T29, and S1 to S8 on security. They are
defined in `benches/scenarios`; `python -m scenarios --write`, within `benches/`, writes this page. "Missing" introduces what was
not tested or does not hold.

| scenario | passed | requirement | result |
|---|---|---|---|
"""


def import_scenarios() -> None:
    """Imports all files of scenarios, which registers them."""
    for module in pkgutil.iter_modules(scenarios.__path__):
        if module.name != "__main__":
            importlib.import_module(f"scenarios.{module.name}")


def sort_key(name: str) -> tuple[bool, int]:
    """Sort key: T1 to T29, then S1 to S8."""
    return name.startswith("S"), int(name[1:])


def run_here(name: str) -> dict[str, Any]:
    """Runs a scenario in this process and returns its outcome as a table row."""
    try:
        outcome = SCENARIOS[name].run()
    except Exception as error:  # A scenario that raises has failed; the row says how.
        traceback.print_exc()
        outcome = Outcome(False, "", f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}")
    return {"passed": outcome.passed, "measured": outcome.measured, "missing": outcome.missing}


def run_in_process(name: str) -> dict[str, Any]:
    """Runs a scenario in a separate process and returns its outcome as a table row. A process that
    ends abnormally counts as a failure.
    """
    command = [sys.executable, "-m", "scenarios", "--here", name]
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=TIMEOUT_SECONDS, cwd=ROOT / "benches", check=False)
    except subprocess.TimeoutExpired:
        return {"passed": False, "measured": "", "missing": f"it takes more than {TIMEOUT_SECONDS} s"}
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not lines:
        return {"passed": False, "measured": "", "missing": f"its process ended with status {done.returncode}"}
    row: dict[str, Any] = json.loads(lines[-1])
    return row


def cpu_name() -> str:
    """The name of this machine's CPU."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


def render_page(rows: dict[str, dict[str, Any]]) -> str:
    """Returns the text of the page with the results of all scenarios."""
    text = PAGE_HEADER
    words = {True: "yes", False: "**no**", None: "in part"}
    for name in sorted(SCENARIOS, key=sort_key):
        row = rows.get(name, {"passed": None, "measured": "", "missing": "not run"})
        missing = f"*Missing:* {row['missing']}" if row["missing"] else ""
        result = "<br>".join(text for text in (row["measured"], missing) if text)
        cells = [name, words[row["passed"]], SCENARIOS[name].requirement, result]
        text += "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"
    machines = sorted({row["cpu"] for row in rows.values() if "cpu" in row})
    return text + f"\nMeasured on: {', '.join(machines)}.\n"


def main() -> None:
    """The entry point: runs the scenarios that the command line names, or all."""
    parser = argparse.ArgumentParser(prog="python -m scenarios", description=__doc__)
    parser.add_argument("names", nargs="*", help="scenarios, such as T4; all without any")
    parser.add_argument("--write", action="store_true", help="write the results and the page")
    parser.add_argument("--here", action="store_true", help="run in this process and print the row as JSON")
    args = parser.parse_args()
    import_scenarios()
    names = args.names or sorted(SCENARIOS, key=sort_key)
    unknown = [name for name in names if name not in SCENARIOS]
    if unknown:
        parser.error(f"there is no scenario {', '.join(unknown)}")
    if args.here:
        print(json.dumps(run_here(names[0])), flush=True)
        return
    rows = json.loads(RESULTS_FILE.read_text()) if RESULTS_FILE.exists() else {}
    for name in names:
        rows[name] = run_in_process(name) | {"cpu": f"{cpu_name()} ({pliant.build_info()['profile']} build)"}
        print(name, json.dumps(rows[name]), flush=True)
        if args.write:
            RESULTS_FILE.write_text(json.dumps(rows, indent=1, sort_keys=True) + "\n")
            PAGE_FILE.write_text(render_page(rows))


if __name__ == "__main__":
    main()
