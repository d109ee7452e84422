# Reshapes that merge or split spatial dims keep the layout, so that tokens of a vision transformer need no transpose.
# test opt --passes=ChannelsLast,DeadCodeElimination

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 2, "h", 4), "float32")) -> R.Object:
        n = T.int64()
        h = T.int64()
        with R.dataflow():
            c = R.nn.conv2d(x, R.const([[[[0.5]], [[-1.0]]], [[[2.0]], [[1.0]]]], "float32"))
            f = R.reshape(c, R.shape([n, 2, h * 4]))
            t = R.permute_dims(f, [0, 2, 1])
            r = R.nn.relu(t)
            u = R.permute_dims(r, [0, 2, 1])
            s = R.reshape(u, R.shape([n, 2, h, 4]))
            d = R.nn.conv2d(s, R.const([[[[0.5]], [[-1.0]]], [[[2.0]], [[1.0]]]], "float32"))
            y = R.add(c, d)
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
#             lv2: R.Tensor((n, h * 4, 2), dtype="float32") = R.reshape(lv1, R.shape([n, h * 4, 2]))
#             r: R.Tensor((n, h * 4, 2), dtype="float32") = R.nn.relu(lv2)
#             lv3: R.Tensor((n, h, 4, 2), dtype="float32") = R.reshape(r, R.shape([n, h, 4, 2]))
#             lv4: R.Tensor((n, h, 4, 2), dtype="float32") = R.nn.conv2d(lv3, R.const([[[[0.5]], [[-1.0]]], [[[2.0]], [[1.0]]]], "float32"), data_layout="NHWC", out_layout="NHWC")
#             lv5: R.Tensor((n, h, 4, 2), dtype="float32") = R.add(lv1, lv4)
#             y: R.Tensor((n, 2, h, 4), dtype="float32") = R.permute_dims(lv5, axes=[0, 3, 1, 2])
#             R.output(lv5, y)
#         return y
