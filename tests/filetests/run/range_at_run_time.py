# test run

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    # A step that only the run knows, of either sign; the values of i are added up.
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

    # No turn: the step leads away from the end.
    @R.function
    def away(x: R.Tensor(("n",), "float32")) -> R.Prim("int64"):
        n = T.int64()
        s = R.prim_value(7)
        for i in R.range(40, 2, n + 1):
            s = s + i
        return s

    # The number of turns is an element of a tensor.
    @R.function
    def counted(x: R.Tensor(("n",), "int64")) -> R.Tensor((), "int64"):
        n = T.int64()
        k = R.sum(R.ones((n,), "int64"))
        s = R.const(1, "int64")
        for i in R.range(1, k):
            s = R.add(s, R.const(3, "int64"))
        return s
