"""Compilation targets. Pliant compiles for the CPU on which it runs."""

from __future__ import annotations

from pliant.error import UnsupportedError

__all__ = ["Target"]

_KINDS = {"llvm": "cranelift", "c": "cranelift", "cpu": "cranelift", "cranelift": "cranelift"}


class Target:
    """A target, given by its name: ``"cranelift"``, ``"llvm"``, ``"c"`` or ``"cpu"``. All names
    mean the CPU and the code generator Cranelift; TVM's names are accepted for compatibility.
    Options after the name and ``host`` are ignored.

    Raises ``UnsupportedError`` for other names.
    """

    def __init__(self, target: str | Target | dict[str, object] = "cranelift", host: object = None) -> None:
        if isinstance(target, Target):
            name = target.kind
        elif isinstance(target, dict):
            name = str(target.get("kind", ""))
        else:
            name = (str(target).split() or [""])[0]
        if name not in _KINDS:
            known = ", ".join(sorted(_KINDS))
            raise UnsupportedError(f"target '{name}' is not supported (known: {known})")
        self.kind: str = name

    @property
    def backend(self) -> str:
        """The name of the code generator: ``"cranelift"``."""
        return _KINDS[self.kind]

    def __enter__(self) -> Target:
        return self

    def __exit__(self, *exc: object) -> None:
        return None

    def __str__(self) -> str:
        return self.kind

    def __repr__(self) -> str:
        return f"Target({self.kind!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Target) and other.kind == self.kind

    def __hash__(self) -> int:
        return hash(self.kind)
