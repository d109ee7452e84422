# The readers of a transpose that has become a copy read the copied variable, so that a bias is found next to its convolution.
# test opt --passes=ChannelsLast,DeadCodeElimination

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 2, "h", 4), "float32")) -> R.Object:
        with R.dataflow():
            c = R.nn.conv2d(x, R.const([[[[0.5]], [[-1.0]]], [[[2.0]], [[1.0]]]], "float32"))
            t = R.permute_dims(c, [0, 2, 3, 1])
            b = R.add(t, R.const([1.0, 2.0], "float32"))
            y = R.nn.relu(b)
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
#             lv: R.Tensor((n, h, 4, 2), dtype="float32") = R.permute_dims(x, axes=[0, 2, 3, 1])
#             lv1: R.Tensor((n, h, 4, 2), dtype="float32") = R.nn.conv2d(lv, R.const([[[[0.5]], [[-1.0]]], [[[2.0]], [[1.0]]]], "float32"), data_layout="NHWC", out_layout="NHWC")
#             b: R.Tensor((n, h, 4, 2), dtype="float32") = R.add(lv1, R.const([1.0, 2.0], "float32"))
#             y: R.Tensor((n, h, 4, 2), dtype="float32") = R.nn.relu(b)
#             R.output(y)
#         return y
