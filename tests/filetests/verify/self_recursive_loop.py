# A function that is the body of a loop within itself: its sizes must not be those of the enclosing call.
# test verify

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    # The symbol k would be the size of both the enclosing call and every iteration; a function that calls 'turn' must be the body.
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

    # The state has symbols of the enclosing function.
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

    # The loop's body is another function, which calls the enclosing one.
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
