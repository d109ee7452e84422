# A function is pure if it has no effects: a call of an impure function needs pure=False, and a local function's effects count
# where it is called.
# test verify

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function(pure=False)
    def shows(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        R.print(x)
        return x

    @R.function(pure=True)
    def calls(x: R.Tensor((2,), "float32")) -> R.Object:
        cls = Module
        return cls.shows(x)  # error: PL0110

    @R.function(pure=True)
    def in_a_local_function(x: R.Tensor((2,), "float32")) -> R.Object:
        @R.function(pure=False)
        def inner(y: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
            R.print(y)
            return y

        return inner(x)  # error: PL0110

    # It only creates the function.
    @R.function(pure=True)
    def returns_it(x: R.Tensor((2,), "float32")) -> R.Object:
        @R.function(pure=False)
        def inner(y: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
            R.print(y)
            return y

        return inner
