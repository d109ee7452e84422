# Logical operators take any type and test for not 0; bitwise ones take integers and bools.
# test run

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(c: R.Tensor((), "bool")) -> R.Object:
        a = R.const([0.0, 0.5, float("nan")], "float32")
        b = R.const([1.0, 0.0, 0.0], "float32")
        x = R.where(c, a, a)
        y = R.where(c, b, b)
        return (R.logical_and(x, y), R.logical_or(x, y), R.logical_xor(x, y), R.logical_not(x))

    @R.function
    def bits(c: R.Tensor((), "bool")) -> R.Object:
        a = R.const([12, -1, 0], "int16")
        b = R.const([10, 7, -1], "int16")
        x = R.where(c, a, a)
        y = R.where(c, b, b)
        return (R.bitwise_and(x, y), R.bitwise_or(x, y), R.bitwise_xor(x, y), R.bitwise_not(x))

# expect
# main: (Tensor([3], bool) [0.0000, 0.0000, 0.0000], Tensor([3], bool) [1.0000, 1.0000, 1.0000], Tensor([3], bool) [1.0000, 1.0000, 1.0000], Tensor([3], bool) [1.0000, 0.0000, 0.0000])
# bits: (Tensor([3], int16) [8.0000, 7.0000, 0.0000], Tensor([3], int16) [14.0000, -1.0000, -1.0000], Tensor([3], int16) [6.0000, -8.0000, -1.0000], Tensor([3], int16) [-13.0000, 0.0000, -1.0000])
