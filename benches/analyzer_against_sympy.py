"""Simplification and proofs of typical shape expressions: Pliant's analyzer and SymPy in one run."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import sympy

from pliant import arith, tir
from pliant.ir import Range
from shape_expression_facts import Fact, Vocabulary, expressions, facts

MINIMA = {"n": 0, "m": 0, "k": 0, "n1": 1, "h": 32, "w": 32}
LARGE = 1 << 40


def pliant_vocabulary() -> Vocabulary:
    """Returns the vocabulary in which shape expressions are built with Pliant's `Analyzer`."""
    symbols = {name: tir.Var(name, "int64") for name in MINIMA}
    return Vocabulary(**symbols, minimum=tir.min, maximum=tir.max)


def fresh_analyzer(symbols: Vocabulary) -> arith.Analyzer:
    """A new analyzer that knows only the ranges of the symbols."""
    analyzer = arith.Analyzer()
    for name, low in MINIMA.items():
        analyzer.bind(getattr(symbols, name), Range(low, LARGE))
    return analyzer


def sympy_vocabulary() -> Vocabulary:
    """Returns the vocabulary in which shape expressions are built with SymPy. A symbol with a
    minimum above 0 is written as the minimum plus a nonnegative symbol.
    """
    symbols = {}
    for name, low in MINIMA.items():
        base = sympy.Symbol(name, integer=True, nonnegative=True)
        symbols[name] = base + low if low else base
    return Vocabulary(**symbols, minimum=sympy.Min, maximum=sympy.Max)


def first_call(prepare: Callable[[], Callable[[], object]], repeat: int) -> float:
    """Returns the median time of a call in microseconds. Before each of the `repeat` calls, `prepare` creates a fresh state and
    returns the function to time.
    """
    times = []
    for _ in range(repeat):
        run = prepare()
        start = time.perf_counter_ns()
        run()
        times.append(time.perf_counter_ns() - start)
    return statistics.median(times) / 1e3


def pliant_time(run: Callable[[arith.Analyzer], object], symbols: Vocabulary) -> float:
    """Returns the time of one simplification or proof with a fresh Pliant analyzer, in
    microseconds.
    """
    return first_call(lambda: lambda analyzer=fresh_analyzer(symbols): run(analyzer), 9)


def sympy_time(run: Callable[[], object]) -> float:
    """Returns the time of one simplification or proof with an empty SymPy cache, in
    microseconds.
    """

    def prepare() -> Callable[[], object]:
        sympy.core.cache.clear_cache()
        return run

    return first_call(prepare, 1)


def pliant_proves(analyzer: arith.Analyzer, fact: Fact) -> bool:
    """Whether Pliant's analyzer proves a fact `(name, left, relation, right)`."""
    _, left, relation, right = fact
    if relation == "==":
        return analyzer.can_prove_equal(left, right)
    return analyzer.can_prove(left <= right if relation == "<=" else left < right)


def sympy_proves(fact: Fact) -> bool:
    """Whether SymPy proves a fact `(name, left, relation, right)`."""
    _, left, relation, right = fact
    if relation == "==":
        return sympy.simplify(left - right) == 0
    difference = sympy.simplify(right - left)
    return bool((difference >= 0) == True) if relation == "<=" else bool((difference > 0) == True)  # noqa: E712


def report(name: str, ours: list[float], theirs: list[float]) -> None:
    """Prints one line of the table: the median times of a group of expressions, and their ratio."""
    ratio = statistics.median(t / o for o, t in zip(ours, theirs))
    print(f"{name:10} {len(ours):4} expressions   pliant {statistics.median(ours):8.2f} us"
          f"   sympy {statistics.median(theirs):10.1f} us   median ratio {ratio:8.0f}x")


def main() -> None:
    """Prints the table of times, and lists the facts that Pliant does not prove."""
    ours, theirs = pliant_vocabulary(), sympy_vocabulary()
    simplify = [pliant_time(lambda a, e=e: a.simplify(e), ours) for _, e in expressions(ours)]
    simplify_peer = [sympy_time(lambda e=e: sympy.simplify(e)) for _, e in expressions(theirs)]
    report("simplify", simplify, simplify_peer)

    ours_facts, their_facts = list(facts(ours)), list(facts(theirs))
    prove = [pliant_time(lambda a, f=f: pliant_proves(a, f), ours) for f in ours_facts]
    prove_peer = [sympy_time(lambda f=f: sympy_proves(f)) for f in their_facts]
    report("prove", prove, prove_peer)

    unproved = [f[0] for f in ours_facts if not pliant_proves(fresh_analyzer(ours), f)]
    peer_proved = sum(sympy_proves(f) for f in their_facts)
    print(f"proved: pliant {len(ours_facts) - len(unproved)} of {len(ours_facts)}, sympy {peer_proved}")
    for name in unproved:
        print(f"  not proved: {name}")


if __name__ == "__main__":
    main()
