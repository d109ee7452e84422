# Sizes that can never fit; sizes that may fit are checked at run time.
# test verify

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def inner_size(x: R.Tensor((2, 3), "float32"), y: R.Tensor((4, 5), "float32")) -> R.Object:
        return R.matmul(x, y)  # error: PL0108

    @R.function
    def concat(x: R.Tensor((2, 3), "float32"), y: R.Tensor((2, 4), "float32")) -> R.Object:
        return R.concat((x, y), axis=0)  # error: PL0108

    @R.function
    def reshape(x: R.Tensor((2, 3), "float32")) -> R.Object:
        return R.reshape(x, R.shape([4, 2]))  # error: PL0108

    @R.function
    def two_inferred(x: R.Tensor((2, 3), "float32")) -> R.Object:
        return R.reshape(x, R.shape([-1, -1]))  # error: PL0108

    @R.function
    def squeeze(x: R.Tensor((2, 3), "float32")) -> R.Object:
        return R.squeeze(x, axis=[0])  # error: PL0108

    @R.function
    def may_fit(x: R.Tensor(("n", 3), "float32"), y: R.Tensor(("m", 5), "float32")) -> R.Object:
        return R.matmul(x, y)
