# An operator whose result has unknown sizes reads the result of the convolution with channels first.
# test opt --passes=ChannelsLast,DeadCodeElimination

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 2, "h", 4), "float32"), s: R.Shape(ndim=2)) -> R.Object:
        with R.dataflow():
            c = R.nn.conv2d(x, R.const([[[[0.5]], [[-1.0]]], [[[2.0]], [[1.0]]]], "float32"))
            r = R.image.resize2d(c, s)
            y = R.nn.relu(r)
            R.output(y)
        return y

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", 2, "h", 4), dtype="float32"), s: R.Shape(ndim=2)) -> R.Object:
#         n = T.int64()
#         h = T.int64()
#         with R.dataflow():
#             lv: R.Tensor((n, h, 4, 2), dtype="float32") = R.permute_dims(x, axes=[0, 2, 3, 1])
#             lv1: R.Tensor((n, h, 4, 2), dtype="float32") = R.nn.conv2d(lv, R.const([[[[0.5]], [[-1.0]]], [[[2.0]], [[1.0]]]], "float32"), data_layout="NHWC", out_layout="NHWC")
#             c: R.Tensor((n, 2, h, 4), dtype="float32") = R.permute_dims(lv1, axes=[0, 3, 1, 2])
#             r: R.Tensor(dtype="float32", ndim=4) = R.image.resize2d(c, s)
#             y: R.Tensor(dtype="float32", ndim=4) = R.nn.relu(r)
#             R.output(y)
#         return y
