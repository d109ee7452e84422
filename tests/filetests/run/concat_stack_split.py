# Concatenating, stacking and splitting, with empty parts.
# test run

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n",), "float32")) -> R.Object:
        n = T.int64()
        a = R.arange(n, dtype="int64")
        b = R.full(R.shape([2]), R.const(9, "int64"), "int64")
        return (R.concat((a, b, a)), R.stack((a, a), axis=1))

    @R.function
    def parts(c: R.Tensor((), "bool")) -> R.Object:
        a = R.const([1, 2, 3, 4, 5], "int32")
        x = R.where(c, a, a)
        return R.split(x, [2, 2, 9])

# expect
# main at n=0: (Tensor([2], int64) [9.0000, 9.0000], Tensor([0, 2], int64) [])
# main at n=1: (Tensor([4], int64) [0.0000, 9.0000, 9.0000, 0.0000], Tensor([1, 2], int64) [0.0000, 0.0000])
# main at n=2: (Tensor([6], int64) [0.0000, 1.0000, 9.0000, 9.0000, 0.0000, 1.0000], Tensor([2, 2], int64) [0.0000, 0.0000, 1.0000, 1.0000])
# main at n=3: (Tensor([8], int64) [0.0000, 1.0000, 2.0000, 9.0000, 9.0000, 0.0000, ... sum 24.000], Tensor([3, 2], int64) [0.0000, 0.0000, 1.0000, 1.0000, 2.0000, 2.0000])
# main at n=7: (Tensor([16], int64) [0.0000, 1.0000, 2.0000, 3.0000, 4.0000, 5.0000, ... sum 60.000], Tensor([7, 2], int64) [0.0000, 0.0000, 1.0000, 1.0000, 2.0000, 2.0000, ... sum 42.000])
# main at n=8: (Tensor([18], int64) [0.0000, 1.0000, 2.0000, 3.0000, 4.0000, 5.0000, ... sum 74.000], Tensor([8, 2], int64) [0.0000, 0.0000, 1.0000, 1.0000, 2.0000, 2.0000, ... sum 56.000])
# main at n=31: (Tensor([64], int64) [0.0000, 1.0000, 2.0000, 3.0000, 4.0000, 5.0000, ... sum 948.000], Tensor([31, 2], int64) [0.0000, 0.0000, 1.0000, 1.0000, 2.0000, 2.0000, ... sum 930.000])
# main at n=64: (Tensor([130], int64) [0.0000, 1.0000, 2.0000, 3.0000, 4.0000, 5.0000, ... sum 4050.000], Tensor([64, 2], int64) [0.0000, 0.0000, 1.0000, 1.0000, 2.0000, 2.0000, ... sum 4032.000])
# parts: (Tensor([2], int32) [1.0000, 2.0000], Tensor([0], int32) [], Tensor([3], int32) [3.0000, 4.0000, 5.0000], Tensor([0], int32) [])
