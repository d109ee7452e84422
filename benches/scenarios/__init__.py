"""Common problems of other runtimes, as scenarios that Pliant must pass: T1 to T29, and S1 to S8 on
security.

``python -m scenarios``, within ``benches/``, runs them all; ``python -m scenarios T4 S2`` runs
some. Each runs in a separate process. ``--write`` writes their results into
``docs/internals/scenarios.md`` and keeps the rows of other scenarios.

A scenario is a function decorated with `scenario` in one of the files here. It returns an
`Outcome`; if it raises, it failed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Outcome:
    """The result of a scenario.

    `passed` is true if all requirements hold, false if one does not, and ``None`` if only a part
    could be tested. `measured` is a line with the measured numbers. `missing` states what was
    not tested or does not hold, and why; it is empty if `passed` is true.
    """

    passed: bool | None
    measured: str
    missing: str = ""


@dataclass(frozen=True)
class Scenario:
    """A scenario: its name (``T1``), its requirement in a line, and the function that runs it."""

    name: str
    requirement: str
    run: Callable[[], Outcome]


SCENARIOS: dict[str, Scenario] = {}


def yes_or_no(holds: bool) -> str:
    """Returns the word for a condition in a table row."""
    return "yes" if holds else "no"


def scenario(name: str, requirement: str) -> Callable[[Callable[[], Outcome]], Callable[[], Outcome]]:
    """Returns a decorator that registers a function as the scenario with this name and
    requirement.
    """

    def register(run: Callable[[], Outcome]) -> Callable[[], Outcome]:
        assert name not in SCENARIOS, f"{name} is registered twice"
        SCENARIOS[name] = Scenario(name, requirement, run)
        return run

    return register
