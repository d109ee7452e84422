"""``PassContext``: the settings for passes."""

from __future__ import annotations

import contextlib
import inspect
import threading
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

from pliant import _core

INSTRUMENT_METHODS = ("enter_pass_ctx", "exit_pass_ctx", "should_run", "run_before_pass", "run_after_pass")

_local = threading.local()


def _stack() -> list[PassContext]:
    if not hasattr(_local, "stack"):
        _local.stack = []
    stack: list[PassContext] = _local.stack
    return stack


_MAX_LEVEL = 3
"""The highest optimization level of contexts and compilations."""


def _level(value: Any, what: str, most: int = _MAX_LEVEL) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{what}: opt_level must be an int from 0 to {most}, got {value!r}")
    if not 0 <= value <= most:
        raise ValueError(f"{what}: opt_level must be an int from 0 to {most}, got {value}")
    return value


def _names(value: Any, what: str) -> list[str]:
    if value is None:
        return []
    if isinstance(value, str):
        raise TypeError(f"{what} must be a list of names (help: write [{value!r}])")
    if not isinstance(value, list | tuple | set | frozenset):
        raise TypeError(f"{what} must be a list of names, got {type(value).__name__}")
    for name in value:
        if not isinstance(name, str):
            raise TypeError(f"{what} must be a list of names, but it contains {name!r} (help: the name of a pass is pass.info.name)")
    return sorted(value) if isinstance(value, set | frozenset) else list(value)


_USER_PASS_NAMES: set[str] = set()


def register_user_pass(name: str) -> None:
    """Records the name of a user-defined pass, so that contexts accept the name without a
    warning."""
    _USER_PASS_NAMES.add(name)


def _passes(value: Any, what: str) -> list[str]:
    """Checks names of passes. Warns about unknown names, which would have no effect and are
    probably misspelt."""
    names = _names(value, what)
    for name in names:
        problem = None if name in _USER_PASS_NAMES else _core.transform.unknown_pass(name)
        if problem is not None:
            warnings.warn(f"{what}: {problem}", stacklevel=_user_stack_level())
    return names


def _user_stack_level() -> int:
    """Returns the ``stacklevel`` of warnings that refer to the first frame outside of this
    package."""
    level, frame = 1, inspect.currentframe()
    frame = frame.f_back if frame else None
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in ("pliant", "contextlib"):
        level, frame = level + 1, frame.f_back
    return level


class PassContext:
    """The settings for passes in a ``with`` block: the optimization level, disabled and required
    passes, configuration and instruments.

    ``opt_level`` is a number from 0 to 3; passes of a higher level are skipped unless
    ``required_pass`` contains them. Each thread has its own stack of contexts, and only the
    innermost context is used. An unknown name of a pass causes a warning; the name of a
    user-defined pass is known once the pass has been created. Instruments are objects with any of
    the methods of :class:`pliant.ir.instrument.PassInstrument`. ``PassContext.list_configs()``
    lists the configuration options. User-defined passes can add options with :func:`register_config_option`.

    Raises ``TypeError`` or ``ValueError`` for invalid settings, and ``TypeError`` for a ``trace``.
    Leaving a context other than the innermost one raises ``RuntimeError``.
    """

    def __init__(
        self,
        opt_level: int = 2,
        required_pass: Sequence[str] | None = None,
        disabled_pass: Sequence[str] | None = None,
        instruments: Sequence[Any] | None = None,
        config: dict[str, Any] | None = None,
        trace: Any = None,
    ) -> None:
        if trace is not None:
            raise TypeError("PassContext: trace is not supported; use instruments")
        self.opt_level = _level(opt_level, "PassContext")
        self.required_pass = _passes(required_pass, "required_pass")
        self.disabled_pass = _passes(disabled_pass, "disabled_pass")
        self.instruments = _instruments(instruments)
        if config is not None and not isinstance(config, dict):
            raise TypeError(f"PassContext: config must be a dict of pass settings, got {type(config).__name__}")
        self.config = dict(config or {})
        for key, value in self.config.items():
            _core.transform.check_config(key, value)

    @staticmethod
    def current() -> PassContext:
        """Returns the innermost context of this thread, or the default context of the thread."""
        stack = _stack()
        if stack:
            return stack[-1]
        if not hasattr(_local, "default"):
            _local.default = PassContext()
        default: PassContext = _local.default
        return default

    @staticmethod
    def list_configs() -> dict[str, dict[str, str]]:
        """Returns the type and description of each configuration option, by name."""
        return {name: {"type": kind, "doc": doc} for name, kind, doc in _core.transform.config_table()}

    def __enter__(self) -> PassContext:
        _enter_all(self.instruments)
        _stack().append(self)
        return self

    def __exit__(self, *exc: object) -> None:
        stack = _stack()
        if not stack or stack[-1] is not self:
            raise RuntimeError("PassContext: contexts must be exited in the reverse order of entering, in the same thread")
        stack.pop()
        _exit_all(self.instruments)

    def override_instruments(self, instruments: Sequence[Any] | None) -> None:
        """Replaces the instruments of this context. If the context is active, the old instruments
        are exited and the new ones are entered. The default context of a thread is always active.

        Raises ``TypeError`` if an object is not an instrument.
        """
        new = _instruments(instruments)
        if self not in _stack() and self is not getattr(_local, "default", None):
            self.instruments = new
            return
        old, self.instruments = self.instruments, []
        _exit_all(old)
        _enter_all(new)
        self.instruments = new

    def __repr__(self) -> str:
        parts = [f"opt_level={self.opt_level}"]
        parts += [f"{name}={value!r}" for name, value in vars(self).items() if name != "opt_level" and value]
        return f"PassContext({', '.join(parts)})"


def _instruments(value: Any) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list | tuple):
        raise TypeError(f"PassContext: instruments must be a list (help: write [{type(value).__name__}(...)])")
    for one in value:
        if isinstance(one, type):
            raise TypeError(f"an instrument must be an object, got a class (help: write {one.__name__}())")
        if not any(callable(getattr(one, name, None)) for name in INSTRUMENT_METHODS):
            raise TypeError(f"{one!r} is not an instrument: it has none of the methods {', '.join(INSTRUMENT_METHODS)}")
    return list(value)


def _enter_all(instruments: Sequence[Any]) -> None:
    entered: list[Any] = []
    try:
        for one in instruments:
            callback = getattr(one, "enter_pass_ctx", None)
            if callback is not None:
                callback()
            entered.append(one)
    except BaseException:
        with contextlib.suppress(Exception):
            _exit_all(entered)
        raise


def _exit_all(instruments: Sequence[Any]) -> None:
    """Exits all instruments, even if some raise an exception. Then raises the first exception."""
    first: BaseException | None = None
    for one in instruments:
        try:
            callback = getattr(one, "exit_pass_ctx", None)
            if callback is not None:
                callback()
        except BaseException as error:
            first = first or error
    if first is not None:
        raise first


@contextlib.contextmanager
def compiling(options: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yields the options of a compilation, combined with the settings of the current context. The options override the settings,
    and lists of both are joined. Inside the ``with`` block, a context with the combined settings is the current one."""
    outer = PassContext.current()
    own = _instruments(options.pop("instruments", None))
    level = options.pop("opt_level", None)
    ctx = PassContext(
        opt_level=outer.opt_level if level is None else _level(level, "compile option"),
        config={**outer.config, **(options.pop("config", None) or {})},
    )
    ctx.required_pass = outer.required_pass + _passes(options.pop("required_passes", None), "required_passes")
    ctx.disabled_pass = outer.disabled_pass + _passes(options.pop("disabled_passes", None), "disabled_passes")
    ctx.instruments = [*outer.instruments, *own]
    options["context"] = ctx
    _enter_all(own)
    _stack().append(ctx)
    try:
        yield options
    finally:
        _stack().remove(ctx)
        _exit_all(own)


def register_config_option(key: str, value_type: type | str = "any", doc: str = "") -> None:
    """Adds a configuration option for user-defined passes, which read it as
    ``ctx.config.get(key)``. An option that was added before is replaced.

    ``value_type`` is ``bool``, ``int``, ``str`` or ``"any"``. Raises ``ValueError`` for another
    type, and for the name of one of Pliant's options.
    """
    kind = value_type.__name__ if isinstance(value_type, type) else value_type
    _core.transform.register_config(key, kind, doc)
