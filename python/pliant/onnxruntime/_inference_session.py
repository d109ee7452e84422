"""`InferenceSession`: a session that is created from a file or from bytes, for requested execution providers."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from pliant.onnxruntime._options import SessionOptions, get_default_session_options
from pliant.onnxruntime._providers import (
    AVAILABLE_PROVIDERS,
    ProviderArgument,
    check_and_normalize_provider_args,
    registered_providers,
)
from pliant.onnxruntime._session import Session

__all__ = ["InferenceSession"]

_FALLBACK = list(AVAILABLE_PROVIDERS)


class InferenceSession(Session):
    """A compiled model, created from a file or from bytes."""

    def __init__(
        self,
        path_or_bytes: str | bytes | os.PathLike[str],
        sess_options: SessionOptions | None = None,
        providers: ProviderArgument | None = None,
        provider_options: Sequence[Mapping[Any, Any]] | None = None,
        **kwargs: Any,
    ) -> None:
        """Compiles the ONNX model in a file or in bytes.

        ``providers`` and ``provider_options`` are checked, but the model is always compiled for the CPU. ``enable_fallback`` states
        whether to use the CPU if the providers are invalid. Other keywords are ignored, as in ONNX Runtime. If the environment
        variable ``ORT_LOAD_CONFIG_FROM_MODEL`` is 1, options in the metadata of the model override ``sess_options``.

        Raises ``NoSuchFile``, ``InvalidProtobuf``, ``InvalidGraph`` or ``NotImplemented`` if the model cannot be compiled, and
        ``TypeError`` for arguments of a wrong type.
        """
        super().__init__(enable_fallback=int(kwargs.get("enable_fallback", 1)) == 1)
        if isinstance(path_or_bytes, str | os.PathLike):
            self._model_path, self._model_bytes = os.fspath(path_or_bytes), None
        elif isinstance(path_or_bytes, bytes):
            self._model_path, self._model_bytes = None, path_or_bytes
        else:
            raise TypeError(f"Unable to load from type '{type(path_or_bytes)}'")
        if self._model_path == "":
            raise TypeError("InferenceSession.__init__(): the path is empty")
        if not (sess_options is None or isinstance(sess_options, SessionOptions)):
            raise TypeError(f"InferenceSession: sess_options must be SessionOptions, got {sess_options!r}")
        self._initial_options = get_default_session_options() if sess_options is None else sess_options
        try:
            self._create(providers, provider_options)
        except (ValueError, RuntimeError) as e:
            if not self._enable_fallback:
                raise
            self._create_with_fallback(providers, e)

    def _create(
        self, providers: ProviderArgument | None, provider_options: Sequence[Mapping[Any, Any]] | None
    ) -> None:
        names, _ = check_and_normalize_provider_args(providers, provider_options, AVAILABLE_PROVIDERS)
        registered = registered_providers(names)
        self._open(self._initial_options._copy())
        self._providers = registered
        self._provider_options = {name: {} for name in registered}

    def _create_with_fallback(self, providers: ProviderArgument | None, error: Exception) -> None:
        """Prints ONNX Runtime's message and creates the session for the CPU."""
        print("*************** EP Error ***************")
        print(f"EP Error {error} when using {providers}")
        print(f"Falling back to {_FALLBACK} and retrying.")
        print("****************************************")
        try:
            self._create(_FALLBACK, None)
        except Exception as fallback_error:
            raise fallback_error from error
        self.disable_fallback()

    def set_providers(
        self, providers: ProviderArgument | None = None, provider_options: Sequence[Mapping[Any, Any]] | None = None
    ) -> None:
        """Checks execution providers. The model is compiled for the CPU, so the session does not change.

        Raises ``ValueError`` for arguments of another form, and ``RuntimeError`` for unknown names.
        """
        names, _ = check_and_normalize_provider_args(providers, provider_options, AVAILABLE_PROVIDERS)
        self._providers = registered_providers(names)

    def __getstate__(self) -> dict[str, Any]:
        """Returns the path or the bytes of the model and the options. The model is compiled again when the session is unpickled."""
        source = self._model_path if self._model_bytes is None else self._model_bytes
        return {"path_or_bytes": source, "sess_options": self._sess_options, "providers": self._providers}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]  # a subclass has methods of its own for its state
