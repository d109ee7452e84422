# A match_cast that can never succeed, because the rank or the data type differs.
# test verify

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def rank(x: R.Tensor(("n",), "float32")) -> R.Object:
        n = T.int64()
        y = R.match_cast(x, R.Tensor((n, 1), "float32"))  # error: PL0107 can never match the type R.Tensor((n, 1), dtype="float32")
        return y

    @R.function
    def dtype(x: R.Tensor(("n",), "float32")) -> R.Object:
        n = T.int64()
        y = R.match_cast(x, R.Tensor((n,), "int32"))  # error: PL0107 can never match the type R.Tensor((n,), dtype="int32")
        return y

    # A symbolic dim may be 4, so this is checked at run time.
    @R.function
    def may_succeed(x: R.Tensor(("n",), "float32")) -> R.Object:
        y = R.match_cast(x, R.Tensor((4,), "float32"))
        return y
