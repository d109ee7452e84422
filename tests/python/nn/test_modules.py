"""Tests modules as containers: names of parameters, state dicts, data types, mutators, safetensors files."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pliant import runtime
from pliant.relax.frontend import nn
from pliant.relax.frontend.nn import _safetensors
from pliant.error import UnsupportedError


class Block(nn.Module):
    def __init__(self) -> None:
        self.norm = nn.LayerNorm(4)
        self.lin = nn.Linear(4, 4)
        self.dtype = "float32"

    def forward(self, x: nn.Tensor) -> nn.Tensor:
        return self.lin(self.norm(x))


class Model(nn.Module):
    def __init__(self) -> None:
        self.embed = nn.Embedding(10, 4)
        self.blocks = nn.ModuleList([Block(), Block()])
        self.heads = nn.ModuleDict({"a": nn.Linear(4, 2, bias=False)})
        self.scales = nn.ParameterList([nn.Parameter((1,))])
        self.biases = nn.ParameterDict({"out": nn.Parameter((2,), "float16")})
        self.cache = nn.KVCache(8, [4])
        self.note = "not a parameter"


NAMES = [
    "embed.weight",
    *(f"blocks.{i}.{name}" for i in range(2) for name in ("norm.weight", "norm.bias", "lin.weight", "lin.bias")),
    "heads.a.weight",
    "scales.0",
    "biases.out",
]


def _arrays(model: nn.Module) -> dict[str, Any]:
    return {name: np.full(param.shape, i, param.dtype) for i, (name, param) in enumerate(model.named_parameters())}


def test_names_of_parameters() -> None:
    model = Model()
    assert [name for name, _ in model.named_parameters()] == NAMES
    assert list(model.state_dict(prefix="m.")) == [f"m.{name}" for name in NAMES]
    assert len(list(model.parameters())) == len(NAMES)


def test_containers_behave_like_lists_and_dicts() -> None:
    layers = nn.ModuleList([nn.ReLU()])
    layers.append(nn.SiLU())
    layers.extend([nn.GELU()])
    layers[0] = nn.Identity()
    assert [type(layer).__name__ for layer in layers] == ["Identity", "SiLU", "GELU"]
    assert len(layers) == 3
    blocks = nn.ModuleDict()
    blocks["a"] = nn.ReLU()
    blocks.update({"b": nn.SiLU()})
    assert list(blocks) == list(blocks.keys()) == ["a", "b"]
    assert "a" in blocks and "c" not in blocks and blocks.get("c") is None
    assert len(list(blocks.values())) == len(list(blocks.items())) == 2
    blocks.pop("a")
    del blocks["b"]
    assert len(blocks) == 0


def test_parameter_data() -> None:
    param = nn.Parameter((2, 3))
    assert param.data is None
    param.data = np.ones((2, 3), "float32")
    assert isinstance(param.data, runtime.NDArray)
    with pytest.raises(ValueError, match=r"has the shape \(2, 3\), but the array has the shape \(3, 2\)"):
        param.data = np.ones((3, 2), "float32")
    with pytest.raises(ValueError, match="has the data type float32, but the array has float64"):
        param.data = np.ones((2, 3))
    with pytest.raises(TypeError, match="expected an array"):
        param.data = [[1.0]]  # type: ignore[assignment]
    with pytest.raises(ValueError, match="cannot change the data type"):
        param.to("float16")
    param.data = None
    param.to("float16")
    assert param.dtype == "float16"
    assert repr(param) == 'Parameter([2, 3], "float16")'


def test_default_dtype() -> None:
    nn.set_default_dtype("float16")
    try:
        assert nn.get_default_dtype() == nn.Linear(2, 2).weight.dtype == "float16"
    finally:
        nn.set_default_dtype("float32")
    assert nn.Parameter((1,)).dtype == "float32"


def test_to_changes_all_data_types() -> None:
    model = Model()
    model.to("float16")
    assert {param.dtype for param in model.parameters()} == {"float16"}
    assert model.cache.dtype == "float16"
    assert model.blocks[0].dtype == "float16"  # type: ignore[attr-defined]
    model.to()


def test_apply_visits_inner_modules_first() -> None:
    seen: list[str] = []
    model = Model()
    assert model.apply(lambda module: seen.append(type(module).__name__)) is model
    assert seen[0] == "Embedding"
    assert seen[-1] == "Model"
    assert seen.count("Block") == 2


def test_load_state_dict() -> None:
    model = Model()
    arrays = _arrays(model)
    assert model.load_state_dict(arrays) == ([], [])
    for name, param in model.named_parameters():
        np.testing.assert_array_equal(param.data.numpy(), arrays[name])  # type: ignore[union-attr]
    other = Model()
    other.load_state_dict(model.state_dict())
    np.testing.assert_array_equal(other.state_dict()["scales.0"].data.numpy(), arrays["scales.0"])  # type: ignore[union-attr]


def test_load_state_dict_names_all_differences() -> None:
    model = Model()
    arrays = _arrays(model)
    del arrays["embed.weight"]
    arrays["extra"] = np.ones(1)
    arrays["scales.0"] = np.ones(2, "float32")
    arrays["biases.out"] = np.ones(2, "float32")
    for kind in (KeyError, ValueError):
        with pytest.raises(kind) as error:
            model.load_state_dict(arrays)
    text = str(error.value)
    assert "missing: embed.weight" in text
    assert "unexpected: extra" in text
    assert "'scales.0' has the shape (1), but the array has the shape (2,)" in text
    assert "'biases.out' has the data type float16, but the array has float32" in text
    assert all(param.data is None for param in model.parameters())


def test_load_state_dict_without_strict() -> None:
    model = Model()
    missing, unexpected = model.load_state_dict({"scales.0": np.ones(1, "float32"), "extra": np.ones(1)}, strict=False)
    assert missing == [name for name in NAMES if name != "scales.0"]
    assert unexpected == ["extra"]
    with pytest.raises(ValueError, match="has no elements"):
        model.load_state_dict({"scales.0": nn.Parameter((1,))}, strict=False)


def test_one_name_is_enough_for_a_shared_parameter() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            self.embed = nn.Embedding(3, 2)
            self.head = nn.Linear(2, 3, bias=False)
            self.head.weight = self.embed.weight

    for name in ("embed.weight", "head.weight"):
        model = Tied()
        assert model.load_state_dict({name: np.ones((3, 2), "float32")}) == ([], [])
        assert model.head.weight.data is model.embed.weight.data is not None
    with pytest.raises(KeyError, match="missing: embed.weight, head.weight"):
        Tied().load_state_dict({})


def test_symbolic_parameters_accept_any_size() -> None:
    param = nn.Parameter(("vocab", 4))
    param.data = np.ones((7, 4), "float32")
    with pytest.raises(ValueError, match=r"\(vocab, 4\)"):
        param.data = np.ones((7, 5), "float32")


def test_mutator_replaces_parts() -> None:
    class Replace(nn.Mutator):
        def __init__(self) -> None:
            self.names: list[str] = []

        def visit_module(self, name: str, node: nn.Module) -> Any:
            self.names.append(name)
            return nn.Identity() if isinstance(node, nn.LayerNorm) else self.visit(name, node)

        def visit_param(self, name: str, node: nn.Parameter) -> Any:
            self.names.append(name)
            return nn.Parameter(node.shape, "float64")

        def visit_effect(self, name: str, node: nn.Effect) -> Any:
            self.names.append(name)
            return node

    model, mutator = Model(), Replace()
    assert mutator.visit("", model) is model
    assert isinstance(model.blocks[1].norm, nn.Identity)  # type: ignore[attr-defined]
    assert {param.dtype for param in model.parameters()} == {"float64"}
    assert "blocks.0.lin.weight" in mutator.names
    assert "cache" in mutator.names
    assert "heads.a" in mutator.names
    assert "scales.0" in mutator.names


# --- safetensors ---------------------------------------------------------------------------------


def test_safetensors_files_round_trip(tmp_path: Path) -> None:
    model = Model()
    arrays = _arrays(model)
    model.load_state_dict(arrays)
    file = tmp_path / "model.safetensors"
    model.save_safetensors(file)
    loaded = Model()
    assert loaded.load_safetensors(file) == ([], [])
    for name, param in loaded.named_parameters():
        assert param.data is not None
        np.testing.assert_array_equal(param.data.numpy(), arrays[name])
    safetensors = pytest.importorskip("safetensors.numpy")
    for name, array in safetensors.load_file(file).items():
        np.testing.assert_array_equal(array, arrays[name])
    safetensors.save_file(arrays, tmp_path / "other.safetensors")
    Model().load_safetensors(tmp_path / "other.safetensors")


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"])
def test_safetensors_data_types(tmp_path: Path, dtype: str) -> None:
    arrays = {"odd": np.ones(3, "uint8"), "x": np.arange(6).reshape(2, 3).astype(dtype), "empty": np.ones((0, 2), dtype)}
    arrays["scalar"] = np.array(1, dtype)
    _safetensors.save(arrays, tmp_path / "x.safetensors")
    for name, array in _safetensors.load(tmp_path / "x.safetensors").items():
        assert array.dtype == str(arrays[name].dtype)
        assert array.shape == arrays[name].shape
        np.testing.assert_array_equal(array.numpy(), arrays[name])


def test_safetensors_of_bfloat16(tmp_path: Path) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    array = np.arange(4).astype(ml_dtypes.bfloat16)
    _safetensors.save({"x": array}, tmp_path / "x.safetensors")
    got = _safetensors.load(tmp_path / "x.safetensors")["x"]
    assert got.dtype == "bfloat16"
    np.testing.assert_array_equal(got.numpy(), array)


def test_safetensors_index(tmp_path: Path) -> None:
    _safetensors.save({"a": np.ones(1, "float32")}, tmp_path / "1.safetensors")
    _safetensors.save({"b": np.ones(2, "float32")}, tmp_path / "2.safetensors")
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"a": "1.safetensors", "b": "2.safetensors"}}))
    assert {name: array.shape for name, array in _safetensors.load(index).items()} == {"a": (1,), "b": (2,)}
    index.write_text("{}")
    with pytest.raises(ValueError, match="weight_map"):
        _safetensors.load(index)


def _file(header: Any, data: bytes = b"", length: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "has 0 bytes"),
        (b"1234", "has 4 bytes"),
        (_file({}, length=1 << 60), "does not fit"),
        (_file(b"[1, 2]"), "not a JSON object"),
        (_file(b"{\xff}"), "not a JSON object"),
        (_file({"x": 3}), "'x' is invalid"),
        (_file({"x": {"dtype": "F32", "shape": [1], "data_offsets": [0]}}), "'x' is invalid"),
        (_file({"x": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}}, b"1234"), "'x' is invalid"),
        (_file({"x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}}, b"1234"), "does not fit bytes 0 to 4"),
        (_file({"x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}, b"1234"), "does not fit bytes 0 to 8"),
    ],
)
def test_damaged_safetensors_files(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "x.safetensors").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        _safetensors.load(tmp_path / "x.safetensors")


def test_safetensors_errors(tmp_path: Path) -> None:
    (tmp_path / "x.safetensors").write_bytes(_file({"x": {"dtype": "F8_E4M3", "shape": [1], "data_offsets": [0, 1]}}, b"1"))
    with pytest.raises(UnsupportedError, match="F8_E4M3"):
        _safetensors.load(tmp_path / "x.safetensors")
    with pytest.raises(ValueError, match="'p' has no elements"):
        _safetensors.save({"p": nn.Parameter((1,))}, tmp_path / "y.safetensors")
    with pytest.raises(OSError):
        nn.Linear(1, 1).load_safetensors(tmp_path / "missing.safetensors")
