# A shift by at least the width of the type, or by a negative distance, shifts all bits out: 0, or the sign for `right_shift`.
# test run

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(c: R.Tensor((), "bool")) -> R.Object:
        a = R.const([1, 1, 1, -1, -128, 64], "int8")
        b = R.const([6, 7, 8, 9, 3, -1], "int8")
        x = R.where(c, a, a)
        y = R.where(c, b, b)
        return (R.left_shift(x, y), R.right_shift(x, y))

    @R.function
    def unsigned(c: R.Tensor((), "bool")) -> R.Object:
        a = R.const([1, 255, 255], "uint8")
        b = R.const([7, 4, 8], "uint8")
        x = R.where(c, a, a)
        y = R.where(c, b, b)
        return (R.left_shift(x, y), R.right_shift(x, y))

# expect
# main: (Tensor([6], int8) [64.0000, -128.0000, 0.0000, 0.0000, 0.0000, 0.0000], Tensor([6], int8) [0.0000, 0.0000, 0.0000, -1.0000, -16.0000, 0.0000])
# unsigned: (Tensor([3], uint8) [128.0000, 240.0000, 0.0000], Tensor([3], uint8) [0.0000, 15.0000, 0.0000])
