"""Tests `Model.arun`, which runs a model without blocking an event loop, and the table that notebooks show of a model."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

import pliant
from pliant.script import ir as I
from pliant.script import relax as R


@I.ir_module
class Double:
    @R.function
    def main(x: R.Tensor(("n",), "float32")):
        y = R.add(x, x)
        return y


@pytest.fixture(scope="module")
def model() -> pliant.Model:
    return pliant.compile(Double)


def test_concurrent_runs(model: pliant.Model) -> None:
    async def main() -> list[int]:
        results = await asyncio.gather(*(model.arun(np.full(n, n, np.float32), timeout=60) for n in range(8)))
        return [int(result.numpy().sum()) for result in results]

    assert asyncio.run(main()) == [2 * n * n for n in range(8)]


def test_inputs_by_name_and_errors(model: pliant.Model) -> None:
    assert asyncio.run(model.arun(x=np.ones(3, np.float32))).shape == (3,)
    with pytest.raises(pliant.error.DTypeError):
        asyncio.run(model.arun(np.ones(3)))
    with pytest.raises(pliant.error.CallError):
        asyncio.run(model.arun())


def test_models_are_instances_of_the_class(model: pliant.Model, tmp_path: object) -> None:
    path = f"{tmp_path}/model.plx"
    model.save(path)
    for other in (model, pliant.load(path), pliant.build(Double)):
        assert type(other) is pliant.Model and other(np.ones(2, np.float32)).shape == (2,)


def test_table_for_notebooks(model: pliant.Model) -> None:
    assert model._repr_html_() == (
        '<table><tr><td>input</td><td>x</td><td><code>R.Tensor((n,), dtype=&quot;float32&quot;)</code></td></tr>'
        '<tr><td>result</td><td></td><td><code>R.Tensor((n,), dtype=&quot;float32&quot;)</code></td></tr></table>'
    )
