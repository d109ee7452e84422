# A concatenation of results of convolutions and its split keep the channels-last layout, with the axis converted.
# test opt --passes=ChannelsLast,DeadCodeElimination

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 2, "h", 4), "float32")) -> R.Object:
        with R.dataflow():
            c = R.nn.conv2d(x, R.const([[[[0.5]], [[-1.0]]], [[[2.0]], [[1.0]]]], "float32"))
            r = R.nn.relu(c)
            j = R.concat((c, r, x), axis=1)
            s = R.split(j, 3, axis=-3)
            a = s[0]
            b = s[2]
            d = R.nn.conv2d(a, R.const([[[[0.5]], [[-1.0]]], [[[2.0]], [[1.0]]]], "float32"))
            e = R.add(d, b)
            R.output(e)
        return e

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
#             lv2: R.Tensor((n, h, 4, 2), dtype="float32") = R.nn.relu(lv1)
#             lv3: R.Tensor((n, h, 4, 6), dtype="float32") = R.concat((lv1, lv2, lv), axis=3)
#             lv4: R.Tuple(R.Tensor((n, h, 4, 2), dtype="float32"), R.Tensor((n, h, 4, 2), dtype="float32"), R.Tensor((n, h, 4, 2), dtype="float32")) = R.split(lv3, indices_or_sections=3, axis=3)
#             lv5: R.Tensor((n, h, 4, 2), dtype="float32") = lv4[0]
#             lv6: R.Tensor((n, h, 4, 2), dtype="float32") = lv4[2]
#             lv7: R.Tensor((n, h, 4, 2), dtype="float32") = R.nn.conv2d(lv5, R.const([[[[0.5]], [[-1.0]]], [[[2.0]], [[1.0]]]], "float32"), data_layout="NHWC", out_layout="NHWC")
#             lv8: R.Tensor((n, h, 4, 2), dtype="float32") = R.add(lv7, lv6)
#             e: R.Tensor((n, 2, h, 4), dtype="float32") = R.permute_dims(lv8, axes=[0, 3, 1, 2])
#             R.output(lv8, e)
#         return e
