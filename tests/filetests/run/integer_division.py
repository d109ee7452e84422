# `divide` rounds towards zero, `floor_divide` towards minus infinity; `mod` has the sign of the divisor. The least integer
# divided by -1 wraps around.
# The condition keeps the operands from being folded at compile time.
# test run

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(c: R.Tensor((), "bool")) -> R.Object:
        a = R.const([7, -7, 7, -7, -128, 0], "int8")
        b = R.const([2, 2, -2, -2, -1, 5], "int8")
        x = R.where(c, a, a)
        y = R.where(c, b, b)
        return (R.divide(x, y), R.floor_divide(x, y), R.mod(x, y), R.floor_mod(x, y))

# expect
# main: (Tensor([6], int8) [3.0000, -3.0000, -3.0000, 3.0000, -128.0000, 0.0000], Tensor([6], int8) [3.0000, -4.0000, -4.0000, 3.0000, -128.0000, 0.0000], Tensor([6], int8) [1.0000, 1.0000, -1.0000, -1.0000, 0.0000, 0.0000], Tensor([6], int8) [1.0000, 1.0000, -1.0000, -1.0000, 0.0000, 0.0000])
