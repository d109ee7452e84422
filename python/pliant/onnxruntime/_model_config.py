"""Session options that a model file contains: its metadata entry ``ort_config``, a JSON text."""

from __future__ import annotations

import json
from collections.abc import Mapping

from pliant.onnxruntime._enums import ExecutionMode, GraphOptimizationLevel
from pliant.onnxruntime._options import SessionOptions
from pliant.onnxruntime._status import Fail, status_error

__all__ = ["apply_model_config"]

# The conversions of the options that a file may contain.
_OPTIONS = {
    "intra_op_num_threads": int,
    "inter_op_num_threads": int,
    "execution_mode": ExecutionMode,
    "graph_optimization_level": GraphOptimizationLevel,
    "enable_profiling": bool,
}


def apply_model_config(options: SessionOptions, metadata: Mapping[str, str]) -> None:
    """Sets the options that a model file contains. Raises ``Fail`` if the file states them in another form."""
    text = metadata.get("ort_config")
    if text is None:
        return
    try:
        for name, value in json.loads(text).get("session_options", {}).items():
            setattr(options, name, _OPTIONS[name](value))
    except (AttributeError, KeyError, TypeError, ValueError) as e:
        raise status_error(Fail, f"the entry 'ort_config' of the model's metadata is invalid: {e!r}") from e
