# Calls of module functions: an unknown name, a wrong number of arguments, and arguments of other types.
# test verify

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def inner(a: R.Tensor((2,), "float32"), b: R.Tensor(("k",), "int64")) -> R.Tensor((2,), "float32"):
        return a

    @R.function
    def unknown(x: R.Tensor((2,), "float32")) -> R.Object:
        cls = Module
        return cls.outer(x)  # error: PL0103 the module has no function 'outer'

    @R.function
    def few(x: R.Tensor((2,), "float32")) -> R.Object:
        cls = Module
        return cls.inner(x)  # error: PL0107 the number of arguments of the call is 1, but the function has 2 parameters (a, b)

    @R.function
    def types(x: R.Tensor((2,), "float32")) -> R.Object:
        cls = Module
        return cls.inner(x, x)  # error: PL0107 argument 1 (parameter 'b') has type R.Tensor((2,), dtype="float32"), which does not fit the parameter's type R.Tensor((k,), dtype="int64")

    @R.function
    def sizes(x: R.Tensor((3,), "float32"), y: R.Tensor((1,), "int64")) -> R.Object:
        cls = Module
        return cls.inner(x, y)  # error: PL0107 dim 0 of argument 0 (parameter 'a') has size 3, but the parameter declares the size 2
