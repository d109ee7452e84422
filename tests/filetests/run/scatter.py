# Updates at the same index: the last one stays, or they are added up, multiplied, or the largest is taken.
# test run

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(c: R.Tensor((), "bool")) -> R.Object:
        a = R.const([1, 1, 1, 1], "int32")
        i = R.const([2, 0, 2], "int64")
        u = R.const([5, 6, 7], "int32")
        x = R.where(c, a, a)
        j = R.where(c, i, i)
        return (R.scatter_elements(x, j, u), R.scatter_elements(x, j, u, reduction="add"), R.scatter_elements(x, j, u, reduction="mul"), R.scatter_elements(x, j, u, reduction="max"))

    @R.function
    def rows(c: R.Tensor((), "bool")) -> R.Object:
        a = R.const([[1, 2], [3, 4]], "int32")
        x = R.where(c, a, a)
        return R.scatter_nd(x, R.const([[1], [1]], "int64"), R.const([[10, 20], [30, 40]], "int32"), reduction="add")

# expect
# main: (Tensor([4], int32) [6.0000, 1.0000, 7.0000, 1.0000], Tensor([4], int32) [7.0000, 1.0000, 13.0000, 1.0000], Tensor([4], int32) [6.0000, 1.0000, 35.0000, 1.0000], Tensor([4], int32) [6.0000, 1.0000, 7.0000, 1.0000])
# rows: Tensor([2, 2], int32) [1.0000, 2.0000, 43.0000, 64.0000]
