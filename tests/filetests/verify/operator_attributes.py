# Attributes out of range: axes, repeated axes, permutations, strides of 0, and names that the operator does not have.
# test verify

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def axis(x: R.Tensor((2, 3), "float32")) -> R.Object:
        return R.sum(x, axis=[2])  # error: PL0108

    @R.function
    def axis_twice(x: R.Tensor((2, 3), "float32")) -> R.Object:
        return R.sum(x, axis=[1, -1])  # error: PL0108

    @R.function
    def permutation(x: R.Tensor((2, 3), "float32")) -> R.Object:
        return R.permute_dims(x, axes=[0, 0])  # error: PL0108

    @R.function
    def stride(x: R.Tensor((2, 3), "float32")) -> R.Object:
        return R.strided_slice(x, axes=[0], begin=[0], end=[2], strides=[0])  # error: PL0108

    @R.function
    def unknown(x: R.Tensor((2, 3), "float32")) -> R.Object:
        return R.sum(x, axes=[0], keep=True)  # error: PL0105

    @R.function
    def no_dtype(x: R.Tensor((2, 3), "float32")) -> R.Object:
        return R.astype(x, "float33")  # error: PL0108 dtype must be a data type
