# `unique` sorts, counts and gives the positions; `nonzero` lists indices by dim.
# test run

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(c: R.Tensor((), "bool")) -> R.Object:
        a = R.const([3, 1, 3, 2, 1, 3], "int64")
        x = R.where(c, a, a)
        t = R.unique(x, return_index=True, return_inverse=True, return_counts=True)
        return t

    @R.function
    def indices(c: R.Tensor((), "bool")) -> R.Object:
        a = R.const([[0, 1], [2, 0]], "int64")
        x = R.where(c, a, a)
        return R.nonzero(x)

# expect
# main: (Tensor([3], int64) [1.0000, 2.0000, 3.0000], Tensor([3], int64) [1.0000, 3.0000, 0.0000], Tensor([6], int64) [2.0000, 0.0000, 2.0000, 1.0000, 0.0000, 2.0000], Tensor([3], int64) [2.0000, 1.0000, 3.0000])
# indices: Tensor([2, 2], int64) [0.0000, 1.0000, 1.0000, 0.0000]
