"""Passes: module to module. Those of the table by name, your own, and sequences.

>>> mod = relax.transform.LegalizeOps()(mod)
>>> seq = Sequential([relax.transform.ToNonDataflow(), relax.transform.CallTIRRewrite()])
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from pliant import _core
from pliant._core import CorePass, IRModule

__all__ = [
    "Pass",
    "PassContext",
    "Sequential",
    "function_pass",
    "get_pass",
    "list_passes",
    "module_pass",
]

_local = threading.local()


class PassContext:
    """What passes run under: the level, passes to leave out or force, settings, instruments.

    Instruments are objects with ``run_before_pass(mod, info)`` and ``run_after_pass(mod, info)``, either of which may
    be missing; ``should_run(mod, info)`` may leave a pass out.
    """

    def __init__(
        self,
        opt_level: int = 2,
        required_pass: Sequence[str] = (),
        disabled_pass: Sequence[str] = (),
        instruments: Sequence[Any] = (),
        config: dict[str, Any] | None = None,
    ) -> None:
        self.opt_level = opt_level
        self.required_pass = list(required_pass or ())
        self.disabled_pass = list(disabled_pass or ())
        self.instruments = list(instruments or ())
        self.config = dict(config or {})

    @staticmethod
    def current() -> PassContext:
        """The context that is open in this thread, else a default one."""
        stack = getattr(_local, "stack", None)
        return stack[-1] if stack else PassContext()

    def __enter__(self) -> PassContext:
        if not hasattr(_local, "stack"):
            _local.stack = []
        _local.stack.append(self)
        return self

    def __exit__(self, *exc: object) -> None:
        _local.stack.pop()

    def settings(self) -> dict[str, Any]:
        """The settings as the compiler takes them."""
        return {
            "opt_level": self.opt_level,
            "required_pass": self.required_pass,
            "disabled_pass": self.disabled_pass,
            "config": self.config,
        }


class PassInfo:
    """What a pass says of itself."""

    def __init__(self, name: str, opt_level: int = 0) -> None:
        self.name = name
        self.opt_level = opt_level

    def __repr__(self) -> str:
        return f"PassInfo({self.name!r}, opt_level={self.opt_level})"


class Pass:
    """A pass: call it with a module."""

    info: PassInfo

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        """Does the work; passes define it."""
        raise NotImplementedError

    def __call__(self, mod: IRModule) -> IRModule:
        ctx = PassContext.current()
        info = self.info
        if info.name not in ctx.required_pass and (
            info.name in ctx.disabled_pass or info.opt_level > ctx.opt_level
        ):
            return mod
        for instrument in ctx.instruments:
            should_run = getattr(instrument, "should_run", None)
            if should_run is not None and not should_run(mod, info):
                return mod
        _notify(ctx, "run_before_pass", mod, info)
        result = self.transform_module(mod, ctx)
        if not isinstance(result, IRModule):
            raise TypeError(f"pass {info.name} returned {type(result).__name__}, not an IRModule")
        _notify(ctx, "run_after_pass", result, info)
        return result

    def __repr__(self) -> str:
        return f"Pass({self.info.name})"


def _notify(ctx: PassContext, event: str, mod: IRModule, info: PassInfo) -> None:
    for instrument in ctx.instruments:
        callback = getattr(instrument, event, None)
        if callback is not None:
            callback(mod, info)


class _TablePass(Pass):
    def __init__(self, core: CorePass) -> None:
        self._core = core
        self.info = PassInfo(core.name)

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        return self._core.run(mod, ctx.settings())


class Sequential(Pass):
    """Passes one after the other."""

    def __init__(
        self,
        passes: Sequence[Callable[[IRModule], IRModule]],
        opt_level: int = 0,
        name: str = "sequential",
        required: Sequence[str] = (),
        traceable: bool = False,
    ) -> None:
        self.passes = list(passes)
        self.info = PassInfo(name, opt_level)

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        for one in self.passes:
            mod = one(mod)
        return mod


class _PythonPass(Pass):
    def __init__(self, func: Callable[[IRModule, PassContext], IRModule], info: PassInfo) -> None:
        self._func = func
        self.info = info

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        return self._func(mod, ctx)


def module_pass(
    pass_func: Any = None, opt_level: int = 0, name: str | None = None, required: Sequence[str] = ()
) -> Any:
    """Makes a pass of a function ``(mod, ctx) -> mod``, or of a class with ``transform_module(mod, ctx)``."""

    def make(func: Any) -> Any:
        info = PassInfo(name or func.__name__, opt_level)
        if isinstance(func, type):
            return _class_pass(func, info, "transform_module")
        return _PythonPass(func, info)

    return make if pass_func is None else make(pass_func)


def function_pass(
    pass_func: Any = None, opt_level: int = 0, name: str | None = None, required: Sequence[str] = ()
) -> Any:
    """Makes a pass of a function ``(func, mod, ctx) -> func`` over graph functions, or of a class with
    ``transform_function(func, mod, ctx)``."""

    def make(func: Any) -> Any:
        info = PassInfo(name or func.__name__, opt_level)
        if isinstance(func, type):
            return _class_pass(func, info, "transform_function")
        return _PythonPass(_over_functions(func), info)

    return make if pass_func is None else make(pass_func)


def _over_functions(func: Callable[..., Any]) -> Callable[[IRModule, PassContext], IRModule]:
    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        result = mod.clone()
        for var, function in mod.functions_items():
            if isinstance(function, _core.relax.Function):
                result[var] = func(function, mod, ctx)
        return result

    return run


def _class_pass(cls: type, info: PassInfo, method: str) -> Callable[..., Pass]:
    def construct(*args: Any, **kwargs: Any) -> Pass:
        instance = cls(*args, **kwargs)
        bound = getattr(instance, method)
        return _PythonPass(bound if method == "transform_module" else _over_functions(bound), info)

    construct.__name__ = cls.__name__
    construct.__doc__ = cls.__doc__
    return construct


def get_pass(name: str) -> Pass:
    """The pass of the table with that name."""
    return _TablePass(CorePass(name))


def list_passes() -> list[tuple[str, str]]:
    """The passes of the table: name and what each does."""
    return [(name, doc) for name, _, doc in _core.pass_table()]


def __getattr__(name: str) -> Any:
    for known, aliases, doc in _core.pass_table():
        if name == known or name in aliases:
            def make() -> Pass:
                return get_pass(known)

            make.__name__ = make.__qualname__ = name
            make.__doc__ = f"{doc}."
            globals()[name] = make
            return make
    raise AttributeError(f"no pass is called {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *(name for name, _ in list_passes())})
