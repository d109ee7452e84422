# An unknown operator, a missing operand, and a loop over a tensor.
# test verify

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n",), "float32")) -> R.Object:
        y = R.ad(x, x)  # error: PL0104 ad
        z = R.add(x)  # error: PL0105
        for i in x:  # error: PL0102 loop over a range of integers
            pass
        return x
