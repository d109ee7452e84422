# `where` takes elements from either operand; `clip` with bounds in the wrong order returns the upper one.
# test run

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(c: R.Tensor((), "bool")) -> R.Object:
        a = R.const([-5, 0, 5, 100], "int8")
        x = R.where(c, a, a)
        chosen = R.where(R.greater(x, R.const(0, "int8")), x, R.const(-1, "int8"))
        return (chosen, R.clip(x, -1, 6), R.clip(x, 3, 1), R.masked_fill(x, R.equal(x, R.const(0, "int8")), 9))

# expect
# main: (Tensor([4], int8) [-1.0000, -1.0000, 5.0000, 100.0000], Tensor([4], int8) [-1.0000, 0.0000, 5.0000, 6.0000], Tensor([4], int8) [1.0000, 1.0000, 1.0000, 1.0000], Tensor([4], int8) [-5.0000, 9.0000, 5.0000, 100.0000])
