"""The exceptions of ONNX Runtime, and the conversion of Pliant's errors to them.

As in ONNX Runtime, each exception stands for one status code and derives from ``Exception`` only. Pliant's error is the cause
(``__cause__``) of the exception.
"""

from __future__ import annotations

from pliant.error import CompileError, DTypeError, InternalError, PliantError, ShapeError, UnsupportedError

__all__ = [
    "DeviceReset",
    "EPFail",
    "EngineError",
    "Fail",
    "InvalidArgument",
    "InvalidGraph",
    "InvalidProtobuf",
    "ModelLoadCanceled",
    "ModelLoaded",
    "ModelRequiresCompilation",
    "NoModel",
    "NoSuchFile",
    "NotFound",
    "NotImplemented",
    "RuntimeException",
]


class Fail(Exception):
    """A run or the creation of a session failed (status code 1)."""


class InvalidArgument(Exception):
    """An argument is invalid: an unknown name, or an input with a wrong type, rank or dim (status code 2)."""


class NoSuchFile(Exception):
    """The model file does not exist (status code 3)."""


class NoModel(Exception):
    """No model was loaded (status code 4)."""


class EngineError(Exception):
    """The engine failed (status code 5)."""


class RuntimeException(Exception):
    """An internal error (status code 6)."""


class InvalidProtobuf(Exception):
    """The file or the bytes are not an ONNX model (status code 7)."""


class ModelLoaded(Exception):
    """A model was already loaded (status code 8)."""


class NotImplemented(Exception):  # noqa: A001 (the name of ONNX Runtime)
    """The model or a call uses an unsupported feature (status code 9)."""


class InvalidGraph(Exception):
    """The graph of the model violates a rule of ONNX (status code 10)."""


class EPFail(Exception):
    """An execution provider failed (status code 11)."""


class ModelLoadCanceled(Exception):
    """The creation of a session was canceled (status code 12)."""


class ModelRequiresCompilation(Exception):
    """The model must be compiled first (status code 13)."""


class NotFound(Exception):
    """Something was not found (status code 14)."""


class DeviceReset(Exception):
    """The device was reset (status code 15)."""


_STATUS: dict[type[Exception], tuple[int, str]] = {
    Fail: (1, "FAIL"),
    InvalidArgument: (2, "INVALID_ARGUMENT"),
    NoSuchFile: (3, "NO_SUCHFILE"),
    NoModel: (4, "NO_MODEL"),
    EngineError: (5, "ENGINE_ERROR"),
    RuntimeException: (6, "RUNTIME_EXCEPTION"),
    InvalidProtobuf: (7, "INVALID_PROTOBUF"),
    ModelLoaded: (8, "MODEL_LOADED"),
    NotImplemented: (9, "NOT_IMPLEMENTED"),
    InvalidGraph: (10, "INVALID_GRAPH"),
    EPFail: (11, "EP_FAIL"),
    ModelLoadCanceled: (12, "MODEL_LOAD_CANCELED"),
    ModelRequiresCompilation: (13, "MODEL_REQUIRES_COMPILATION"),
    NotFound: (14, "NOT_FOUND"),
    DeviceReset: (15, "DEVICE_RESET"),
}

# The status of Pliant's errors. The first matching row counts.
_OF_IMPORT: list[tuple[type[PliantError], type[Exception]]] = [
    (UnsupportedError, NotImplemented),
    (CompileError, InvalidGraph),
    (InternalError, RuntimeException),
]
_OF_COMPILATION: list[tuple[type[PliantError], type[Exception]]] = [
    (UnsupportedError, NotImplemented),
    (InternalError, RuntimeException),
]
_OF_RUN: list[tuple[type[PliantError], type[Exception]]] = [
    (UnsupportedError, NotImplemented),
    (ShapeError, InvalidArgument),
    (DTypeError, InvalidArgument),
    (InternalError, RuntimeException),
]


def status_error(kind: type[Exception], message: str) -> Exception:
    """Creates an exception with ONNX Runtime's form of messages, such as ``[ONNXRuntimeError] : 1 : FAIL : message``."""
    code, name = _STATUS[kind]
    return kind(f"[ONNXRuntimeError] : {code} : {name} : {message}")


def status_message(error: Exception) -> str:
    """Returns the message of an error without the code of its status."""
    text = str(error)
    code = _STATUS.get(type(error))
    return text if code is None else text.removeprefix(f"[ONNXRuntimeError] : {code[0]} : {code[1]} : ")


def import_error(error: PliantError, model: str) -> Exception:
    """Converts an error of the import of ``model``, which is a description such as ``Load model from a.onnx failed:``."""
    return status_error(_kind(error, _OF_IMPORT), f"{model}{error}")


def compile_error(error: PliantError, model: str) -> Exception:
    """Converts an error of the compilation of ``model``."""
    return status_error(_kind(error, _OF_COMPILATION), f"{model}{error}")


def run_error(error: PliantError) -> Exception:
    """Converts an error of a run."""
    return status_error(_kind(error, _OF_RUN), str(error))


def _kind(error: PliantError, table: list[tuple[type[PliantError], type[Exception]]]) -> type[Exception]:
    return next((status for kind, status in table if isinstance(error, kind)), Fail)
