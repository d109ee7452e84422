"""Tests the errors for arrays of other frameworks that cannot be exported."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pliant
from pliant import relax
from pliant.script import from_source


class Recorded:
    """A tensor like PyTorch's with ``requires_grad`` set: it refuses to export its memory."""

    dtype = "torch.float32"
    shape = (2, 4)
    requires_grad = True

    def __dlpack__(self, **_options: Any) -> Any:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def test_requires_grad_error_suggests_detach() -> None:
    func = from_source('@R.function\ndef main(x: R.Tensor(("n", 4), "float32")):\n    return R.add(x, x)\n')
    model, vm = pliant.compile(func), relax.VirtualMachine(relax.build(func))
    for call in (
        lambda: model(Recorded()),
        lambda: vm["main"](Recorded()),
        lambda: pliant.runtime.tensor(Recorded()),
        lambda: relax.const(Recorded()),
        lambda: relax.op.add(relax.Var("x"), Recorded()),
    ):
        with pytest.raises(TypeError, match=r"call \.detach\(\)"):
            call()


def test_other_export_errors_keep_their_messages() -> None:
    class Odd(Recorded):
        requires_grad = False

    with pytest.raises(pliant.DTypeError, match="arrays of torch.float32 are not supported"):
        pliant.runtime.tensor(Odd())
    assert pliant.runtime.tensor(np.ones(2, "float32")).shape == (2,)
