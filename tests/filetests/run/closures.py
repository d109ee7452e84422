# test run
# known-bug: unknown name 'count'

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
