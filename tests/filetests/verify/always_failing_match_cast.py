# The verifier rejects a match_cast to a size that is provably different. Sizes that may be equal are checked at run time.
# test verify

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def constant(x: R.Tensor((3,), "float32")) -> R.Object:
        y = R.match_cast(x, R.Tensor((4,), "float32"))  # error: PL0216 the match_cast of 'y' always fails
        return y

    @R.function
    def sizes(x: R.Tensor(("n",), "float32")) -> R.Object:
        n = T.int64()
        y = R.match_cast(x, R.Tensor((n + 1,), "float32"))  # error: PL0216 the match_cast of 'y' always fails
        return y

    @R.function
    def may_succeed(x: R.Tensor(("n",), "float32"), y: R.Tensor(("m",), "float32")) -> R.Object:
        n = T.int64()
        z = R.match_cast(y, R.Tensor((n * 2,), "float32"))
        return z
