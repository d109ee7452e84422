# Functions outside of their domain are NaN; at the ends of it they have their limits.
# test run

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(c: R.Tensor((), "bool")) -> R.Object:
        a = R.const([-1.0, 0.0, 1.0, 4.0], "float64")
        x = R.where(c, a, a)
        return (R.sqrt(x), R.rsqrt(x), R.log(x), R.asin(x), R.acosh(x), R.atanh(x))

# expect
# main: (Tensor([4], float64) [NaN, 0.0000, 1.0000, 2.0000], Tensor([4], float64) [NaN, inf, 1.0000, 0.5000], Tensor([4], float64) [NaN, -inf, 0.0000, 1.3863], Tensor([4], float64) [-1.5708, 0.0000, 1.5708, NaN], Tensor([4], float64) [NaN, NaN, 0.0000, 2.0634], Tensor([4], float64) [-inf, 0.0000, inf, NaN])
