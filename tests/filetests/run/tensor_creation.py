# Ranges, identity matrices and filled tensors at sizes from 0 on; triangles, and rows with a single 1.
# test run

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n",), "float32")) -> R.Object:
        n = T.int64()
        return (R.arange(0, n, 2, dtype="int32"), R.eye(n, dtype="int8"), R.full(R.shape([n]), R.const(1.5, "float16"), "float16"))

    @R.function
    def triangles(c: R.Tensor((), "bool")) -> R.Object:
        a = R.const([[1, 2, 3], [4, 5, 6]], "int32")
        x = R.where(c, a, a)
        return (R.tril(x), R.triu(x, 1), R.one_hot(R.const([0, 3, -1], "int64"), R.prim_value(1), R.prim_value(0), depth=2))

# expect
# main at n=0: (Tensor([0], int32) [], Tensor([0, 0], int8) [], Tensor([0], float16) [])
# main at n=1: (Tensor([1], int32) [0.0000], Tensor([1, 1], int8) [1.0000], Tensor([1], float16) [1.5000])
# main at n=2: (Tensor([1], int32) [0.0000], Tensor([2, 2], int8) [1.0000, 0.0000, 0.0000, 1.0000], Tensor([2], float16) [1.5000, 1.5000])
# main at n=3: (Tensor([2], int32) [0.0000, 2.0000], Tensor([3, 3], int8) [1.0000, 0.0000, 0.0000, 0.0000, 1.0000, 0.0000, ... sum 3.000], Tensor([3], float16) [1.5000, 1.5000, 1.5000])
# main at n=7: (Tensor([4], int32) [0.0000, 2.0000, 4.0000, 6.0000], Tensor([7, 7], int8) [1.0000, 0.0000, 0.0000, 0.0000, 0.0000, 0.0000, ... sum 7.000], Tensor([7], float16) [1.5000, 1.5000, 1.5000, 1.5000, 1.5000, 1.5000, ... sum 10.500])
# main at n=8: (Tensor([4], int32) [0.0000, 2.0000, 4.0000, 6.0000], Tensor([8, 8], int8) [1.0000, 0.0000, 0.0000, 0.0000, 0.0000, 0.0000, ... sum 8.000], Tensor([8], float16) [1.5000, 1.5000, 1.5000, 1.5000, 1.5000, 1.5000, ... sum 12.000])
# main at n=31: (Tensor([16], int32) [0.0000, 2.0000, 4.0000, 6.0000, 8.0000, 10.0000, ... sum 240.000], Tensor([31, 31], int8) [1.0000, 0.0000, 0.0000, 0.0000, 0.0000, 0.0000, ... sum 31.000], Tensor([31], float16) [1.5000, 1.5000, 1.5000, 1.5000, 1.5000, 1.5000, ... sum 46.500])
# main at n=64: (Tensor([32], int32) [0.0000, 2.0000, 4.0000, 6.0000, 8.0000, 10.0000, ... sum 992.000], Tensor([64, 64], int8) [1.0000, 0.0000, 0.0000, 0.0000, 0.0000, 0.0000, ... sum 64.000], Tensor([64], float16) [1.5000, 1.5000, 1.5000, 1.5000, 1.5000, 1.5000, ... sum 96.000])
# triangles: (Tensor([2, 3], int32) [1.0000, 0.0000, 0.0000, 4.0000, 5.0000, 0.0000], Tensor([2, 3], int32) [0.0000, 2.0000, 3.0000, 0.0000, 0.0000, 6.0000], Tensor([3, 2], int64) [1.0000, 0.0000, 0.0000, 0.0000, 0.0000, 0.0000])
