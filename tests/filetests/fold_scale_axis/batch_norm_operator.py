# R.nn.batch_norm with moving statistics becomes part of the convolution; without scale, the weights are divided by the deviation.
# test opt --passes=FoldScaleAxis,FoldConstant,DeadCodeElimination

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 2, "h", 4), "float32")) -> R.Object:
        with R.dataflow():
            v = R.const([1.0, 2.0], "float32")
            c = R.nn.conv2d(x, R.const([[[[0.5]], [[-1.0]]], [[[2.0]], [[1.0]]]], "float32"))
            t = R.nn.batch_norm(c, v, v, v, R.const([3.0, 8.0], "float32"), axis=1, epsilon=1.0, training=False)
            a = t[0]
            d = R.nn.conv2d(a, R.const([[[[0.5]], [[-1.0]]], [[[2.0]], [[1.0]]]], "float32"))
            u = R.nn.batch_norm(d, v, v, v, R.const([3.0, 8.0], "float32"), axis=-3, epsilon=1.0, scale=False, center=False, training=False)
            y = u[0]
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
#             lv10: R.Tensor((n, 2, h, 4), dtype="float32") = R.nn.conv2d(x, R.const([[[[0.25]], [[-0.5]]], [[[1.3333334]], [[0.6666667]]]], "float32"))
#             a: R.Tensor((n, 2, h, 4), dtype="float32") = R.add(lv10, R.const([[[[0.5]], [[0.6666666]]]], "float32"))
#             lv19: R.Tensor((n, 2, h, 4), dtype="float32") = R.nn.conv2d(a, R.const([[[[0.25]], [[-0.5]]], [[[0.6666667]], [[0.33333334]]]], "float32"))
#             y: R.Tensor((n, 2, h, 4), dtype="float32") = R.add(lv19, R.const([[[[-0.5]], [[-0.6666667]]]], "float32"))
#             R.output(y)
#         return y
