"""Compares the gradient of every operator that has one with finite differences in float64, at sizes including 0 and 1.

The operators come from the registry, so an operator with a new gradient fails until it has a case in ``gradient_cases.py``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from training.gradient_cases import CASES, Case

from pliant import _core, relax

# Other tests in this process may have registered their own operators.
OWN = {name for name in _core.relax.op_names() if _core.relax.get_op(name).__doc__.startswith("A user-defined operator")}
DIFFERENTIABLE = sorted({name.removeprefix("relax.") for name in _core.relax.op_names() if name not in OWN})
DIFFERENTIABLE = [name for name in DIFFERENTIABLE if _core.relax.op_gradient(name) in ("rule", "te")]
ALIASES = {"transpose": "permute_dims", "dot": "matmul", "nn.matmul": "matmul", "nn.linear": "linear"}
STEP = 1e-5


def test_at_least_120_operators_have_a_gradient() -> None:
    assert len([name for name in DIFFERENTIABLE if name not in ALIASES]) >= 120


def test_every_operator_with_a_gradient_has_a_case() -> None:
    assert [name for name in DIFFERENTIABLE if ALIASES.get(name, name) not in CASES] == []


def _is_float(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype == np.float64


def _program(name: str, case: Case) -> tuple[Any, list[np.ndarray]]:
    """A function of the operands that returns the sum of all results, each multiplied by a weight. Returns it with the arguments."""
    builder = relax.BlockBuilder()
    arrays: list[np.ndarray] = []
    params: list[Any] = []

    def operand(value: Any) -> Any:
        if isinstance(value, tuple) and any(isinstance(v, np.ndarray) for v in value):
            return relax.Tuple([operand(v) for v in value])
        if not isinstance(value, np.ndarray):
            return value
        arrays.append(value)
        param = relax.Var(f"p{len(params)}", relax.TensorStructInfo(value.shape, str(value.dtype)))
        params.append(param)
        return param

    operands = [operand(value) for value in case.operands]
    function: Any = relax.op
    for part in name.split("."):
        function = getattr(function, part)
    # The parameters must be known before the builder starts, so the call is made inside.
    with builder.function("main", params):
        with builder.dataflow():
            result = builder.emit(function(*operands, **case.attrs))
            info = result.struct_info
            fields = [result]
            if isinstance(info, relax.TupleStructInfo):
                fields = [builder.emit(relax.TupleGetItem(result, k)) for k in range(len(info.fields))]
            total = None
            for k, field in enumerate(f for f in fields if str(f.struct_info.dtype) == "float64"):
                shape = tuple(int(d) for d in field.struct_info.shape)
                weights = np.cos(np.arange(int(np.prod(shape)), dtype="float64") + k).reshape(shape)
                term = builder.emit(relax.op.sum(relax.op.multiply(field, relax.const(weights, "float64"))))
                total = term if total is None else builder.emit(relax.op.add(total, term))
            out = builder.emit_output(total)
        builder.emit_func_output(out)
    return builder.get(), arrays


def _finite_differences(run: Any, arrays: list[np.ndarray], k: int) -> np.ndarray:
    gradient = np.zeros(arrays[k].shape)
    for i in np.ndindex(*arrays[k].shape):
        values = []
        for step in (STEP, -STEP):
            moved = arrays[k].copy()
            moved[i] += step
            values.append(float(run(*arrays[:k], moved, *arrays[k + 1 :]).numpy()))
        gradient[i] = (values[0] - values[1]) / (2 * STEP)
    return gradient


@pytest.mark.parametrize("name", [name for name in DIFFERENTIABLE if name not in ALIASES])
def test_gradient_equals_finite_differences(name: str) -> None:
    rng = np.random.default_rng(sum(map(ord, name)))
    count = 0
    for case in CASES[name](rng):
        mod, arrays = _program(name, case)
        floats = [k for k, array in enumerate(arrays) if _is_float(array)]
        names = [mod["main"].params[k].name_hint for k in floats]
        differentiated = relax.transform.Gradient("main", names)(mod)
        vm = relax.VirtualMachine(relax.build(differentiated))
        _, gradients = vm["main_adjoint"](*arrays)
        for k, gradient in zip(floats, gradients):
            expected = _finite_differences(vm["main"], arrays, k)
            assert gradient.numpy().shape == arrays[k].shape
            np.testing.assert_allclose(gradient.numpy(), expected, rtol=1e-5, atol=1e-7, err_msg=f"{name}{case.attrs}: operand {k}")
            count += 1
    assert count > 0

