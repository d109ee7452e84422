"""What a model declares: its inputs, its outputs and its description."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pliant import _core
from pliant.onnxruntime._element_types import element_of_name

__all__ = ["ModelMetadata", "NodeArg", "model_metadata", "node_arg", "outputs_of"]

NO_VERSION = 2**63 - 1


@dataclass(frozen=True)
class NodeArg:
    """The name, type and shape of an input or output."""

    name: str
    """The name in the file."""
    type: str
    """The type, such as ``tensor(float)`` or ``seq(tensor(int64))``."""
    shape: list[int | str | None]
    """The dims: sizes, names of symbols, and ``None`` for unknown sizes. Empty for scalars and unknown ranks."""

    def __str__(self) -> str:
        return f"NodeArg(name='{self.name}', type='{self.type}', shape={self.shape})"

    def __hash__(self) -> int:
        return hash((self.name, self.type))


@dataclass
class ModelMetadata:
    """The description of a model, as the file states it."""

    producer_name: str = ""
    """The program that wrote the file."""
    graph_name: str = ""
    """The name of the graph."""
    domain: str = ""
    """The domain of the model."""
    description: str = ""
    """The description of the model."""
    graph_description: str = ""
    """The description of the graph."""
    version: int = NO_VERSION
    """The version of the model, or 2**63 - 1 if the file does not state it."""
    custom_metadata_map: dict[str, str] = field(default_factory=dict)
    """Other metadata, by key."""


def model_metadata(file: _core.OnnxFile) -> ModelMetadata:
    """Returns the description of a model."""
    return ModelMetadata(
        file.producer_name,
        file.graph_name,
        file.domain,
        file.doc_string,
        file.graph_doc_string,
        NO_VERSION if file.model_version is None else file.model_version,
        dict(file.metadata_props),
    )


def node_arg(info: _core.OnnxValueInfo, sizes: Mapping[str, int], sizes_by_denotation: Mapping[str, int]) -> NodeArg:
    """Converts a declaration of the file. Dims whose name or denotation has a fixed size get this size."""
    dims = info.shape or []
    denotations = info.denotations or [""] * len(dims)
    shape = [
        sizes.get(dim, dim) if isinstance(dim, str) and dim in sizes else sizes_by_denotation.get(denotation, dim)
        for dim, denotation in zip(dims, denotations, strict=True)
    ]
    return NodeArg(info.name, info.type, shape)


def outputs_of(declared: list[NodeArg], result: Any) -> list[NodeArg]:
    """Completes declared outputs with the inferred type of the program's result. Types of the file prevail."""
    inferred = result.fields if isinstance(result, _core.relax.TupleStructInfo) and len(declared) != 1 else [result]
    if len(inferred) != len(declared):
        return declared
    return [_completed(output, info) for output, info in zip(declared, inferred, strict=True)]


def _completed(output: NodeArg, inferred: Any) -> NodeArg:
    """Returns an output with the inferred type where the file does not declare one, and with inferred fixed dims."""
    if not isinstance(inferred, _core.relax.TensorStructInfo) or not inferred.dtype:
        return output
    kind = output.type or element_of_name(inferred.dtype).tensor_type
    values = getattr(inferred.shape, "values", None)
    if values is None:
        return NodeArg(output.name, kind, output.shape)
    dims = [_dim(value) for value in values]
    if not output.type or len(output.shape) != len(dims):
        return NodeArg(output.name, kind, dims)
    merged = [new if isinstance(new, int) and not isinstance(dim, int) else dim for dim, new in zip(output.shape, dims, strict=True)]
    return NodeArg(output.name, kind, merged)


def _dim(value: Any) -> int | str | None:
    """Converts a dim of the program: a size, or the text of a symbolic dim."""
    size = getattr(value, "value", value)
    return size if isinstance(size, int) else str(value)
