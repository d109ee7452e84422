"""The session: a compiled ONNX model behind ONNX Runtime's interface."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from numpy import asarray

from pliant._core import CancelToken
from pliant.error import CancelledError, PliantError, ShapeError
from pliant.onnxruntime import _log
from pliant.onnxruntime._callbacks import run_in_background
from pliant.onnxruntime._devices import OrtMemoryInfo
from pliant.onnxruntime._feeds import InputChecker, dims_differ, require_inputs
from pliant.onnxruntime._metadata import ModelMetadata, NodeArg, model_metadata
from pliant.onnxruntime._model_config import apply_model_config
from pliant.onnxruntime._options import RunOptions, SessionOptions
from pliant.onnxruntime._ortvalue import OrtValue, OrtValueVector
from pliant.onnxruntime._profiler import Profiler
from pliant.onnxruntime._programs import ModelFile, Program, Variant
from pliant.onnxruntime._results import ResultConverter, writable_array
from pliant.onnxruntime._status import Fail, InvalidArgument, run_error, status_error, status_message

if TYPE_CHECKING:
    from pliant.onnxruntime._io_binding import IOBinding

__all__ = ["Session"]

_ASSIGNMENT = "session.record_ep_graph_assignment_info"


class Session:
    """A compiled model. Runs on several threads at a time are allowed."""

    _model_path: str | None
    _model_bytes: bytes | None

    def __init__(self, enable_fallback: bool = True) -> None:
        self._enable_fallback = enable_fallback
        self._providers: list[str] = []
        self._provider_options: dict[str, dict[str, str]] = {}

    # -- Creation --------------------------------------------------------------------------------

    def _open(self, options: SessionOptions) -> None:
        """Compiles the model with these options."""
        if options.log_severity_level != -1 and not _log.is_severity(options.log_severity_level):
            level = options.log_severity_level
            raise RuntimeError(f"Invalid session log severity level. Not a valid onnxruntime::logging::Severity value: {level}")
        start = time.monotonic_ns()
        source = self._model_bytes if self._model_bytes is not None else self._model_path
        assert source is not None
        self._sess_options = options
        self._file = ModelFile(source, options)
        if os.environ.get("ORT_LOAD_CONFIG_FROM_MODEL") == "1":
            apply_model_config(options, self._file.file.metadata_props)
        self._profiler = Profiler(options.profile_file_prefix, start) if options.enable_profiling else None
        self._variant = Variant()
        program = self._file.program(self._variant)
        self._model_meta = model_metadata(self._file.file)
        self._inputs_meta, self._outputs_meta = self._file.inputs, self._file.outputs
        self._overridable_initializers = self._file.overridable_initializers
        self._output_names = [output.name for output in self._outputs_meta]
        self._all_outputs = list(range(len(self._output_names)))
        self._checker = InputChecker(self._inputs_meta, self._overridable_initializers, self._file.scalars)
        self._results = ResultConverter(self._outputs_meta)
        self._set_program(program)
        if self._profiler is not None:
            self._profiler.add("session_initialization", start)
        if options.optimized_model_filepath:
            self._file.write(options.optimized_model_filepath)

    def _set_program(self, program: Program) -> None:
        """Prepares direct runs, which pass arrays to the program without checks and conversions: it checks them itself."""
        self._program = program
        self._call = program.model
        self._names = program.input_names
        direct = self._results.is_trivial and self._profiler is None
        self._direct_inputs = len(self._names) if direct else -1
        self._single_output = len(self._output_names) == 1

    # -- Description -----------------------------------------------------------------------------

    def get_session_options(self) -> SessionOptions:
        """Returns the options of the session. Changes have no effect."""
        return self._sess_options

    def get_inputs(self) -> list[NodeArg]:
        """Returns the inputs that a run must be given."""
        return self._inputs_meta

    def get_outputs(self) -> list[NodeArg]:
        """Returns the outputs."""
        return self._outputs_meta

    def get_overridable_initializers(self) -> list[NodeArg]:
        """Returns the inputs that have a value in the file, which a run may override."""
        return self._overridable_initializers

    def get_modelmeta(self) -> ModelMetadata:
        """Returns the description of the model."""
        return self._model_meta

    def get_input_memory_infos(self) -> list[OrtMemoryInfo]:
        """Returns where each input lies: in host memory."""
        return [OrtMemoryInfo() for _ in self._inputs_meta]

    def get_output_memory_infos(self) -> list[OrtMemoryInfo]:
        """Returns where each output lies: in host memory."""
        return [OrtMemoryInfo() for _ in self._outputs_meta]

    def get_input_epdevices(self) -> list[None]:
        """Returns the plugin that runs each input: none."""
        return [None for _ in self._inputs_meta]

    def get_provider_graph_assignment_info(self) -> list[Any]:
        """Returns the parts of the graph that execution providers run: none, because Pliant compiles the whole graph.

        Raises ``Fail``, as ONNX Runtime, unless the options request this information.
        """
        if self._sess_options._config.get(_ASSIGNMENT) != "1":
            raise status_error(Fail, f'Session configuration entry \'{_ASSIGNMENT}\' must be set to "1"')
        return []

    def get_tuning_results(self) -> list[Any]:
        """Returns the results of tuning: none."""
        return []

    def set_tuning_results(self, results: object, *, error_on_invalid: bool = False) -> None:
        """Accepted for compatibility; ignored."""

    def set_ep_dynamic_options(self, options: Mapping[str, str]) -> None:
        """Accepted for compatibility; ignored."""

    def release_captured_graph(self, graph_annotation_id: int = 0) -> None:
        """Accepted for compatibility; ignored."""

    def get_providers(self) -> list[str]:
        """Returns the execution providers of the session: the CPU's."""
        return self._providers

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """Returns the options of each execution provider, which are empty."""
        return self._provider_options

    def enable_fallback(self) -> None:
        """Lets the session fall back to the CPU if it cannot be created with the requested execution providers."""
        self._enable_fallback = True

    def disable_fallback(self) -> None:
        """Disables what :meth:`enable_fallback` enables."""
        self._enable_fallback = False

    # -- Runs ------------------------------------------------------------------------------------

    def run(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        run_options: RunOptions | None = None,
    ) -> list[Any]:
        """Runs the model and returns the requested outputs; ``None`` and an empty list request all.

        ``input_feed`` maps the names of inputs to arrays, lists, numbers, ``OrtValue`` objects or objects with DLPack. Tensors are
        returned as NumPy arrays, sequences as lists, and absent optional values as ``None``.

        Raises ``ValueError`` for missing inputs, ``InvalidArgument`` for unknown names and for wrong types, ranks and dims, and
        ``Fail`` if the run fails.
        """
        error: Exception | None = None
        if run_options is None:
            try:
                if len(input_feed) == self._direct_inputs:
                    result = self._call(*map(input_feed.__getitem__, self._names))
                    if self._single_output and (not output_names or output_names == self._output_names):
                        array = asarray(result)
                        return [array if array.flags.writeable else array.copy()]
                    results = (result,) if self._single_output else result
                    return [writable_array(results[i]) for i in self._output_indices(output_names)]
            except Exception as e:  # The checked run finds the reason, or converts the inputs.
                error = e
        result, indices = self._run_checked(output_names, input_feed, run_options, error)
        return [_plain(value) for value in self._results.values(result, indices)]

    def _run_ort_values(
        self,
        output_names: Sequence[str] | None,
        feeds: Mapping[str, OrtValue],
        held: Mapping[str, Any],
        run_options: RunOptions | None,
    ) -> list[OrtValue]:
        """Runs the model on ``OrtValue`` objects, which hold the values ``held``."""
        if len(held) == self._direct_inputs and run_options is None:
            try:
                result = self._call(*map(held.__getitem__, self._names))
                return self._results.values(result, self._output_indices(output_names))
            except Exception:  # The checked run finds the reason.
                pass
        return self._results.values(*self._run_checked(output_names, feeds, run_options, None))

    def _run_checked(
        self,
        output_names: Sequence[str] | None,
        feeds: Mapping[str, Any],
        run_options: RunOptions | None,
        error: Exception | None,
    ) -> tuple[object, list[int]]:
        """Runs the model on checked and converted inputs. ``error`` is that of a direct run on the same inputs, if there was one.
        Returns the result of the program, and the positions of the requested outputs in it."""
        indices, values = self._prepare(output_names, feeds, run_options)
        cancel = None if run_options is None else run_options._token()
        return self._execute(values, cancel, error if _same_values(values, feeds) else None), indices

    def _output_indices(self, output_names: Sequence[str] | None) -> list[int]:
        """Returns the positions of outputs. Raises ``TypeError`` for a string, and ``InvalidArgument`` for unknown names."""
        if not output_names or output_names == self._output_names:
            return self._all_outputs
        if isinstance(output_names, str) or not all(isinstance(name, str) for name in output_names):
            raise TypeError(f"run(): incompatible function arguments: output_names must be a list of str, got {output_names!r}")
        try:
            return [self._output_names.index(name) for name in output_names]
        except ValueError:
            unknown = next(name for name in output_names if name not in self._output_names)
            raise status_error(InvalidArgument, f"Invalid output name:{unknown}") from None

    def _prepare(
        self, output_names: Sequence[str] | None, feeds: Mapping[str, Any], run_options: RunOptions | None
    ) -> tuple[list[int], dict[str, object]]:
        """Checks the arguments of a run. Returns the positions of its outputs and the arguments of the program by name."""
        if run_options is not None and not isinstance(run_options, RunOptions):
            raise TypeError(f"run(): incompatible function arguments: run_options must be RunOptions, got {run_options!r}")
        values = self._checker.checked(feeds)
        indices = self._output_indices(output_names)
        return indices, values

    def _execute(self, values: Mapping[str, object], cancel: CancelToken | None, failure: Exception | None = None) -> object:
        """Runs the program on checked arguments. ``failure`` is the error of a direct run on the same arguments, if there was one."""
        program = self._program
        if len(values) != len(program.input_names):
            fed = frozenset(values).difference(arg.name for arg in self._inputs_meta)
            program = self._file.program(Variant(fed, self._variant.independent_dims))
        try:
            if failure is not None:
                raise failure
            return self._call_program(program, values, cancel)
        except ShapeError as e:
            return self._run_with_independent_dims(values, cancel, e)
        except CancelledError as e:
            raise status_error(Fail, "Exiting due to terminate flag being set to true.") from e
        except PliantError as e:
            raise run_error(e) from e

    def _call_program(self, program: Program, values: Mapping[str, object], cancel: CancelToken | None) -> object:
        """Calls a program and records its calls in the profile of the session, if there is one."""
        arguments = [values[name] for name in program.input_names]
        if self._profiler is not None:
            return self._profiler.run(program.model, arguments, cancel)
        return program.model(*arguments) if cancel is None else program.model(*arguments, cancel=cancel)

    def _run_with_independent_dims(self, values: Mapping[str, object], cancel: CancelToken | None, error: ShapeError) -> object:
        """Runs a program in which dims with equal names may differ: ONNX Runtime does not compare them. Later runs of the session
        use this program, too."""
        if self._variant.independent_dims or not dims_differ(self._inputs_meta, values):
            raise run_error(error) from error
        fed = frozenset(values).difference(arg.name for arg in self._inputs_meta)
        try:
            program = self._file.program(Variant(fed, independent_dims=True))
            result = self._call_program(program, values, cancel)
        except Exception:  # The first error names the dims of the file.
            raise run_error(error) from error
        text = f"dims with equal names differ, so the model was compiled again with independent dims: {error}"
        self._sess_options._log(_log.WARNING, text)
        self._variant = Variant(independent_dims=True)
        self._set_program(self._file.program(self._variant))
        return result

    def run_with_ort_values(
        self,
        output_names: Sequence[str] | None,
        input_dict_ort_values: Mapping[str, OrtValue],
        run_options: RunOptions | None = None,
    ) -> list[OrtValue]:
        """Runs the model on ``OrtValue`` objects and returns such objects. Errors are those of :meth:`run`."""
        feeds = {name: value._get_c_value() for name, value in input_dict_ort_values.items()}
        held = {name: value._value for name, value in feeds.items()}
        return self._run_ort_values(output_names, feeds, held, run_options)

    def run_with_ortvaluevector(
        self,
        run_options: RunOptions | None,
        feed_names: Sequence[str],
        feeds: Sequence[OrtValue],
        fetch_names: Sequence[str],
        fetches: OrtValueVector,
        fetch_devices: Sequence[Any] = (),
    ) -> None:
        """Runs the model and appends the results to ``fetches``. Errors are those of :meth:`run`."""
        for value in self.run_with_ort_values(fetch_names, dict(zip(feed_names, feeds, strict=True)), run_options):
            fetches.push_back(value)

    def run_async(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        callback: Callable[[list[Any], Any, str], object],
        user_data: object,
        run_options: RunOptions | None = None,
    ) -> None:
        """Starts a run on another thread, which then calls ``callback(results, user_data, error)``. ``error`` is ``""`` if the run
        succeeded; otherwise ``results`` is empty.

        Raises ``ValueError`` for missing inputs at once.
        """
        require_inputs(self._inputs_meta, list(input_feed.keys()))
        feeds = dict(input_feed)

        def task() -> None:
            results: list[Any] = []
            message = ""
            try:
                results = self.run(output_names, feeds, run_options)
            except Exception as e:
                message = status_message(e)
            callback(results, user_data, message)

        run_in_background(task)

    def create_ortvalue_from_shape_and_type(
        self, shape: Sequence[int], element_type: Any, device_type: str = "cpu", device_id: int = 0, vendor_id: int = -1
    ) -> OrtValue:
        """Creates a tensor without initializing its elements, as ``OrtValue.ortvalue_from_shape_and_type`` does."""
        return OrtValue.ortvalue_from_shape_and_type(shape, element_type, device_type, device_id, vendor_id)

    def io_binding(self) -> IOBinding:
        """Returns an object to which inputs and outputs of runs can be bound."""
        from pliant.onnxruntime._io_binding import IOBinding

        return IOBinding(self)

    def run_with_iobinding(self, iobinding: IOBinding, run_options: RunOptions | None = None) -> None:
        """Runs the model on bound inputs and writes the results to bound outputs.

        Raises ``ValueError`` if another session created the binding, and ``RuntimeError`` if the run fails.
        """
        if iobinding._session is not self:
            raise ValueError("IOBinding must be used with the session that created it.")
        iobinding._run(run_options)

    # -- Profile ---------------------------------------------------------------------------------

    def end_profiling(self) -> str:
        """Writes the profile of a session with ``SessionOptions.enable_profiling`` and returns the path of its file. Returns ``""``
        if there is none, or if it was already written."""
        return "" if self._profiler is None else self._profiler.write()

    def get_profiling_start_time_ns(self) -> int:
        """Returns the time at which the profile started, on the clock of ``time.monotonic_ns``. 0 without a profile."""
        return 0 if self._profiler is None else self._profiler.start_ns


def _same_values(values: Mapping[str, object], feeds: Mapping[str, object]) -> bool:
    """Whether the arguments of the program are the values that the caller passed."""
    return all(values[name] is feeds[name] for name in values if name in feeds)


def _plain(value: OrtValue) -> Any:
    """Returns a value as an array, a list, a dict or ``None``."""
    return value.numpy() if value.is_tensor() else value._value
