"""Rewrites keep reads before and after calls that work in place, whatever their types say of effects."""

import numpy as np
import pliant as tvm
import pytest
from pliant import relax
from pliant.relax.dpl import is_op, rewrite_call, wildcard
from pliant.script import ir as I
from pliant.script import relax as R
from pliant.script import tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def inc(w: T.Buffer((3,), "float32")):
        for i in range(3):
            w[i] = w[i] + T.float32(1)

    @R.function(pure=False)
    def main(w: R.Tensor((3,), "float32")):
        cls = Module
        a = R.exp(w)
        w1 = R.call_tir_inplace(cls.inc, (w,), inplace_indices=[0], out_sinfo=R.Tensor((3,), "float32"))
        b = R.sqrt(a)
        return (b, w1)


def sqrt_of_exp():
    """The pattern, and its operand."""
    x = wildcard()
    return is_op("relax.sqrt")(is_op("relax.exp")(x)), x


def with_rewrite_call(module):
    """`sqrt(exp(x))` is `exp(x / 2)`."""
    pattern, x = sqrt_of_exp()
    half = relax.const(0.5, "float32")
    made = rewrite_call(pattern, lambda _, m: relax.op.exp(relax.op.multiply(m[x], half)), module["main"])
    out = module.clone()
    out["main"] = made
    return out


def with_fusion(module):
    """The same pattern as a backend's."""
    pattern, _ = sqrt_of_exp()
    module = relax.transform.ConvertToDataflow()(module)
    return relax.transform.FuseOpsByPattern([("z.half", pattern)])(module)


@pytest.mark.parametrize("change", [with_rewrite_call, with_fusion])
@pytest.mark.parametrize("mode", ["bytecode", "compiled"])
def test_a_read_stays_before_the_write(change, mode):
    vm = relax.VirtualMachine(relax.build(change(Module), exec_mode=mode), tvm.cpu())
    before, after = vm["main"](np.zeros(3, "float32"))
    np.testing.assert_allclose(before.numpy(), np.ones(3), rtol=1e-6)
    np.testing.assert_allclose(after.numpy(), np.ones(3))
