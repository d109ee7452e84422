"""The compiled programs of a session: a model file, and the programs for the ways in which it is called."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pliant import _core
from pliant._core import IRModule, Model
from pliant._model import compile_module
from pliant.error import PliantError
from pliant.frontend.onnx import Imported, ImportOptions, import_with_warnings
from pliant.onnxruntime import _log
from pliant.onnxruntime._enums import GraphOptimizationLevel
from pliant.onnxruntime._metadata import NodeArg, node_arg, outputs_of
from pliant.onnxruntime._status import (
    InvalidArgument,
    InvalidProtobuf,
    ModelLoadCanceled,
    NoSuchFile,
    NotImplemented,
    compile_error,
    import_error,
    status_error,
)

if TYPE_CHECKING:
    from pliant.onnxruntime._options import SessionOptions

__all__ = ["ModelFile", "Program", "Variant"]

# Pliant's optimization levels for those of ONNX Runtime. All others are Pliant's default.
_OPT_LEVELS = {GraphOptimizationLevel.ORT_DISABLE_ALL: 0, GraphOptimizationLevel.ORT_ENABLE_BASIC: 1}


@dataclass(frozen=True)
class Variant:
    """A way to call a model that needs a program of its own."""

    fed_initializers: frozenset[str] = frozenset()
    """The initializers for which the call passes values."""
    independent_dims: bool = False
    """Whether dims with equal names may have different sizes."""


@dataclass(frozen=True)
class Program:
    """A compiled program."""

    model: Model
    """The program, which takes its arguments in the order of ``input_names``."""
    input_names: tuple[str, ...]
    """The names of the inputs in the file."""


class ModelFile:
    """A model file with the options of a session."""

    def __init__(self, source: str | bytes, options: SessionOptions) -> None:
        """Decodes the file at a path, or bytes. Raises exceptions of ONNX Runtime if that is not possible."""
        self._options, self._source = options, source
        self._name = "a model in memory" if isinstance(source, bytes) else f"'{source}'"
        self._place = "" if isinstance(source, bytes) else f"Load model from {source} failed:"
        self.file = self._decode(source)
        by_name, by_denotation = options._dims_by_name, options._dims_by_denotation
        if any(size < 0 for size in (*by_name.values(), *by_denotation.values())):
            raise status_error(InvalidArgument, "a free dimension override is negative")

        def args(infos: list[_core.OnnxValueInfo]) -> list[NodeArg]:
            return [node_arg(info, by_name, by_denotation) for info in infos]

        self.inputs = args(self.file.inputs)
        self.overridable_initializers = args(self.file.overridable_initializers)
        self.outputs = args(self.file.outputs)
        self.scalars = frozenset(info.name for info in self.file.inputs if info.shape == [] and info.type.startswith("tensor("))
        self._compiled: dict[Variant, Program] = {}
        self._replaced = [name for name in options._initializers if name in self.file.initializer_names]
        self._lock = threading.Lock()

    def _decode(self, source: str | bytes) -> _core.OnnxFile:
        if isinstance(source, bytes):
            is_empty, problem = not source, "Failed to load model because protobuf parsing failed."
        elif os.path.exists(source):
            is_empty, problem = os.path.isfile(source) and os.path.getsize(source) == 0, "Protobuf parsing failed."
        else:
            raise status_error(NoSuchFile, f"{self._place}Load model {source} failed. File doesn't exist")
        if self._is_ort_format(source):
            raise status_error(NotImplemented, f"{self._place}the file has ONNX Runtime's own format (.ort): use the .onnx file")
        if is_empty:
            raise status_error(InvalidArgument, f"{self._place}No graph was found in the protobuf.")
        try:
            return _core.OnnxFile(source)
        except PliantError as e:
            raise status_error(InvalidProtobuf, f"{self._place}{problem} ({e})") from e

    def _is_ort_format(self, source: str | bytes) -> bool:
        declared = self._options._config.get("session.load_model_format", "").upper()
        return declared == "ORT" or (not declared and isinstance(source, str) and source.endswith(".ort"))

    def program(self, variant: Variant) -> Program:
        """Returns the program for a way to call the model, which is compiled at the first request.

        Raises exceptions of ONNX Runtime if it does not compile.
        """
        with self._lock:
            if variant not in self._compiled:
                try:
                    imported = self._import(variant)
                except PliantError as e:
                    raise import_error(e, self._place) from e
                if self._options._load_canceled[0]:
                    raise status_error(ModelLoadCanceled, "Graph loading canceled due to user request.")
                try:
                    self._compiled[variant] = self._compile(imported)
                except PliantError as e:
                    raise compile_error(e, self._place) from e
            return self._compiled[variant]

    def write(self, path: str) -> None:
        """Writes the model as it was passed. Weights in other files stay where they are.

        Raises ``InvalidArgument``, as ONNX Runtime, if the file cannot be written.
        """
        try:
            if isinstance(self._source, bytes):
                with open(path, "wb") as file:
                    file.write(self._source)
            elif not (os.path.exists(path) and os.path.samefile(self._source, path)):
                shutil.copyfile(self._source, path)
        except OSError as e:
            raise InvalidArgument(f"SystemError : {e.errno} (the optimized model cannot be written: {e})") from e

    def _import(self, variant: Variant) -> Imported:
        """Imports the model. If initializers are replaced, all of them are parameters of the function."""
        options = ImportOptions(
            shape_dict=self._shapes(variant),
            keep_params_in_input=bool(self._replaced),
            dynamic_shapes={name: {} for name in sorted(variant.fed_initializers)},
            allow_specialization=True,
        )
        imported = import_with_warnings(self.file, options)
        for text in imported.warnings:
            self._options._log(_log.WARNING, text)
        return imported

    def _compile(self, imported: Imported) -> Program:
        options, module = self._options, imported.module
        if self._replaced:
            params = {name: np.asarray(array) for name, array in imported.params.items()}
            params.update((name, options._initializers[name].numpy()) for name in self._replaced)
            module = _bind_params(module, list(params.values()))
        settings: dict[str, Any] = {}
        if options.graph_optimization_level in _OPT_LEVELS:
            settings["opt_level"] = _OPT_LEVELS[options.graph_optimization_level]
        if options.intra_op_num_threads > 0:
            settings["threads"] = options.intra_op_num_threads
        start = time.monotonic()
        self.outputs = outputs_of(self.outputs, module["main"].ret_struct_info)
        model = Model(compile_module(module, None, settings), imported.shape_report)
        options._log(_log.VERBOSE, f"compiled {self._name} in {time.monotonic() - start:.3f} s")
        return Program(model, tuple(model.input_names))

    def _shapes(self, variant: Variant) -> Mapping[str, list[int | str | None]]:
        """Returns the dims of inputs whose dims differ from those in the file."""
        shapes: dict[str, list[int | str | None]] = {}
        for declared, arg in zip(self.file.inputs, self.inputs, strict=True):
            dims = arg.shape
            if variant.independent_dims:
                dims = [dim if isinstance(dim, int) else None for dim in dims]
            if declared.shape is not None and dims != declared.shape and arg.type.startswith("tensor("):
                shapes[arg.name] = dims
        return shapes


def _bind_params(module: IRModule, values: list[Any]) -> IRModule:
    """Binds the last parameters of the function ``main`` to values."""
    from pliant import relax

    params = module["main"].params
    bound = dict(zip(params[len(params) - len(values) :], values, strict=True))
    result: IRModule = relax.transform.BindParams("main", bound)(module)
    return result
