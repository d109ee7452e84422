"""The options of sessions and runs."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Self, SupportsIndex, TypeVar, overload

from pliant._core import CancelToken
from pliant.onnxruntime import _log
from pliant.onnxruntime._enums import ExecutionMode, ExecutionOrder, GraphOptimizationLevel
from pliant.onnxruntime._providers import AVAILABLE_PROVIDERS
from pliant.onnxruntime._status import Fail, InvalidArgument, NotImplemented, status_error

if TYPE_CHECKING:
    from pliant.onnxruntime._ortvalue import OrtValue

__all__ = ["RunOptions", "SessionOptions", "get_default_session_options"]

T = TypeVar("T")
E = TypeVar("E")

_MAX_CONFIG_KEY, _MAX_CONFIG_VALUE = 1024, 8192


class _Option(Generic[T]):
    """An attribute of an options object whose values are checked when they are set."""

    def __init__(self, default: T, parse: Callable[[object], T], doc: str) -> None:
        self.default, self._parse, self.__doc__ = default, parse, doc

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...

    @overload
    def __get__(self, instance: _Options, owner: type) -> T: ...

    def __get__(self, instance: _Options | None, owner: type) -> T | Self:
        if instance is None:
            return self
        value: T = instance._values.get(self._name, self.default)
        return value

    def __set__(self, instance: _Options, value: T) -> None:
        try:
            instance._values[self._name] = self._parse(value)
        except TypeError as e:
            raise TypeError(f"{type(instance).__name__}.{self._name}: incompatible value {value!r} ({e})") from None


def _bool(value: object) -> bool:
    if isinstance(value, str | bytes):
        raise TypeError("expected a bool")
    return bool(value)


def _int(value: object) -> int:
    return operator.index(value)  # type: ignore[arg-type]  # raises TypeError


def _str(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("expected a str")
    return value


def _member(kind: type[E]) -> Callable[[object], E]:
    """Returns the check of an option whose values are members of an enumeration."""

    def check(value: object) -> E:
        if not isinstance(value, kind):
            raise TypeError(f"expected a member of {kind.__name__}")
        return value

    return check


class _Options:
    """The common part of options: checked attributes, and entries by key."""

    __slots__ = ("_config", "_values")

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}
        self._config: dict[str, str] = {}

    def _add_config(self, key: object, value: object) -> None:
        key, value = _str(key), _str(value)
        if not 0 < len(key) <= _MAX_CONFIG_KEY:
            raise RuntimeError(f"Config key is empty or longer than maximum length {_MAX_CONFIG_KEY}")
        if len(value) > _MAX_CONFIG_VALUE:
            raise RuntimeError(f"Config value is longer than maximum length: {_MAX_CONFIG_VALUE}")
        self._config[key] = value

    def _get_config(self, key: str) -> str:
        if key not in self._config:
            raise RuntimeError(f"{type(self).__name__} does not have configuration with key: {key}")
        return self._config[key]


class SessionOptions(_Options):
    """The options of a session. Options without effect in Pliant are accepted and keep their values.

    Setting an unknown option raises ``AttributeError``, and a value of the wrong type ``TypeError``.
    """

    __slots__ = ("_dims_by_denotation", "_dims_by_name", "_initializers", "_load_canceled", "_providers")

    intra_op_num_threads = _Option(0, _int, "The threads of parallel loops. 0 or less: as many as the process has CPUs.")
    inter_op_num_threads = _Option(0, _int, "Without effect: nodes run one after another, each with all threads.")
    graph_optimization_level = _Option(
        GraphOptimizationLevel.ORT_ENABLE_ALL,
        _member(GraphOptimizationLevel),
        "How much to optimize: ``ORT_DISABLE_ALL`` is Pliant's level 0, ``ORT_ENABLE_BASIC`` level 1, all others level 2.",
    )
    execution_mode = _Option(ExecutionMode.ORT_SEQUENTIAL, _member(ExecutionMode), "Without effect.")
    execution_order = _Option(ExecutionOrder.DEFAULT, _member(ExecutionOrder), "Without effect.")
    enable_profiling = _Option(False, _bool, "Whether to record the times of runs for ``end_profiling``.")
    profile_file_prefix = _Option("onnxruntime_profile_", _str, "The path of the profile, to which the date is appended.")
    optimized_model_filepath = _Option("", _str, "A path to which the session writes the model, as it was passed.")
    log_severity_level = _Option(-1, _int, "The lowest severity of messages, from 0 to 4. -1 is the default severity.")
    log_verbosity_level = _Option(0, _int, "Without effect.")
    logid = _Option("", _str, "A name for messages of the session.")
    enable_mem_pattern = _Option(True, _bool, "Without effect: memory is planned for all sizes at once.")
    enable_mem_reuse = _Option(True, _bool, "Without effect.")
    enable_cpu_mem_arena = _Option(True, _bool, "Without effect.")
    use_deterministic_compute = _Option(False, _bool, "Without effect.")
    use_per_session_threads = _Option(True, _bool, "Without effect: sessions with the same number of threads share them.")

    def __init__(self) -> None:
        super().__init__()
        self._dims_by_name: dict[str, int] = {}
        self._dims_by_denotation: dict[str, int] = {}
        self._initializers: dict[str, OrtValue] = {}
        self._providers: list[str] = []
        self._load_canceled = [False]  # A list, because copies of the options share it.

    def add_free_dimension_override_by_name(self, name: str, size: SupportsIndex) -> None:
        """Gives all dims of inputs with this name a fixed size."""
        self._dims_by_name[_str(name)] = operator.index(size)

    def add_free_dimension_override_by_denotation(self, denotation: str, size: SupportsIndex) -> None:
        """Gives all dims of inputs with this denotation a fixed size."""
        self._dims_by_denotation[_str(denotation)] = operator.index(size)

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Stores an entry. ``session.load_model_format`` is checked; all others have no effect.

        Raises ``RuntimeError`` for keys and values that are too long.
        """
        self._add_config(key, value)

    def get_session_config_entry(self, key: str) -> str:
        """Returns a stored entry. Raises ``RuntimeError`` if there is none."""
        return self._get_config(key)

    def add_initializer(self, name: str, value: OrtValue) -> None:
        """Replaces the initializer with this name. Names that the model lacks are ignored."""
        from pliant.onnxruntime._ortvalue import OrtValue

        if not isinstance(value, OrtValue):
            raise TypeError(f"add_initializer: expected an OrtValue, got {type(value).__name__}")
        self._initializers[_str(name)] = value

    def add_external_initializers(self, names: Sequence[str], values: Sequence[OrtValue]) -> None:
        """Replaces initializers by values in memory. Raises ``RuntimeError`` if the numbers of names and values differ."""
        if len(names) != len(values):
            raise RuntimeError("Expecting names and ort_values lists to have equal length")
        for name, value in zip(names, values, strict=True):
            self.add_initializer(name, value)

    def add_external_initializers_from_files_in_memory(
        self, file_names: Sequence[str], buffers: Sequence[bytes], lengths: Sequence[int]
    ) -> None:
        """Raises ``NotImplemented``: pass the path of a model with its data files, or values with ``add_external_initializers``."""
        message = "data files in memory are not supported: pass the path of the model, or use add_external_initializers"
        raise status_error(NotImplemented, message)

    def set_load_cancellation_flag(self, cancel: bool) -> None:
        """Cancels the creation of sessions with these options, also by another thread. It ends with ``ModelLoadCanceled`` before the
        compilation."""
        self._load_canceled[0] = bool(cancel)

    def register_custom_ops_library(self, path: str) -> None:
        """Raises ``Fail`` if the library does not exist, and ``NotImplemented`` otherwise: Pliant cannot load operators that are
        written for ONNX Runtime. ``pliant.relax.op.register_op`` registers operators."""
        import os

        if not os.path.isfile(_str(path)):
            message = f"Failed to load library {path} with error: {path}: cannot open shared object file: No such file or directory"
            raise status_error(Fail, message)
        message = f"Pliant cannot load the custom operators of '{path}': register them with pliant.relax.op.register_op"
        raise status_error(NotImplemented, message)

    def add_provider(self, name: str, options: Mapping[str, str]) -> None:
        """Adds an execution provider. Raises ``InvalidArgument`` for one that is not available."""
        if name not in AVAILABLE_PROVIDERS:
            raise status_error(InvalidArgument, f"'{name}' is not available; Pliant has {', '.join(AVAILABLE_PROVIDERS)}")
        self._providers.append(_str(name))

    def add_provider_for_devices(self, devices: Sequence[object], options: Mapping[str, str]) -> None:
        """Raises ``InvalidArgument``: there are no devices of plugins."""
        raise status_error(InvalidArgument, "Pliant has no devices of plugins: omit add_provider_for_devices to run on the CPU")

    def set_provider_selection_policy(self, policy: object) -> None:
        """Accepted for compatibility; ignored: sessions run on the CPU."""

    def set_provider_selection_policy_delegate(self, delegate: object) -> None:
        """Accepted for compatibility; ignored: sessions run on the CPU."""

    def has_providers(self) -> bool:
        """Whether ``add_provider`` was called."""
        return bool(self._providers)

    def _log(self, severity: int, message: str) -> None:
        """Logs a message of the session with these options."""
        _log.log(severity, message, self.log_severity_level, self.logid)

    def _copy(self) -> SessionOptions:
        """Returns options that later changes of these do not affect."""
        copy = SessionOptions()
        for option in ("_values", "_config", "_dims_by_name", "_dims_by_denotation", "_initializers"):
            setattr(copy, option, dict(getattr(self, option)))
        copy._providers, copy._load_canceled = list(self._providers), self._load_canceled
        return copy


class RunOptions(_Options):
    """The options of a run."""

    __slots__ = ("_cancel",)

    log_severity_level = _Option(-1, _int, "The lowest severity of messages, from 0 to 4. -1 is the session's.")
    log_verbosity_level = _Option(0, _int, "Without effect.")
    logid = _Option("", _str, "A name for messages of the run.")
    only_execute_path_to_fetches = _Option(False, _bool, "Without effect: a run always computes all outputs.")

    def __init__(self) -> None:
        super().__init__()
        self._cancel: CancelToken | None = None

    @property
    def terminate(self) -> bool:
        """Whether runs with these options end. Setting it to ``True``, also by another thread, stops the runs in progress."""
        return self._cancel is not None and self._cancel.cancelled

    @terminate.setter
    def terminate(self, value: object) -> None:
        try:
            terminates = _bool(value)
        except TypeError as e:
            raise TypeError(f"RunOptions.terminate: incompatible value {value!r} ({e})") from None
        if terminates:
            self._token().cancel()
        elif self.terminate:
            self._cancel = None  # Runs that were stopped keep their token.

    def _token(self) -> CancelToken:
        """Returns the token that stops runs with these options."""
        if self._cancel is None:
            self._cancel = CancelToken()
        return self._cancel

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Stores an entry, which has no effect. Raises ``RuntimeError`` for keys and values that are too long."""
        self._add_config(key, value)

    def get_run_config_entry(self, key: str) -> str:
        """Returns a stored entry. Raises ``RuntimeError`` if there is none."""
        return self._get_config(key)

    def add_active_adapter(self, adapter: object) -> None:
        """Raises ``NotImplemented``: Pliant does not support LoRA adapters of ONNX Runtime."""
        raise status_error(NotImplemented, "LoRA adapters are not supported")


_default_options = SessionOptions()


def get_default_session_options() -> SessionOptions:
    """Returns the options of sessions that are created without options."""
    return _default_options


def set_global_thread_pool_sizes(intra_op_num_threads: SupportsIndex, inter_op_num_threads: SupportsIndex) -> None:
    """Sets the threads of sessions that are created without options."""
    _default_options.intra_op_num_threads = operator.index(intra_op_num_threads)
    _default_options.inter_op_num_threads = operator.index(inter_op_num_threads)
