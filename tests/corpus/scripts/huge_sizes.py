# Sizes that no memory holds: lists and products of them must not be made while compiling.
from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def transposed(x: R.Tensor(("n", 4, "w"), "float32"), w: R.Tensor((4, 1, 8589934593), "float32")) -> R.Object:
        c = R.nn.conv1d_transpose(x, w, strides=4, groups=2)
        return c

    @R.function
    def condition(x: R.Tensor(("n", 2, 3), "int32")) -> R.Object:
        n = T.int64()
        a = R.reshape(x, R.shape([n == 2, 3]))
        b = R.permute_dims(a, axes=[1, 0])
        return R.concat((b, b), axis=1)
