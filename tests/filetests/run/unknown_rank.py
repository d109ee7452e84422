# The rank grows in each iteration.
# test run

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def widens(x: R.Tensor(("n",), "int64")) -> R.Tensor:
        n = T.int64()
        y = x
        for i in R.range(2):
            y = R.expand_dims(y, axis=0)
        return y

# expect
# widens at n=0 i=3 i=31: Tensor([1, 1, 0], int64) []
# widens at n=1 i=7 i=64: Tensor([1, 1, 1], int64) [2.0000]
# widens at n=2 i=8 i=0: Tensor([1, 1, 2], int64) [1.0000, 1.0000]
# widens at n=3 i=31 i=1: Tensor([1, 1, 3], int64) [2.0000, 0.0000, 3.0000]
# widens at n=7 i=64 i=2: Tensor([1, 1, 7], int64) [2.0000, 0.0000, 3.0000, 1.0000, 1.0000, 0.0000, ... sum 8.000]
# widens at n=8 i=0 i=3: Tensor([1, 1, 8], int64) [0.0000, 1.0000, 2.0000, 0.0000, 3.0000, 0.0000, ... sum 6.000]
# widens at n=31 i=1 i=7: Tensor([1, 1, 31], int64) [3.0000, 0.0000, 2.0000, 3.0000, 2.0000, 1.0000, ... sum 49.000]
# widens at n=64 i=2 i=8: Tensor([1, 1, 64], int64) [2.0000, 1.0000, 1.0000, 0.0000, 2.0000, 0.0000, ... sum 90.000]
