# Calls of local functions, function parameters and closures with arguments that do not fit.
# test verify

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def too_few(x: R.Tensor(("n",), "float32")) -> R.Tensor(ndim=1):
        @R.function
        def inner(a: R.Tensor(ndim=1, dtype="float32"), b: R.Tensor(ndim=1, dtype="float32")) -> R.Tensor(ndim=1, dtype="float32"):
            return R.add(a, b)

        return inner(x)  # error: PL0107 the number of arguments of the call is 1, but the function has 2 parameters

    @R.function
    def wrong_type(x: R.Tensor(("n",), "float32"), f: R.Callable((R.Tensor((), "int64"),), R.Tensor)) -> R.Tensor:
        return f(x)  # error: PL0107 argument 0 has type R.Tensor((n,), dtype="float32"), which does not fit the parameter's type R.Tensor((), dtype="int64")

    @R.function
    def no_result_type(x: R.Tensor(("n",), "float32")) -> R.Tensor:
        @R.function
        def inner(a: R.Tensor(ndim=1, dtype="float32")):
            return inner(a)  # error: PL0111 'inner' calls itself, so its result type must be declared

        return inner(x)

    @R.function
    def closure_arguments(x: R.Tensor(("n",), "float32")) -> R.Tensor:
        cls = Module
        f = R.make_closure(cls.scale, (R.const(1, "int64"),))
        y = R.invoke_pure_closure(f, (x, x), sinfo_args=R.Tensor)  # error: PL0108 cannot call the closure 'f': the number of arguments of the call is 2, but the function has 1 parameters
        return y

    @R.function
    def captures_too_much(x: R.Tensor(("n",), "float32")) -> R.Object:
        cls = Module
        f = R.make_closure(cls.scale, (x, x, x))  # error: PL0108 the closure captures 3 values, but the function has only 2 parameters
        return f

    @R.function
    def scale(x: R.Tensor(ndim=1, dtype="float32"), k: R.Tensor((), "int64")) -> R.Tensor(ndim=1, dtype="float32"):
        return x

    @R.function(pure=True)
    def says_pure(x: R.Tensor(("n",), "float32")) -> R.Tensor:
        R.call_packed("show", x)  # error: PL0110 R.call_packed has side effects
        return x

    @R.function(pure=True)
    def calls_impure(x: R.Tensor(("n",), "float32"), f: R.Callable((R.Tensor,), R.Tensor, purity=False)) -> R.Tensor:
        return f(x)  # error: PL0110 'f' has side effects

    @R.function(pure=True)
    def loops_impurely(x: R.Tensor(("n",), "float32")) -> R.Tensor:
        for i in R.range(3):
            R.print(x)  # error: PL0110 R.print has side effects
        return x

    @R.function
    def in_dataflow(x: R.Tensor(("n",), "float32"), f: R.Callable((R.Tensor,), R.Tensor, purity=False)) -> R.Tensor:
        with R.dataflow():
            y = f(x)  # error: PL0110 'f' has side effects
            R.output(y)
        return y
