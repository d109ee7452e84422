"""The models of ``peers/zoo``, each at a small and a large shape. Another folder can be used if its ``zoo.py`` defines the same
functions."""

from __future__ import annotations

import importlib.util
import math
from functools import cache, partial
from pathlib import Path
from types import ModuleType

import numpy as np

from peers import zoo

from .benchmark_case import Case, Feeds, Sizes


@cache
def zoo_module(folder: str) -> ModuleType:
    """Imports the `zoo` module of a folder; without a folder, `peers.zoo`."""
    if not folder:
        return zoo
    spec = importlib.util.spec_from_file_location("zoo_of_a_folder", Path(folder) / "zoo.py")
    if spec is None or spec.loader is None:
        raise SystemExit(f"{folder} has no zoo.py")
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def names(folder: str) -> list[str]:
    """Returns the names of the models whose graphs exist, as `folder#model`."""
    models = zoo_module(folder)
    return [f"{folder}#{name}" for name in models.names() if (Path(models.GRAPHS) / f"{name}.onnx").exists()]


def case(name: str) -> Case:
    """Returns the case of a model, at the sizes of its smallest and of its largest inputs without empty tensors."""
    folder, model = name.rsplit("#", 1)
    models = zoo_module(folder)
    cases: list[tuple[Sizes, Feeds]] = [(c, f) for c, f in models.cases(model) if all(np.size(x) for x in f.values())]
    cases.sort(key=lambda pair: sum(math.prod(np.shape(x)) for x in pair[1].values()))
    selected = [cases[0], cases[-1]] if len(cases) > 1 else cases

    def feeds(sizes: Sizes) -> Feeds:
        return next(f for c, f in selected if c == sizes)

    return Case(model, partial(models.load, model), feeds, [c for c, _ in selected], error=1e-3, step=1)
