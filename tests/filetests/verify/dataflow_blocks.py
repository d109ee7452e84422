# Branches and calls with effects within a dataflow block; outputs that the block does not define.
# test verify

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def branch(c: R.Tensor((), "bool"), x: R.Tensor((2,), "float32")) -> R.Object:
        with R.dataflow():
            if c:  # error: PL0109 'if' is not allowed in a dataflow block
                y = R.exp(x)
            else:
                y = x
            R.output(y)
        return y

    @R.function(pure=False)
    def effect(x: R.Tensor((2,), "float32")) -> R.Object:
        with R.dataflow():
            R.print(x)  # error: PL0110
            y = R.exp(x)
            R.output(y)
        return y

    @R.function
    def output(x: R.Tensor((2,), "float32")) -> R.Object:
        with R.dataflow():
            y = R.exp(x)
            R.output(z)  # error: PL0103 unknown name 'z'
        return x
