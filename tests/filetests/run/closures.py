# A local function that captures a tensor and calls itself.
# test run

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n",), "int64")) -> R.Object:
        n = T.int64()

        @R.function
        def count(i: R.Tensor((), "int64"), acc: R.Tensor((n,), "int64")) -> R.Tensor((n,), "int64"):
            more = R.less(i, R.const(5, "int64"))
            if more:
                next = R.add(i, R.const(1, "int64"))
                sum = R.add(acc, x)
                out = count(next, sum)
            else:
                out = acc
            return out

        y = count(R.const(0, "int64"), x)
        return y

# expect
# main at n=0: Tensor([0], int64) []
# main at n=1: Tensor([1], int64) [12.0000]
# main at n=2: Tensor([2], int64) [6.0000, 6.0000]
# main at n=3: Tensor([3], int64) [12.0000, 0.0000, 18.0000]
# main at n=7: Tensor([7], int64) [12.0000, 0.0000, 18.0000, 6.0000, 6.0000, 0.0000, ... sum 48.000]
# main at n=8: Tensor([8], int64) [0.0000, 6.0000, 12.0000, 0.0000, 18.0000, 0.0000, ... sum 36.000]
# main at n=31: Tensor([31], int64) [18.0000, 0.0000, 12.0000, 18.0000, 12.0000, 6.0000, ... sum 294.000]
# main at n=64: Tensor([64], int64) [12.0000, 6.0000, 6.0000, 0.0000, 12.0000, 0.0000, ... sum 540.000]
