# Ranges with non-constant steps of either sign, and with a non-constant end.
# test run

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    # A range with a non-constant step of either sign; the values of i are summed.
    @R.function
    def upwards(x: R.Tensor(("n",), "float32")) -> R.Prim("int64"):
        n = T.int64()
        s = R.prim_value(0)
        for i in R.range(2, 40, n + 1):
            s = s + i
        return s

    @R.function
    def downwards(x: R.Tensor(("n",), "float32")) -> R.Prim("int64"):
        n = T.int64()
        s = R.prim_value(0)
        for i in R.range(40, 2, 0 - n - 1):
            if i > 30:
                continue
            s = s + i
            if s > 50:
                break
        return s

    # Zero iterations: the step leads away from the end.
    @R.function
    def away(x: R.Tensor(("n",), "float32")) -> R.Prim("int64"):
        n = T.int64()
        s = R.prim_value(7)
        for i in R.range(40, 2, n + 1):
            s = s + i
        return s

    # The number of iterations is an element of a tensor.
    @R.function
    def counted(x: R.Tensor(("n",), "int64")) -> R.Tensor((), "int64"):
        n = T.int64()
        k = R.sum(R.ones((n,), "int64"))
        s = R.const(1, "int64")
        for i in R.range(1, k):
            s = R.add(s, R.const(3, "int64"))
        return s

# expect
# upwards at n=0 m=3 i=31 s=1 i=7 s=64: 779
# upwards at n=1 m=7 i=64 s=2 i=8 s=0: 380
# upwards at n=2 m=8 i=0 s=3 i=31 s=1: 260
# upwards at n=3 m=31 i=1 s=7 i=64 s=2: 200
# upwards at n=7 m=64 i=2 s=8 i=0 s=3: 90
# upwards at n=8 m=0 i=3 s=31 i=1 s=7: 100
# upwards at n=31 m=1 i=7 s=64 i=2 s=8: 36
# upwards at n=64 m=2 i=8 s=0 i=3 s=31: 2
# downwards at n=0 m=3 i=31 s=1 i=7 s=64: 59
# downwards at n=1 m=7 i=64 s=2 i=8 s=0: 58
# downwards at n=2 m=8 i=0 s=3 i=31 s=1: 53
# downwards at n=3 m=31 i=1 s=7 i=64 s=2: 52
# downwards at n=7 m=64 i=2 s=8 i=0 s=3: 48
# downwards at n=8 m=0 i=3 s=31 i=1 s=7: 39
# downwards at n=31 m=1 i=7 s=64 i=2 s=8: 8
# downwards at n=64 m=2 i=8 s=0 i=3 s=31: 0
# away at n=0 m=3 i=31 s=1 i=7 s=64: 7
# away at n=1 m=7 i=64 s=2 i=8 s=0: 7
# away at n=2 m=8 i=0 s=3 i=31 s=1: 7
# away at n=3 m=31 i=1 s=7 i=64 s=2: 7
# away at n=7 m=64 i=2 s=8 i=0 s=3: 7
# away at n=8 m=0 i=3 s=31 i=1 s=7: 7
# away at n=31 m=1 i=7 s=64 i=2 s=8: 7
# away at n=64 m=2 i=8 s=0 i=3 s=31: 7
# counted at n=0 m=3 i=31 i=1: Tensor([], int64) [1.0000]
# counted at n=1 m=7 i=64 i=2: Tensor([], int64) [1.0000]
# counted at n=2 m=8 i=0 i=3: Tensor([], int64) [4.0000]
# counted at n=3 m=31 i=1 i=7: Tensor([], int64) [7.0000]
# counted at n=7 m=64 i=2 i=8: Tensor([], int64) [19.0000]
# counted at n=8 m=0 i=3 i=31: Tensor([], int64) [22.0000]
# counted at n=31 m=1 i=7 i=64: Tensor([], int64) [91.0000]
# counted at n=64 m=2 i=8 i=0: Tensor([], int64) [190.0000]
