"""Loads cases that a previous search saved in folders."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx

from .benchmark_case import Case, Feeds, Sizes


def case(folder: str) -> Case:
    """Returns the model of a folder as a case, at the sizes for which the folder has inputs."""
    source = Path(folder)
    indices = sorted(int(path.stem.removeprefix("inputs")) for path in source.glob("inputs*.npz"))
    outcomes = [json.loads((source / f"outcome{i}.json").read_text()) for i in indices]
    sizes: list[Sizes] = [outcome["sizes"] for outcome in outcomes]

    def feeds(requested: Sizes) -> Feeds:
        with np.load(source / f"inputs{indices[sizes.index(requested)]}.npz") as data:
            return dict(data)

    first = outcomes[0]
    return Case(
        first["case"], lambda: onnx.load(source / "model.onnx"), feeds, sizes, first.get("error", 1e-3), first.get("step", 1)
    )
