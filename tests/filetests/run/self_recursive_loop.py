# The body of the loop in 'grow' is 'grow' itself, whose size k differs between iterations and between calls.
# test run

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n",), "int64")) -> R.Tensor(ndim=1, dtype="int64"):
        n = T.int64()

        @R.function
        def more(y: R.Tensor(ndim=1, dtype="int64"), i: R.Tensor((), "int64")) -> R.Tensor((), "bool"):
            return R.greater(i, R.const(0, "int64"))

        @R.function
        def grow(y: R.Tensor(("k",), "int64"), i: R.Tensor((), "int64")) -> R.Tuple(
            R.Tensor(ndim=1, dtype="int64"), R.Tensor((), "int64")
        ):
            k = T.int64()
            z = R.while_loop(more, grow, y, R.subtract(i, R.const(1, "int64")))
            return (R.concat([z[0], y]), z[1])

        z = grow(x, R.const(3, "int64"))
        return z[0]

# expect
# main at n=0 k=3 k=31: Tensor([0], int64) []
# main at n=1 k=7 k=64: Tensor([4], int64) [2.0000, 2.0000, 2.0000, 2.0000]
# main at n=2 k=8 k=0: Tensor([8], int64) [1.0000, 1.0000, 1.0000, 1.0000, 1.0000, 1.0000, ... sum 8.000]
# main at n=3 k=31 k=1: Tensor([12], int64) [2.0000, 0.0000, 3.0000, 2.0000, 0.0000, 3.0000, ... sum 20.000]
# main at n=7 k=64 k=2: Tensor([28], int64) [2.0000, 0.0000, 3.0000, 1.0000, 1.0000, 0.0000, ... sum 32.000]
# main at n=8 k=0 k=3: Tensor([32], int64) [0.0000, 1.0000, 2.0000, 0.0000, 3.0000, 0.0000, ... sum 24.000]
# main at n=31 k=1 k=7: Tensor([124], int64) [3.0000, 0.0000, 2.0000, 3.0000, 2.0000, 1.0000, ... sum 196.000]
# main at n=64 k=2 k=8: Tensor([256], int64) [2.0000, 1.0000, 1.0000, 0.0000, 2.0000, 0.0000, ... sum 360.000]
