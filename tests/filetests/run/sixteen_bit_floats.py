# 16-bit floats: each operator computes in float32 and rounds once; a sum accumulates in float32.
# test run

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def halves(c: R.Tensor((), "bool")) -> R.Object:
        a = R.const([2048.0, 1.0, 1.0, 0.5], "float16")
        x = R.where(c, a, a)
        step = R.add(R.add(R.const(2048.0, "float16"), x), R.const(1.0, "float16"))
        return (R.sum(x), step, R.multiply(x, R.const(60.0, "float16")))

    @R.function
    def brains(c: R.Tensor((), "bool")) -> R.Object:
        a = R.const([256.0, 1.0, 1.0], "bfloat16")
        x = R.where(c, a, a)
        return (R.sum(x), R.add(x, R.const(1.0, "bfloat16")))

# expect
# halves: (Tensor([], float16) [2050.0000], Tensor([4], float16) [4096.0000, 2048.0000, 2048.0000, 2048.0000], Tensor([4], float16) [inf, 60.0000, 60.0000, 30.0000])
# brains: (Tensor([], bfloat16) [258.0000], Tensor([3], bfloat16) [256.0000, 2.0000, 2.0000])
