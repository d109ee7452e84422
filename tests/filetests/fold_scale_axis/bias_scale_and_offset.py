# A scale and an offset after a convolution with a bias become part of the weights and of the bias.
# test opt --passes=FoldScaleAxis,FoldConstant,DeadCodeElimination

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 2, "h", 4), "float32")) -> R.Object:
        with R.dataflow():
            c = R.nn.conv2d(x, R.const([[[[0.5]], [[-1.0]]], [[[2.0]], [[1.0]]]], "float32"), padding=[1, 1])
            b = R.add(c, R.const([[[0.5]], [[0.25]]], "float32"))
            s = R.multiply(R.const([[[2.0]], [[4.0]]], "float32"), b)
            y = R.add(s, R.const([[[1.0]], [[-2.0]]], "float32"))
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
#             lv5: R.Tensor((n, 2, h + 2, 6), dtype="float32") = R.nn.conv2d(x, R.const([[[[1.0]], [[-2.0]]], [[[8.0]], [[4.0]]]], "float32"), padding=[1, 1, 1, 1])
#             y: R.Tensor((n, 2, h + 2, 6), dtype="float32") = R.add(lv5, R.const([[[2.0]], [[-1.0]]], "float32"))
#             R.output(y)
#         return y
