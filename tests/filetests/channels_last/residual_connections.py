# Bias, residual, pooling and elementwise operators after convolutions keep the channels-last layout.
# test opt --passes=ChannelsLast,DeadCodeElimination

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 2, "h", 4), "float32")) -> R.Object:
        with R.dataflow():
            c = R.nn.conv2d(x, R.const([[[[0.5]], [[-1.0]]], [[[2.0]], [[1.0]]]], "float32"))
            b = R.add(c, R.const([[[[1.0]], [[-2.0]]]], "float32"))
            r = R.nn.relu(b)
            d = R.nn.conv2d(r, R.const([[[[0.5]], [[-1.0]]], [[[2.0]], [[1.0]]]], "float32"))
            s = R.add(d, r)
            p = R.nn.max_pool2d(s, pool_size=(1, 1))
            m = R.mean(p, axis=[2, 3])
            e = R.exp(p)
            R.output(m, e)
        return (m, e)

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
#             lv2: R.Tensor((n, h, 4, 2), dtype="float32") = R.add(lv1, R.const([[[[1.0, -2.0]]]], "float32"))
#             lv3: R.Tensor((n, h, 4, 2), dtype="float32") = R.nn.relu(lv2)
#             lv4: R.Tensor((n, h, 4, 2), dtype="float32") = R.nn.conv2d(lv3, R.const([[[[0.5]], [[-1.0]]], [[[2.0]], [[1.0]]]], "float32"), data_layout="NHWC", out_layout="NHWC")
#             lv5: R.Tensor((n, h, 4, 2), dtype="float32") = R.add(lv4, lv3)
#             lv6: R.Tensor((n, h, 4, 2), dtype="float32") = R.nn.max_pool2d(lv5, layout="NHWC", out_layout="NHWC")
#             m: R.Tensor((n, 2), dtype="float32") = R.mean(lv6, axis=[1, 2])
#             lv7: R.Tensor((n, h, 4, 2), dtype="float32") = R.exp(lv6)
#             e: R.Tensor((n, 2, h, 4), dtype="float32") = R.permute_dims(lv7, axes=[0, 3, 1, 2])
#             R.output(m, lv7, e)
#         return (m, e)
