# Among equal elements, `argmax` and `argmin` return the first; NaN counts as the largest and the smallest.
# test run

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(c: R.Tensor((), "bool")) -> R.Object:
        a = R.const([[1.0, 3.0, 3.0], [2.0, 0.0, 0.0], [5.0, float("nan"), 6.0]], "float32")
        x = R.where(c, a, a)
        return (R.argmax(x, axis=1), R.argmin(x, axis=1), R.argmax(x, axis=0, keepdims=True))

# expect
# main: (Tensor([3], int64) [1.0000, 0.0000, 1.0000], Tensor([3], int64) [0.0000, 1.0000, 1.0000], Tensor([1, 3], int64) [2.0000, 2.0000, 2.0000])
