# Sums, products, negation and absolute values of integers wrap around, signed and unsigned.
# test run

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def signed(c: R.Tensor((), "bool")) -> R.Object:
        a = R.const([127, -128, 100, -128], "int8")
        b = R.const([1, -1, 3, -128], "int8")
        x = R.where(c, a, a)
        y = R.where(c, b, b)
        return (R.add(x, y), R.subtract(x, y), R.multiply(x, y), R.negative(x), R.abs(x))

    @R.function
    def unsigned(c: R.Tensor((), "bool")) -> R.Object:
        a = R.const([255, 0, 200, 16], "uint8")
        b = R.const([1, 1, 100, 16], "uint8")
        x = R.where(c, a, a)
        y = R.where(c, b, b)
        return (R.add(x, y), R.subtract(x, y), R.multiply(x, y), R.negative(x), R.square(y))

    @R.function
    def sums(c: R.Tensor((), "bool")) -> R.Object:
        a = R.const([100, 100, 100], "int8")
        x = R.where(c, a, a)
        return (R.sum(x), R.prod(x), R.cumsum(x))

# expect
# signed: (Tensor([4], int8) [-128.0000, 127.0000, 103.0000, 0.0000], Tensor([4], int8) [126.0000, -127.0000, 97.0000, 0.0000], Tensor([4], int8) [127.0000, -128.0000, 44.0000, 0.0000], Tensor([4], int8) [-127.0000, -128.0000, -100.0000, -128.0000], Tensor([4], int8) [127.0000, -128.0000, 100.0000, -128.0000])
# unsigned: (Tensor([4], uint8) [0.0000, 1.0000, 44.0000, 32.0000], Tensor([4], uint8) [254.0000, 255.0000, 100.0000, 0.0000], Tensor([4], uint8) [255.0000, 0.0000, 32.0000, 0.0000], Tensor([4], uint8) [1.0000, 0.0000, 56.0000, 240.0000], Tensor([4], uint8) [1.0000, 1.0000, 16.0000, 0.0000])
# sums: (Tensor([], int8) [44.0000], Tensor([], int8) [64.0000], Tensor([3], int8) [100.0000, -56.0000, 44.0000])
