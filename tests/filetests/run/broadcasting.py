# Sizes of 1 are repeated; two symbols of which neither is 1, and which differ, are an error that names both.
# test run

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def row_and_column(x: R.Tensor(("n", 1), "int64"), y: R.Tensor((1, 3), "int64")) -> R.Tensor(("n", 3), "int64"):
        return R.add(R.multiply(R.arange(0, 3, dtype="int64"), y), x)

    @R.function
    def two_symbols(x: R.Tensor(("n",), "int64"), y: R.Tensor(("m",), "int64")) -> R.Tensor(ndim=1, dtype="int64"):
        n, m = T.int64(), T.int64()
        return R.add(R.arange(n, dtype="int64"), R.arange(m, dtype="int64"))

    @R.function
    def scalar(x: R.Tensor(("n",), "int64")) -> R.Tensor(("n",), "int64"):
        n = T.int64()
        return R.subtract(R.const(10, "int64"), R.arange(n, dtype="int64"))

# expect
# row_and_column at n=0: Tensor([0, 3], int64) []
# row_and_column at n=1: Tensor([1, 3], int64) [2.0000, 5.0000, 2.0000]
# row_and_column at n=2: Tensor([2, 3], int64) [1.0000, 4.0000, 5.0000, 1.0000, 4.0000, 5.0000]
# row_and_column at n=3: Tensor([3, 3], int64) [2.0000, 3.0000, 4.0000, 0.0000, 1.0000, 2.0000, ... sum 24.000]
# row_and_column at n=7: Tensor([7, 3], int64) [2.0000, 2.0000, 8.0000, 0.0000, 0.0000, 6.0000, ... sum 66.000]
# row_and_column at n=8: Tensor([8, 3], int64) [0.0000, 2.0000, 2.0000, 1.0000, 3.0000, 3.0000, ... sum 50.000]
# row_and_column at n=31: Tensor([31, 3], int64) [3.0000, 3.0000, 7.0000, 0.0000, 0.0000, 4.0000, ... sum 271.000]
# row_and_column at n=64: Tensor([64, 3], int64) [2.0000, 2.0000, 4.0000, 1.0000, 1.0000, 3.0000, ... sum 398.000]
# two_symbols at n=0 m=3: error: relax.add: dims 0 and 3 (axis -1) cannot be broadcast together: x1 is R.Tensor((0,), dtype="int64"), x2 is R.Tensor((3,), dtype="int64")
# two_symbols at n=1 m=7: Tensor([7], int64) [0.0000, 1.0000, 2.0000, 3.0000, 4.0000, 5.0000, ... sum 21.000]
# two_symbols at n=2 m=8: error: relax.add: dims 2 and 8 (axis -1) cannot be broadcast together: x1 is R.Tensor((2,), dtype="int64"), x2 is R.Tensor((8,), dtype="int64")
# two_symbols at n=3 m=31: error: relax.add: dims 3 and 31 (axis -1) cannot be broadcast together: x1 is R.Tensor((3,), dtype="int64"), x2 is R.Tensor((31,), dtype="int64")
# two_symbols at n=7 m=64: error: relax.add: dims 7 and 64 (axis -1) cannot be broadcast together: x1 is R.Tensor((7,), dtype="int64"), x2 is R.Tensor((64,), dtype="int64")
# two_symbols at n=8 m=0: error: relax.add: dims 8 and 0 (axis -1) cannot be broadcast together: x1 is R.Tensor((8,), dtype="int64"), x2 is R.Tensor((0,), dtype="int64")
# two_symbols at n=31 m=1: Tensor([31], int64) [0.0000, 1.0000, 2.0000, 3.0000, 4.0000, 5.0000, ... sum 465.000]
# two_symbols at n=64 m=2: error: relax.add: dims 64 and 2 (axis -1) cannot be broadcast together: x1 is R.Tensor((64,), dtype="int64"), x2 is R.Tensor((2,), dtype="int64")
# scalar at n=0: Tensor([0], int64) []
# scalar at n=1: Tensor([1], int64) [10.0000]
# scalar at n=2: Tensor([2], int64) [10.0000, 9.0000]
# scalar at n=3: Tensor([3], int64) [10.0000, 9.0000, 8.0000]
# scalar at n=7: Tensor([7], int64) [10.0000, 9.0000, 8.0000, 7.0000, 6.0000, 5.0000, ... sum 49.000]
# scalar at n=8: Tensor([8], int64) [10.0000, 9.0000, 8.0000, 7.0000, 6.0000, 5.0000, ... sum 52.000]
# scalar at n=31: Tensor([31], int64) [10.0000, 9.0000, 8.0000, 7.0000, 6.0000, 5.0000, ... sum -155.000]
# scalar at n=64: Tensor([64], int64) [10.0000, 9.0000, 8.0000, 7.0000, 6.0000, 5.0000, ... sum -1376.000]
