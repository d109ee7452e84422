# Conditions, bodies and state values of `R.while_loop` that do not fit together.
# test verify

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def no_body(x: R.Tensor(("n",), "float32")) -> R.Object:
        cls = Module
        y = R.while_loop(cls.yes, x, x)  # error: PL0108 the body must be a function, but has type R.Tensor
        return y

    @R.function
    def count(x: R.Tensor(("n",), "float32")) -> R.Object:
        cls = Module
        y = R.while_loop(cls.yes, cls.same, x, x)  # error: PL0108 the body takes 1 parameters, but the loop has 2 state values
        return y

    @R.function
    def misfit(x: R.Tensor(("n", 2), "float32")) -> R.Object:
        cls = Module
        y = R.while_loop(cls.yes, cls.same, x)  # error: PL0108 does not fit the parameters of the body
        return y

    @R.function
    def not_bool(x: R.Tensor(("n",), "float32")) -> R.Object:
        cls = Module
        y = R.while_loop(cls.same, cls.same, x)  # error: PL0108 the condition must return a bool scalar
        return y

    @R.function
    def turns_wrong(x: R.Tensor(("n",), "float32")) -> R.Object:
        cls = Module
        y = R.while_loop(cls.yes, cls.ranks, x)  # error: PL0108 the result of the body does not fit
        return y

    @R.function
    def effects(x: R.Tensor(("n",), "float32")) -> R.Object:
        cls = Module
        with R.dataflow():
            y = R.while_loop(cls.yes, cls.shows, x)  # error: PL0110 effects
            R.output(y)
        return y

    @R.function
    def yes(x: R.Tensor(("n",), "float32")) -> R.Tensor((), "bool"):
        return R.const(True, "bool")

    @R.function
    def same(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        return x

    @R.function
    def ranks(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n", 1), "float32"):
        n = T.int64()
        return R.reshape(x, (n, 1))

    @R.function(pure=False)
    def shows(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        R.print(x)
        return x
