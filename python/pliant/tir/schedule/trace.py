"""The steps of a schedule: they print as Python code and can be applied to other modules."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pliant._core import BlockRV, LoopRV
from pliant.error import ScheduleError
from pliant.tir.index_map import IndexMap

if TYPE_CHECKING:
    from pliant.tir.schedule.schedule import Schedule

__all__ = ["ExprRV", "Instruction", "Trace"]


class ExprRV(int):
    """An integer that a sampling primitive returned. If it is the argument of a later primitive, a replay passes the integer that it
    has sampled instead. The results of arithmetic are plain integers, which a replay repeats.
    """


def _key(value: BlockRV | LoopRV | ExprRV) -> Any:
    """Returns the key by which a loop, a block or a sampled integer is stored in a dict. Integers of different samples
    have different keys, even if they are equal.
    """
    return id(value) if isinstance(value, ExprRV) else value


@dataclass(frozen=True)
class Instruction:
    """One call of a primitive of a schedule, with its arguments and results."""

    name: str
    """The name of the primitive."""
    arguments: dict[str, Any]
    """The arguments by name; those without names have the key ``*``. Loops and blocks are those that earlier calls returned."""
    results: tuple[Any, ...]
    """The loops, blocks or numbers that the call returned."""
    decision: Any = None
    """The choice of a sampling primitive, which a replay repeats."""
    returns_list: bool = False
    """Whether the call returned the results as a list."""


@dataclass
class Trace:
    """The list of the primitives that were applied to a schedule, in order."""

    insts: list[Instruction] = field(default_factory=list)

    @property
    def decisions(self) -> dict[int, Any]:
        """The choices of the sampling primitives, by the positions of their instructions."""
        return {i: inst.decision for i, inst in enumerate(self.insts) if inst.decision is not None}

    def as_python(self) -> list[str]:
        """Returns the calls as lines of Python code, in which ``sch`` is the schedule."""
        return list(_Printer().lines(self.insts))

    def __str__(self) -> str:
        body = self.as_python() or ["pass"]
        lines = ["from pliant import tir", "", "", "def apply_trace(sch: tir.Schedule) -> None:", *(f"    {line}" for line in body)]
        return "\n".join(lines) + "\n"

    def show(self) -> None:
        """Prints the calls as a Python function."""
        print(self)  # noqa: T201

    def apply_to_schedule(
        self,
        sch: Schedule,
        remove_postproc: bool = False,
        decision_provider: Callable[[Instruction, Any], Any] | None = None,
    ) -> None:
        """Applies the calls to another schedule.

        ``decision_provider`` returns the choice of each sampling primitive from the instruction and its recorded choice.
        ``remove_postproc`` is accepted for compatibility with TVM; ignored.

        Raises ``ScheduleError`` if a primitive cannot be applied to the module of ``sch``, or returns another number of loops or
        blocks. The steps before it stay applied.
        """
        values: dict[Any, Any] = {}

        def replaced(value: Any) -> Any:
            if isinstance(value, list | tuple):
                return type(value)(replaced(item) for item in value)
            return values.get(_key(value), value) if isinstance(value, BlockRV | LoopRV | ExprRV) else value

        for inst in self.insts:
            arguments = {name: replaced(value) for name, value in inst.arguments.items()}
            if inst.decision is not None:
                chosen = inst.decision if decision_provider is None else decision_provider(inst, inst.decision)
                arguments["decision"] = chosen
            result = getattr(sch, inst.name)(*arguments.pop("*", ()), **arguments)
            new = result if isinstance(result, list | tuple) else () if result is None else (result,)
            if len(new) != len(inst.results):
                raise ScheduleError(f"{inst.name}: returned {len(new)} results, but {len(inst.results)} when the trace was recorded")
            values.update((_key(old), made) for old, made in zip(inst.results, new, strict=True))


class _Printer:
    """Gives each loop and block a name, and prints instructions."""

    def __init__(self) -> None:
        self.names: dict[Any, str] = {}
        self.counts = {"b": 0, "l": 0, "v": 0}

    def lines(self, insts: list[Instruction]) -> Iterator[str]:
        for inst in insts:
            arguments = {**inst.arguments, **({} if inst.decision is None else {"decision": inst.decision})}
            positional = [self.value(value) for value in arguments.pop("*", ())]
            text = ", ".join([*positional, *(f"{name}={self.value(value)}" for name, value in arguments.items())])
            call = f"sch.{inst.name}({text})"
            results = [self.define(result) for result in inst.results]
            target = f"({results[0]},)" if inst.returns_list and len(results) == 1 else ", ".join(results)
            yield f"{target} = {call}" if results else call

    def define(self, result: Any) -> str:
        kind = "b" if isinstance(result, BlockRV) else "l" if isinstance(result, LoopRV) else "v"
        name = f"{kind}{self.counts[kind]}"
        self.counts[kind] += 1
        self.names[_key(result)] = name
        return name

    def value(self, value: Any) -> str:
        if isinstance(value, list):
            return f"[{', '.join(self.value(item) for item in value)}]"
        if isinstance(value, tuple):
            return f"({', '.join(self.value(item) for item in value)}{',' if len(value) == 1 else ''})"
        if isinstance(value, BlockRV | LoopRV | ExprRV):
            return self.names.get(_key(value), repr(value))
        return value.as_python() if isinstance(value, IndexMap) else repr(value)
