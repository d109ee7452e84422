# The scale follows the axis of the filters: a channels-last result, weights of a transposed convolution, and one spatial dim.
# test opt --passes=FoldScaleAxis,FoldConstant,DeadCodeElimination

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 2, "h", 4), "float32"), z: R.Tensor((1, 2, "k"), "float32")) -> R.Object:
        with R.dataflow():
            c = R.nn.conv2d_transpose(x, R.const([[[[0.5]], [[-1.0]]], [[[2.0]], [[1.0]]]], "float32"))
            s = R.multiply(c, R.const([[[2.0]], [[4.0]]], "float32"))
            p = R.permute_dims(s, [0, 2, 3, 1])
            d = R.nn.conv2d(p, R.const([[[[0.5]], [[-1.0]]], [[[2.0]], [[1.0]]]], "float32"), data_layout="NHWC")
            y = R.multiply(d, R.const([2.0, 4.0], "float32"))
            e = R.nn.conv1d(z, R.const([[[0.5], [1.0]]], "float32"))
            w = R.multiply(e, R.const(3.0, "float32"))
            R.output(y, w)
        return y, w

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", 2, "h", 4), dtype="float32"), z: R.Tensor((1, 2, "k"), dtype="float32")) -> R.Object:
#         n = T.int64()
#         h = T.int64()
#         k = T.int64()
#         with R.dataflow():
#             s: R.Tensor((n, 2, h, 4), dtype="float32") = R.nn.conv2d_transpose(x, R.const([[[[1.0]], [[-4.0]]], [[[4.0]], [[4.0]]]], "float32"))
#             p: R.Tensor((n, h, 4, 2), dtype="float32") = R.permute_dims(s, axes=[0, 2, 3, 1])
#             y: R.Tensor((n, h, 4, 2), dtype="float32") = R.nn.conv2d(p, R.const([[[[1.0]], [[-2.0]]], [[[8.0]], [[4.0]]]], "float32"), data_layout="NHWC")
#             w: R.Tensor((1, 1, k), dtype="float32") = R.nn.conv1d(z, R.const([[[1.5], [3.0]]], "float32"))
#             R.output(y, w)
#         return (y, w)
