# Norms of rows: a row of equal numbers becomes its bias, since its variance is 0.
# test run

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(c: R.Tensor((), "bool")) -> R.Object:
        a = R.const([[1.0, 3.0], [5.0, 5.0]], "float32")
        x = R.where(c, a, a)
        g = R.const([2.0, 2.0], "float32")
        b = R.const([0.5, -0.5], "float32")
        return (R.nn.layer_norm(x, g, b, axes=[-1], epsilon=0.0001), R.nn.rms_norm(x, g, axes=[-1]))

# expect
# main: (Tensor([2, 2], float32) [-1.4999, 1.4999, 0.5000, -0.5000], Tensor([2, 2], float32) [0.8944, 2.6833, 2.0000, 2.0000])
