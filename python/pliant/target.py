"""Compilation targets. Pliant compiles for the CPU on which it runs."""

from __future__ import annotations

import threading

from pliant.error import UnsupportedError

__all__ = ["Target"]

_entered = threading.local()
# The code generator that each name requests.
_KINDS = {"auto": "auto", "cpu": "auto", "c": "auto", "cranelift": "cranelift", "llvm": "llvm"}


def _names_may_be_foreign() -> bool:
    """Whether targets may name other devices until code is generated for them: programs written for TVM create such targets
    before they ask whether the device exists."""
    from pliant.tvm._finder import is_installed

    return is_installed()


class Target:
    """A target, given by its name. All names mean the CPU on which Pliant runs:

    - ``"auto"``, ``"cpu"`` and ``"c"``: Cranelift; in builds with LLVM, LLVM then compiles the loop
      functions in the background and replaces their code. The environment variable ``PLIANT_TIER``
      selects one of the other targets instead;
    - ``"cranelift"``: Cranelift, which compiles fast;
    - ``"llvm"``: LLVM, which uses the widest vectors of the CPU. Builds without LLVM use
      Cranelift instead (``build_info()["backends"]`` lists what a build contains).

    Options after the name and ``host`` are ignored; they are accepted for compatibility with TVM.

    Raises ``UnsupportedError`` for other names; if ``import tvm`` is Pliant, only when code is generated for them.
    """

    def __init__(self, target: str | Target | dict[str, object] = "auto", host: object = None) -> None:
        if isinstance(target, Target):
            name = target.kind
        elif isinstance(target, dict):
            name = str(target.get("kind", ""))
        else:
            name = (str(target).split() or [""])[0]
        if name not in _KINDS and not _names_may_be_foreign():
            known = ", ".join(sorted(_KINDS))
            raise UnsupportedError(f"target '{name}' is not supported (known: {known})")
        self.kind: str = name

    @property
    def backend(self) -> str:
        """The name of the requested code generator: ``"auto"``, ``"cranelift"`` or ``"llvm"``."""
        if self.kind not in _KINDS:
            raise UnsupportedError(f"target '{self.kind}' is not supported (known: {', '.join(sorted(_KINDS))})")
        return _KINDS[self.kind]

    @property
    def keys(self) -> list[str]:
        """The groups of targets to which the target belongs."""
        return ["cpu"] if self.kind in _KINDS else [self.kind, "gpu"]

    @property
    def attrs(self) -> dict[str, object]:
        """The options of the target, which are not kept."""
        return {}

    @property
    def host(self) -> Target | None:
        """``None``: there is one device."""
        return None

    @staticmethod
    def list_kinds() -> list[str]:
        """Returns the names of targets."""
        return sorted(_KINDS)

    @staticmethod
    def current(allow_none: bool = True) -> Target | None:
        """Returns the target of the innermost ``with target:`` of this thread, or ``None``. Raises ``ValueError`` if there is none
        and ``allow_none`` is not set."""
        stack = getattr(_entered, "stack", None)
        if not stack and not allow_none:
            raise ValueError("there is no current target (help: write this inside `with Target(\"llvm\"):`)")
        return stack[-1] if stack else None

    def export(self) -> dict[str, object]:
        """Returns the target as a dict that ``Target`` accepts."""
        return {"kind": self.kind}

    def with_host(self, host: object) -> Target:
        """Returns the target itself. ``host`` is ignored."""
        return self

    def __enter__(self) -> Target:
        if not hasattr(_entered, "stack"):
            _entered.stack = []
        _entered.stack.append(self)
        return self

    def __exit__(self, *exc: object) -> None:
        _entered.stack.pop()

    def __str__(self) -> str:
        return self.kind

    def __repr__(self) -> str:
        return f"Target({self.kind!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Target) and other.kind == self.kind

    def __hash__(self) -> int:
        return hash(self.kind)
