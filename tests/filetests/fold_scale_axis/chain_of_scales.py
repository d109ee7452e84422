# A chain of scales and offsets after one convolution becomes one convolution and one addition.
# test opt --passes=FoldScaleAxis,FoldConstant,DeadCodeElimination

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 2, "h", 4), "float32")) -> R.Object:
        with R.dataflow():
            a = R.nn.conv2d(x, R.const([[[[0.5]], [[-1.0]]], [[[2.0]], [[1.0]]]], "float32"))
            b = R.add(a, R.const(1.0, "float32"))
            c = R.multiply(b, R.const([[[2.0]], [[4.0]]], "float32"))
            d = R.subtract(c, R.const([[[3.0]], [[5.0]]], "float32"))
            e = R.divide(d, R.const(2.0, "float32"))
            f = R.add(R.const([[[0.5]], [[0.25]]], "float32"), e)
            y = R.multiply(f, R.const(8.0, "float32"))
            R.output(y)
        return y

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", 2, "h", 4), dtype="float32")) -> R.Object:
#         n = T.int64()
#         h = T.int64()
#         with R.dataflow():
#             lv15: R.Tensor((n, 2, h, 4), dtype="float32") = R.nn.conv2d(x, R.const([[[[4.0]], [[-8.0]]], [[[32.0]], [[16.0]]]], "float32"))
#             y: R.Tensor((n, 2, h, 4), dtype="float32") = R.add(lv15, R.const([[[0.0]], [[-2.0]]], "float32"))
#             R.output(y)
#         return y
