# test verify

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    # In the loop, k would be the size of the call around and of every turn: the loop is over a function that calls 'turn'.
    @R.function
    def own_symbol(x: R.Tensor(("n",), "int64")) -> R.Tensor(ndim=1, dtype="int64"):
        n = T.int64()

        @R.function
        def never(y: R.Tensor(ndim=1, dtype="int64")) -> R.Tensor((), "bool"):
            return R.const(False, "bool")

        @R.function
        def turn(y: R.Tensor(("k",), "int64")) -> R.Tensor(("k",), "int64"):
            k = T.int64()
            z = R.while_loop(never, turn, y)
            return z

        return turn(x)

    # A state of symbols from outside of the function.
    @R.function
    def outer_symbol(x: R.Tensor(("n",), "int64")) -> R.Tensor(("n",), "int64"):
        n = T.int64()

        @R.function
        def never(y: R.Tensor((n,), "int64")) -> R.Tensor((), "bool"):
            return R.const(False, "bool")

        @R.function
        def turn(y: R.Tensor((n,), "int64")) -> R.Tensor((n,), "int64"):
            z = R.while_loop(never, turn, y)
            return z

        return turn(x)

    # Another function takes the turns.
    @R.function
    def through_another(x: R.Tensor(("n",), "int64")) -> R.Tensor(ndim=1, dtype="int64"):
        n = T.int64()

        @R.function
        def never(y: R.Tensor(ndim=1, dtype="int64")) -> R.Tensor((), "bool"):
            return R.const(False, "bool")

        @R.function
        def turn(y: R.Tensor(("k",), "int64")) -> R.Tensor(("k",), "int64"):
            k = T.int64()
            z = R.while_loop(never, again, y)
            return z

        @R.function
        def again(y: R.Tensor(("j",), "int64")) -> R.Tensor(("j",), "int64"):
            j = T.int64()
            return turn(y)

        return turn(x)
