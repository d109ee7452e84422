# The weights of a grouped convolution are scaled; those of a grouped transposed convolution, which have the filters of one group, are kept.
# test opt --passes=FoldScaleAxis,FoldConstant,DeadCodeElimination

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 2, "h", 4), "float32")) -> R.Object:
        with R.dataflow():
            c = R.nn.conv2d(x, R.const([[[[0.5]]], [[[2.0]]]], "float32"), groups=2)
            s = R.multiply(c, R.const([[[2.0]], [[4.0]]], "float32"))
            d = R.nn.conv2d_transpose(s, R.const([[[[0.5]]], [[[2.0]]]], "float32"), groups=2)
            y = R.multiply(d, R.const([[[2.0]], [[4.0]]], "float32"))
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
#             s: R.Tensor((n, 2, h, 4), dtype="float32") = R.nn.conv2d(x, R.const([[[[1.0]]], [[[8.0]]]], "float32"), groups=2)
#             d: R.Tensor((n, 2, h, 4), dtype="float32") = R.nn.conv2d_transpose(s, R.const([[[[0.5]]], [[[2.0]]]], "float32"), groups=2)
#             y: R.Tensor((n, 2, h, 4), dtype="float32") = R.multiply(d, R.const([[[2.0]], [[4.0]]], "float32"))
#             R.output(y)
#         return y
