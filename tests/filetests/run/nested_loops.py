# test run

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    # What a loop captured starts the loop inside of it: each turn of the outer loop needs it again.
    @R.function
    def captured(x: R.Tensor(("n",), "float32"), k: R.Prim("int64")) -> R.Tensor(("n",), "float32"):
        n = T.int64()
        a = R.add(x, x)
        for j in R.range(3):
            a = x
            for i in R.range(2):
                a = R.add(a, R.const(1, "float32"))
        return R.add(a, x)

    @R.function
    def no_turns(x: R.Tensor(("n",), "float32"), y: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        n = T.int64()
        a = y
        for j in R.range(2):
            a = x
            for i in R.range(n - n):
                a = R.add(a, y)
        return a

    @R.function
    def computed_before(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        n = T.int64()
        e = R.exp(x)
        s = x
        for j in R.range(3):
            c = e
            i = R.const(0, "int64")
            while R.less(i, R.const(2, "int64")):
                c = R.add(c, s)
                i = R.add(i, R.const(1, "int64"))
            s = R.multiply(c, R.const(0.5, "float32"))
        return s

    @R.function
    def tuples(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        n = T.int64()
        t = (x, R.add(x, x))
        s = x
        for j in R.range(2):
            c = t
            for i in R.range(3):
                c = (c[1], R.add(c[0], x))
                if i >= 1:
                    break
            s = R.add(s, c[0])
        return s

    # A loop inside of the condition starts with the state, which the body reads next.
    @R.function
    def in_the_condition(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        n = T.int64()

        @R.function
        def little(i: R.Tensor((), "int64"), y: R.Tensor((n,), "float32")) -> R.Tensor((), "bool"):
            z = y
            for j in R.range(2):
                z = R.add(z, x)
            return R.logical_and(R.less(i, R.const(3, "int64")), R.less(R.sum(z), R.const(1e9, "float32")))

        @R.function
        def turn(i: R.Tensor((), "int64"), y: R.Tensor((n,), "float32")) -> R.Tuple(R.Tensor((), "int64"), R.Tensor((n,), "float32")):
            return (R.add(i, R.const(1, "int64")), R.add(y, x))

        out = R.while_loop(little, turn, R.const(0, "int64"), x)
        return out[1]
