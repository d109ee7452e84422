# Division of floats by zero is infinite or NaN. `floor_divide` and `mod` are consistent: the quotient times the divisor plus the
# remainder is the dividend.
# test run

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(c: R.Tensor((), "bool")) -> R.Object:
        a = R.const([7.5, -7.5, 7.5, 1.0, -1.0, 0.0], "float32")
        b = R.const([2.0, 2.0, -2.0, 0.0, 0.0, 0.0], "float32")
        x = R.where(c, a, a)
        y = R.where(c, b, b)
        return (R.divide(x, y), R.floor_divide(x, y), R.mod(x, y))

# expect
# main: (Tensor([6], float32) [3.7500, -3.7500, -3.7500, inf, -inf, NaN], Tensor([6], float32) [3.0000, -4.0000, -4.0000, inf, -inf, NaN], Tensor([6], float32) [1.5000, 0.5000, -0.5000, NaN, NaN, NaN])
