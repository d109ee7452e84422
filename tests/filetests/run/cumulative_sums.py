# Running sums and products: inclusive, exclusive, along an axis, and of no elements.
# test run

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(c: R.Tensor((), "bool")) -> R.Object:
        a = R.const([[1, 2, 3], [4, 5, 6]], "int32")
        x = R.where(c, a, a)
        return (R.cumsum(x), R.cumsum(x, axis=0), R.cumsum(x, axis=1, exclusive=True), R.cumprod(x, axis=1))

    @R.function
    def sizes(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "int64"):
        n = T.int64()
        return R.cumsum(R.arange(n, dtype="int64"))

# expect
# main: (Tensor([6], int32) [1.0000, 3.0000, 6.0000, 10.0000, 15.0000, 21.0000], Tensor([2, 3], int32) [1.0000, 2.0000, 3.0000, 5.0000, 7.0000, 9.0000], Tensor([2, 3], int32) [0.0000, 1.0000, 3.0000, 0.0000, 4.0000, 9.0000], Tensor([2, 3], int32) [1.0000, 2.0000, 6.0000, 4.0000, 20.0000, 120.0000])
# sizes at n=0: Tensor([0], int64) []
# sizes at n=1: Tensor([1], int64) [0.0000]
# sizes at n=2: Tensor([2], int64) [0.0000, 1.0000]
# sizes at n=3: Tensor([3], int64) [0.0000, 1.0000, 3.0000]
# sizes at n=7: Tensor([7], int64) [0.0000, 1.0000, 3.0000, 6.0000, 10.0000, 15.0000, ... sum 56.000]
# sizes at n=8: Tensor([8], int64) [0.0000, 1.0000, 3.0000, 6.0000, 10.0000, 15.0000, ... sum 84.000]
# sizes at n=31: Tensor([31], int64) [0.0000, 1.0000, 3.0000, 6.0000, 10.0000, 15.0000, ... sum 4960.000]
# sizes at n=64: Tensor([64], int64) [0.0000, 1.0000, 3.0000, 6.0000, 10.0000, 15.0000, ... sum 43680.000]
