# The sum of no elements is 0, the product 1, the maximum minus infinity or the least integer, the mean NaN.
# test run

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def floats(x: R.Tensor((0, 2), "float32")) -> R.Object:
        return (R.sum(x, axis=[0]), R.prod(x, axis=[0]), R.max(x, axis=[0]), R.min(x, axis=[0]), R.mean(x, axis=[0]))

    @R.function
    def integers(x: R.Tensor((0, 2), "int8")) -> R.Object:
        return (R.sum(x, axis=[0]), R.prod(x, axis=[0]), R.max(x, axis=[0]), R.min(x, axis=[0]))

    # Reducing the other axis gives no elements.
    @R.function
    def no_rows(x: R.Tensor((0, 2), "float32")) -> R.Object:
        return (R.sum(x, axis=[1]), R.max(x, axis=[1], keepdims=True))

# expect
# floats: (Tensor([2], float32) [0.0000, 0.0000], Tensor([2], float32) [1.0000, 1.0000], Tensor([2], float32) [-inf, -inf], Tensor([2], float32) [inf, inf], Tensor([2], float32) [NaN, NaN])
# integers: (Tensor([2], int8) [0.0000, 0.0000], Tensor([2], int8) [1.0000, 1.0000], Tensor([2], int8) [-128.0000, -128.0000], Tensor([2], int8) [127.0000, 127.0000])
# no_rows: (Tensor([0], float32) [], Tensor([0, 1], float32) [])
