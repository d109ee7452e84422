# A convolution between transposes, as exporters of channels-last models write it, runs without the transposes.
# test opt --passes=ChannelsLast,DeadCodeElimination

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", "h", 4, 2), "float32")) -> R.Object:
        with R.dataflow():
            a = R.permute_dims(x, axes=[0, 3, 1, 2])
            b = R.nn.conv2d(a, R.const([[[[0.5]], [[-1.0]]], [[[2.0]], [[1.0]]]], "float32"))
            c = R.permute_dims(b, axes=[0, -2, -1, 1])
            d = R.permute_dims(b, axes=[0, 3, 1, 2])
            R.output(c, d)
        return (c, d)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", "h", 4, 2), dtype="float32")) -> R.Object:
#         n = T.int64()
#         h = T.int64()
#         with R.dataflow():
#             lv: R.Tensor((n, h, 4, 2), dtype="float32") = R.nn.conv2d(x, R.const([[[[0.5]], [[-1.0]]], [[[2.0]], [[1.0]]]], "float32"), data_layout="NHWC", out_layout="NHWC")
#             c: R.Tensor((n, h, 4, 2), dtype="float32") = lv
#             d: R.Tensor((n, 4, 2, h), dtype="float32") = R.permute_dims(lv, axes=[0, 2, 3, 1])
#             R.output(c, d)
#         return (c, d)
