# Two public functions cannot have the same global symbol, since the executable calls functions by it.
# test verify
# fails: PL0222

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def one(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        R.func_attr({"global_symbol": "main"})
        return R.exp(x)

    @R.function
    def two(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        R.func_attr({"global_symbol": "main"})
        return R.sin(x)
