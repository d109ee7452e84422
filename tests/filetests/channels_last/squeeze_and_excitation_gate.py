# Means over the image, convolutions of them and the product with the image keep the channels-last layout.
# test opt --passes=ChannelsLast,DeadCodeElimination

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 2, "h", 4), "float32")) -> R.Object:
        with R.dataflow():
            c = R.nn.conv2d(x, R.const([[[[0.5]], [[-1.0]]], [[[2.0]], [[1.0]]]], "float32"))
            m = R.mean(c, axis=[2, 3], keepdims=True)
            g = R.nn.conv2d(m, R.const([[[[0.5]], [[-1.0]]], [[[2.0]], [[1.0]]]], "float32"))
            s = R.sigmoid(g)
            y = R.multiply(c, s)
            z = R.multiply(y, R.max(x, axis=[2, 3], keepdims=True))
            w = R.add(z, x)
            R.output(w)
        return w

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
#             lv1: R.Tensor((n, h, 4, 2), dtype="float32") = R.permute_dims(x, axes=[0, 2, 3, 1])
#             lv2: R.Tensor((n, h, 4, 2), dtype="float32") = R.nn.conv2d(lv1, R.const([[[[0.5]], [[-1.0]]], [[[2.0]], [[1.0]]]], "float32"), data_layout="NHWC", out_layout="NHWC")
#             lv3: R.Tensor((n, 1, 1, 2), dtype="float32") = R.mean(lv2, axis=[1, 2], keepdims=True)
#             lv4: R.Tensor((n, 1, 1, 2), dtype="float32") = R.nn.conv2d(lv3, R.const([[[[0.5]], [[-1.0]]], [[[2.0]], [[1.0]]]], "float32"), data_layout="NHWC", out_layout="NHWC")
#             lv5: R.Tensor((n, 1, 1, 2), dtype="float32") = R.sigmoid(lv4)
#             lv6: R.Tensor((n, h, 4, 2), dtype="float32") = R.multiply(lv2, lv5)
#             lv: R.Tensor((n, 2, 1, 1), dtype="float32") = R.max(x, axis=[2, 3], keepdims=True)
#             lv7: R.Tensor((n, 1, 1, 2), dtype="float32") = R.permute_dims(lv, axes=[0, 2, 3, 1])
#             lv8: R.Tensor((n, h, 4, 2), dtype="float32") = R.multiply(lv6, lv7)
#             lv9: R.Tensor((n, h, 4, 2), dtype="float32") = R.add(lv8, lv1)
#             w: R.Tensor((n, 2, h, 4), dtype="float32") = R.permute_dims(lv9, axes=[0, 3, 1, 2])
#             R.output(lv9, w)
#         return w
