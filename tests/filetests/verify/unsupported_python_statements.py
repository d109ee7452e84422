# Statements of Python that the script language does not have.
# test verify

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def augmented(x: R.Tensor((2,), "float32")) -> R.Object:
        del x  # error: PL0102
        return x

    @R.function
    def comprehension(x: R.Tensor((2,), "float32")) -> R.Object:
        y = [R.exp(x) for i in range(3)]  # error: PL0112 the script is parsed as text, so it cannot use values of a Python program
        return y

    @R.function
    def guarded(x: R.Tensor((2,), "float32")) -> R.Object:
        with x:  # error: PL0102
            y = R.exp(x)
        return x

    @R.function
    def default(x: R.Tensor((2,), "float32") = None) -> R.Object:  # error: PL0102
        return x
