# Comparisons with NaN are false, except for `not_equal`. Maxima and minima, `clip` and `relu` return NaN.
# test run

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(c: R.Tensor((), "bool")) -> R.Object:
        a = R.const([float("nan"), 1.0, float("nan")], "float32")
        b = R.const([1.0, float("nan"), float("nan")], "float32")
        x = R.where(c, a, a)
        y = R.where(c, b, b)
        compared = (R.less(x, y), R.greater_equal(x, y), R.equal(x, y), R.not_equal(x, y))
        chosen = (R.maximum(x, y), R.minimum(x, y), R.clip(x, 0.0, 2.0), R.nn.relu(x))
        return (compared, chosen, R.max(x), R.min(x), R.isnan(x))

# expect
# main: ((Tensor([3], bool) [0.0000, 0.0000, 0.0000], Tensor([3], bool) [0.0000, 0.0000, 0.0000], Tensor([3], bool) [0.0000, 0.0000, 0.0000], Tensor([3], bool) [1.0000, 1.0000, 1.0000]), (Tensor([3], float32) [NaN, NaN, NaN], Tensor([3], float32) [NaN, NaN, NaN], Tensor([3], float32) [NaN, 1.0000, NaN], Tensor([3], float32) [NaN, 1.0000, NaN]), Tensor([], float32) [NaN], Tensor([], float32) [NaN], Tensor([3], bool) [1.0000, 0.0000, 1.0000])
