"""``Pass``, sequences of passes, and the decorators that create passes from functions and
classes."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from pliant import _core
from pliant._core import IRModule, PrimFunc
from pliant._core.transform import CorePass
from pliant.transform._pass_context import PassContext, _level, register_user_pass


class PassInfo:
    """Information on a pass: its name, the lowest optimization level at which a sequence runs it,
    and the passes (or their names) that a sequence runs before it.

    Raises ``TypeError`` or ``ValueError`` for an invalid name, level or list.
    """

    def __init__(
        self, name: str, opt_level: int = 0, required: Sequence[Any] | None = None, traceable: bool = False
    ) -> None:
        if not isinstance(name, str) or not name:
            raise TypeError(f"the name of a pass must be a non-empty string, got {name!r}")
        if isinstance(required, str):
            raise TypeError(f"required must be a list of passes or names (help: write [{required!r}])")
        self.name = name
        self.opt_level = _level(opt_level, f"pass '{name}'", 255)
        self.required = list(required or ())
        self.traceable = traceable
        register_user_pass(name)

    def __repr__(self) -> str:
        required = [one if isinstance(one, str) else one.info.name for one in self.required]
        return f"PassInfo(name={self.name!r}, opt_level={self.opt_level}, required={required!r})"


class Pass:
    """A pass. Calling it with a module returns the transformed module. The pass runs under
    ``PassContext.current()``."""

    info: PassInfo

    def __call__(self, mod: IRModule) -> IRModule:
        return _core.transform.apply_pass(self, mod, PassContext.current())

    def __repr__(self) -> str:
        return f"Pass({self.info.name})"


class CoreBackedPass(Pass):
    """A pass that is written in Rust."""

    def __init__(self, core: CorePass) -> None:
        self._core_pass = core
        self.info = PassInfo(core.name, core.opt_level)


class Sequential(Pass):
    """A pass that runs other passes in order. Every callable from module to module is accepted as a
    pass.

    A sequence skips a pass if the context disables it, or if its level is above the level of the context, unless the context
    requires the pass. Raises ``TypeError`` if an item is not a pass, such as a constructor that was not called.
    """

    def __init__(
        self,
        passes: Sequence[Pass | Callable[[IRModule], IRModule]] | None = None,
        opt_level: int = 0,
        name: str = "sequential",
        required: Sequence[Any] | None = None,
        traceable: bool = False,
    ) -> None:
        if passes is not None and not isinstance(passes, list | tuple):
            raise TypeError(f"Sequential: expected a list of passes, got {type(passes).__name__} (help: write [...])")
        self.passes = list(passes or ())
        for i, one in enumerate(self.passes):
            if isinstance(one, type) or not callable(one) or _is_pass_constructor(one):
                hint = f" (help: write {one.__name__}(...))" if callable(one) and hasattr(one, "__name__") else ""
                raise TypeError(f"Sequential: item {i} is not a pass: {one!r}{hint}")
        self.info = PassInfo(name, opt_level, required, traceable)


def _is_pass_constructor(one: Any) -> bool:
    """Whether a callable is a constructor of a pass that the user did not call. Functions of the
    extension module have the module name ``_core.transform``."""
    own = not isinstance(one, Pass) and str(getattr(one, "__module__", "")).startswith(("pliant.", "_core."))
    return own and _core.transform.unknown_pass(getattr(one, "__name__", "")) is None


class ModulePass(Pass):
    """A pass over a whole module. :func:`module_pass` creates such passes."""

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        """Returns the transformed module. Subclasses implement this method."""
        raise NotImplementedError


class FunctionPass(ModulePass):
    """A pass over each graph function, or over each loop function. :func:`function_pass` and :func:`prim_func_pass` create such
    passes."""


class Kind:
    """A kind of user-defined pass: its decorator, the method that a class must have, the arguments
    of the method, the base class, and the function that applies the pass to a module."""

    def __init__(
        self,
        decorator: str,
        method: str,
        args: tuple[str, ...],
        base: type[ModulePass],
        run: Callable[[Callable[..., Any], str, IRModule, PassContext], Any],
    ) -> None:
        self.decorator, self.method, self.args, self.base, self.run = decorator, method, args, base, run

    def check(self, func: Callable[..., Any], what: str) -> None:
        """Raises ``TypeError`` if ``func`` does not accept the arguments of this kind of pass. ``what`` is the name of
        ``func`` in the message."""
        try:
            signature = inspect.signature(func)
        except ValueError:
            return  # A function without a signature may accept anything.
        try:
            signature.bind(*self.args)
        except TypeError:
            has = ", ".join(signature.parameters)
            raise TypeError(f"{self.decorator}: {what} must take ({', '.join(self.args)}), but it takes ({has})") from None

    def decorate(self, target: Any, opt_level: Any, name: Any, required: Any, traceable: Any) -> Any:
        """Implements the decorator: decorates ``target``, or returns a decorator if ``target`` is
        ``None``.

        Raises ``TypeError`` for a target that is not callable.
        """

        def make(target: Any) -> Any:
            if not callable(target):
                raise TypeError(f"{self.decorator} expects a function or a class, got {target!r}")
            own = name or getattr(target, "__name__", type(target).__name__)
            info = PassInfo(own, 0 if opt_level is None else opt_level, required, bool(traceable))
            return self.of_class(target, info) if isinstance(target, type) else self.of_function(target, info)

        return make if target is None else make(target)

    def of_function(self, func: Callable[..., Any], info: PassInfo) -> Pass:
        """Creates a pass from a function."""
        self.check(func, f"the function '{info.name}'")
        run = self.run

        class FunctionBacked(self.base):  # type: ignore[name-defined,misc]
            def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
                result: IRModule = run(func, info.name, mod, ctx)
                return result

        backed_pass: Pass = FunctionBacked()
        backed_pass.info = info
        functools.update_wrapper(backed_pass, func, updated=())  # type: ignore[arg-type]
        return backed_pass

    def of_class(self, cls: type, info: PassInfo) -> type[Pass]:
        """Creates a class of passes from a class with the method of this kind. Raises ``TypeError``
        if the class does not have the method."""
        kind = self
        method = getattr(cls, self.method, None)
        if method is None:
            signature = ", ".join(("self", *self.args))
            raise TypeError(f"{self.decorator}: class {cls.__name__} has no method {self.method}({signature})")

        class ClassBacked(self.base):  # type: ignore[name-defined,misc]
            def __init__(self, *args: Any, **kwargs: Any) -> None:
                self._inst = cls(*args, **kwargs)
                bound = getattr(self._inst, kind.method)
                kind.check(bound, f"{cls.__name__}.{kind.method}")
                self.info = info

            def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
                result: IRModule = kind.run(getattr(self._inst, kind.method), info.name, mod, ctx)
                return result

            def __getattr__(self, attribute: str) -> Any:
                # Before `__init__` has set `_inst`, there is no instance to delegate to.
                if attribute == "_inst":
                    raise AttributeError(attribute)
                return getattr(self._inst, attribute)

        init = inspect.getattr_static(cls, "__init__")
        if init is not object.__init__:
            functools.update_wrapper(vars(ClassBacked)["__init__"], init)
        for attribute in ("__name__", "__qualname__", "__doc__", "__module__"):
            setattr(ClassBacked, attribute, getattr(cls, attribute))
        return ClassBacked


def _on_functions(cls: type, kind: str) -> Callable[[Callable[..., Any], str, IRModule, PassContext], IRModule]:
    """Returns a function that applies a pass to all functions of the class ``cls`` in a module."""

    def run(transform: Callable[..., Any], name: str, mod: IRModule, ctx: PassContext) -> IRModule:
        result = mod.clone()
        for var, func in mod.functions_items():
            if not isinstance(func, cls):
                continue
            new = transform(func, mod, ctx)
            if not isinstance(new, cls):
                raise TypeError(
                    f"pass '{name}' returned {type(new).__name__} for the function '{var.name_hint}', not a {kind}"
                )
            if new is not func:
                result.update_func(var, new)
        return result

    return run


def _on_module(transform: Callable[..., Any], name: str, mod: IRModule, ctx: PassContext) -> Any:
    return transform(mod, ctx)


_MODULE = Kind("module_pass", "transform_module", ("mod", "ctx"), ModulePass, _on_module)
_FUNCTION = Kind(
    "function_pass",
    "transform_function",
    ("func", "mod", "ctx"),
    FunctionPass,
    _on_functions(_core.relax.Function, "relax.Function"),
)
_PRIM_FUNC = Kind(
    "prim_func_pass", "transform_function", ("func", "mod", "ctx"), FunctionPass, _on_functions(PrimFunc, "tir.PrimFunc")
)


def module_pass(
    pass_func: Any = None,
    opt_level: int | None = None,
    name: str | None = None,
    required: Sequence[Any] | None = None,
    traceable: bool = False,
) -> Any:
    """Makes a pass from a function ``(mod, ctx) -> mod``, or from a class with
    ``transform_module(self, mod, ctx)``.

    ``opt_level`` is the lowest level at which a sequence runs the pass, 0 by default. ``name`` is
    by default that of the function or class. ``required`` are passes that a sequence runs before
    it. ``traceable`` has no effect.

    >>> @transform.module_pass(opt_level=0)
    ... def keep_main(mod, ctx):
    ...     return IRModule({"main": mod["main"]})
    >>> keep_main(mod)

    Raises ``TypeError`` if the function or class does not have this form.
    """
    return _MODULE.decorate(pass_func, opt_level, name, required, traceable)


def function_pass(
    pass_func: Any = None,
    opt_level: int | None = None,
    name: str | None = None,
    required: Sequence[Any] | None = None,
    traceable: bool = False,
) -> Any:
    """Makes a pass from a function ``(func, mod, ctx) -> func`` over graph functions, or from a
    class with ``transform_function(self, func, mod, ctx)``. ``mod`` is the module before the pass.
    The other arguments are those of :func:`module_pass`.

    Raises ``TypeError`` if the function or class does not have this form.
    """
    return _FUNCTION.decorate(pass_func, opt_level, name, required, traceable)


def prim_func_pass(
    pass_func: Any = None,
    opt_level: int | None = None,
    name: str | None = None,
    required: Sequence[Any] | None = None,
    traceable: bool = False,
) -> Any:
    """Makes a pass over loop functions. The arguments are those of :func:`function_pass`."""
    return _PRIM_FUNC.decorate(pass_func, opt_level, name, required, traceable)


class PrintIR(Pass):
    """A pass that prints the module, after a header if one is given, and returns it unchanged. With
    ``show_meta_data``, large constants are printed in full."""

    def __init__(self, header: str = "", show_meta_data: bool = False) -> None:
        self.header, self.show_meta_data = str(header), bool(show_meta_data)
        self.info = PassInfo("PrintIR")

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        """Prints the module and returns it."""
        header = [f"# PrintIR({self.header})"] if self.header else []
        print("\n".join([*header, mod.script(show_meta=self.show_meta_data)]))
        return mod
