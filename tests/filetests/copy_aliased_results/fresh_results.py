# test opt --passes=CopyAliasedResults

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def itself(x: R.Tensor(("n", 3), "float32")) -> R.Tensor(("n", 3), "float32"):
        R.func_attr({"fresh_results": True})
        y = x
        return y

    @R.function
    def branches(c: R.Tensor((), "bool"), x: R.Tensor(("n",), "float32")) -> R.Object:
        R.func_attr({"fresh_results": True})
        if c:
            r = x
        else:
            z = R.exp(x)
            r = z
        return (r, x)
