# A softmax of large numbers does not overflow; a row of minus infinity is NaN, and a row without elements is empty.
# test run

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(c: R.Tensor((), "bool")) -> R.Object:
        a = R.const([[1000.0, 1000.0], [0.0, float("-inf")], [float("-inf"), float("-inf")]], "float32")
        x = R.where(c, a, a)
        return (R.nn.softmax(x, axis=-1), R.nn.log_softmax(x, axis=-1), R.nn.softmax(x, axis=0))

    @R.function
    def none(x: R.Tensor((2, 0), "float32"), y: R.Tensor((0, 2), "float32")) -> R.Object:
        return (R.nn.softmax(x, axis=-1), R.nn.softmax(y, axis=-1))

# expect
# main: (Tensor([3, 2], float32) [0.5000, 0.5000, 1.0000, 0.0000, NaN, NaN], Tensor([3, 2], float32) [-0.6931, -0.6931, 0.0000, -inf, NaN, NaN], Tensor([3, 2], float32) [1.0000, 1.0000, 0.0000, 0.0000, 0.0000, 0.0000])
# none: (Tensor([2, 0], float32) [], Tensor([0, 2], float32) [])
