# Operands whose constant shapes do not fit, and a wrong declared type.
# test verify

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2, 3), "float32"), y: R.Tensor((4, 5), "float32")) -> R.Object:
        a = R.add(x, y)  # error: PL0108
        b = R.matmul(x, x)  # error: PL0108
        c: R.Tensor((3, 2), "float32") = R.exp(x)  # error: PL0107
        return c
