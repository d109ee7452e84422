# Products of matrices and vectors; the product over no elements is 0, and integers wrap around.
# test run

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def shapes(c: R.Tensor((), "bool")) -> R.Object:
        a = R.const([[1.0, 2.0], [3.0, 4.0]], "float32")
        b = R.const([10.0, 1.0], "float32")
        x = R.where(c, a, a)
        y = R.where(c, b, b)
        return (R.matmul(x, x), R.matmul(x, y), R.matmul(y, x), R.matmul(y, y), R.outer(y, y))

    @R.function
    def none(x: R.Tensor((2, 0), "float32"), y: R.Tensor((0, 3), "float32")) -> R.Object:
        return R.matmul(x, y)

    @R.function
    def integers(c: R.Tensor((), "bool")) -> R.Object:
        a = R.const([[100, 100]], "int8")
        b = R.const([[2], [1]], "int8")
        x = R.where(c, a, a)
        y = R.where(c, b, b)
        return (R.matmul(x, y), R.matmul(x, y, out_dtype="int32"))

# expect
# shapes: (Tensor([2, 2], float32) [7.0000, 10.0000, 15.0000, 22.0000], Tensor([2], float32) [12.0000, 34.0000], Tensor([2], float32) [13.0000, 24.0000], Tensor([], float32) [101.0000], Tensor([2, 2], float32) [100.0000, 10.0000, 10.0000, 1.0000])
# none: Tensor([2, 3], float32) [0.0000, 0.0000, 0.0000, 0.0000, 0.0000, 0.0000]
# integers: (Tensor([1, 1], int8) [44.0000], Tensor([1, 1], int32) [300.0000])
