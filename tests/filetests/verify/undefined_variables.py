# A name that nothing defines, and a dataflow variable that is read outside of its block.
# test verify

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def unknown(x: R.Tensor(("n",), "float32")) -> R.Object:
        y = R.add(x, z)  # error: PL0103 z
        return y

    @R.function
    def outside(x: R.Tensor(("n",), "float32")) -> R.Object:
        with R.dataflow():
            y = R.add(x, x)
            z = R.exp(y)
            R.output(z)
        return y  # error: PL0109 y
