"""Tests models whose size expressions would grow without bound if each node expanded all earlier computations."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import pliant

from onnx_models import model_of, node


@pytest.mark.parametrize(("start", "end", "less"), [(1, -1, 2), (2, 10**9, 2), (0, -3, 3)])
def test_slices_of_slices(start: int, end: int, less: int) -> None:
    count = 60
    names = ["x", *(f"t{i}" for i in range(count - 1)), "y"]
    nodes = [node("Slice", f"{a} s e", b) for a, b in pairwise(names)]
    constants = {"s": np.array([start]), "e": np.array([end])}
    sliced = pliant.compile(model_of(nodes, {"x": ["n"]}, ["y"], constants))
    for n in (200, less * count + 1, 5, 0):
        assert sliced.run(None, {"x": np.zeros(n, "float32")})[0].shape == (max(n - less * count, 0),)


def test_arithmetic_that_doubles_its_text() -> None:
    nodes = [node("Shape", "x", "h0")]
    for i in range(12):
        nodes += [
            node("Div", f"h{i} two", f"d{i}"),
            node("Sub", f"h{i} d{i}", f"e{i}"),
            node("Mul", f"d{i} e{i}", f"f{i}"),
            node("Sub", f"f{i} cap", f"g{i}"),
            node("Max", f"g{i} h{i}", f"m{i}"),
            node("Min", f"m{i} cap", f"h{i + 1}"),
        ]
    nodes.append(node("ConstantOfShape", "h12", "y"))
    made = pliant.compile(model_of(nodes, {"x": ["n"]}, ["y"], {"two": np.array([2]), "cap": np.array([1000])}))
    for n in (0, 1, 9, 40, 2000):
        h = n
        for _ in range(12):
            h = min(max(h // 2 * (h - h // 2) - 1000, h), 1000)
        assert made.run(None, {"x": np.zeros(n, "float32")})[0].shape == (h,)
