# A call with side effects in a function that is declared pure.
# test verify

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function(pure=True)
    def effects(x: R.Tensor(("n",), "float32")) -> R.Object:
        y = R.call_packed("f", x, sinfo_args=(R.Object,))  # error: PL0110 has side effects
        return y

    @R.function(pure=False)
    def declared(x: R.Tensor(("n",), "float32")) -> R.Object:
        y = R.call_packed("f", x, sinfo_args=(R.Object,))
        return y

    @R.function
    def promised(x: R.Tensor(("n",), "float32")) -> R.Object:
        with R.dataflow():
            y = R.call_pure_packed("f", x, sinfo_args=(R.Object,))
            R.output(y)
        return y
