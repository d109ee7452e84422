# Powers of integers wrap around; a negative exponent gives 0, except for the bases 1 and -1.
# test run

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(c: R.Tensor((), "bool")) -> R.Object:
        a = R.const([2, 3, -2, 1, -1, 5], "int32")
        b = R.const([31, 0, 3, -5, -3, -2], "int32")
        x = R.where(c, a, a)
        y = R.where(c, b, b)
        return R.power(x, y)

    # Zero to a negative power is an error.
    @R.function
    def zero(c: R.Tensor((), "bool")) -> R.Object:
        a = R.const([0], "int32")
        x = R.where(c, a, a)
        return R.power(x, R.const(-1, "int32"))

# expect
# main: Tensor([6], int32) [-2147483648.0000, 1.0000, -8.0000, 1.0000, -1.0000, 0.0000]
# zero: error: power: relax.power: cannot raise 0 to a negative power
