# Infinities: differences of equal ones are NaN, `isinf` and `isfinite`, functions at their limits.
# test run

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(c: R.Tensor((), "bool")) -> R.Object:
        a = R.const([float("inf"), float("-inf"), 1.0], "float32")
        x = R.where(c, a, a)
        tests = (R.isinf(x), R.isfinite(x))
        limits = (R.exp(x), R.tanh(x), R.sigmoid(x), R.atan(x))
        return (tests, limits, R.subtract(x, x), R.multiply(x, R.const(0.0, "float32")))

# expect
# main: ((Tensor([3], bool) [1.0000, 1.0000, 0.0000], Tensor([3], bool) [0.0000, 0.0000, 1.0000]), (Tensor([3], float32) [inf, 0.0000, 2.7183], Tensor([3], float32) [1.0000, -1.0000, 0.7616], Tensor([3], float32) [1.0000, 0.0000, 0.7311], Tensor([3], float32) [1.5708, -1.5708, 0.7854]), Tensor([3], float32) [NaN, NaN, 0.0000], Tensor([3], float32) [NaN, NaN, 0.0000])
