# `round` takes ties to the even number; `floor`, `ceil` and `trunc` round down, up and towards zero. Integers are not changed.
# test run

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(c: R.Tensor((), "bool")) -> R.Object:
        a = R.const([0.5, 1.5, -2.5, 2.4, -0.4, -1.6], "float32")
        x = R.where(c, a, a)
        return (R.round(x), R.floor(x), R.ceil(x), R.trunc(x))

    @R.function
    def integers(c: R.Tensor((), "bool")) -> R.Object:
        a = R.const([-3, 0, 3], "int16")
        x = R.where(c, a, a)
        return (R.round(x), R.floor(x), R.ceil(x), R.sign(x))

# expect
# main: (Tensor([6], float32) [0.0000, 2.0000, -2.0000, 2.0000, 0.0000, -2.0000], Tensor([6], float32) [0.0000, 1.0000, -3.0000, 2.0000, -1.0000, -2.0000], Tensor([6], float32) [1.0000, 2.0000, -2.0000, 3.0000, 0.0000, -1.0000], Tensor([6], float32) [0.0000, 1.0000, -2.0000, 2.0000, 0.0000, -1.0000])
# integers: (Tensor([3], int16) [-3.0000, 0.0000, 3.0000], Tensor([3], int16) [-3.0000, 0.0000, 3.0000], Tensor([3], int16) [-3.0000, 0.0000, 3.0000], Tensor([3], int16) [-1.0000, 0.0000, 1.0000])
