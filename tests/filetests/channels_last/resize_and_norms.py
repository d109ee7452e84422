# Resizing, normalization, softmax and scans on results of a convolution keep the channels-last layout, with their axes converted.
# test opt --passes=ChannelsLast,DeadCodeElimination

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 2, "h", 4), "float32")) -> R.Object:
        with R.dataflow():
            c = R.nn.conv2d(x, R.const([[[[0.5]], [[-1.0]]], [[[2.0]], [[1.0]]]], "float32"))
            r = R.image.resize2d(c, (6, 8), method="nearest_neighbor", coordinate_transformation_mode="asymmetric")
            g = R.nn.group_norm(r, R.const([1.0, 2.0], "float32"), R.const([0.0, 1.0], "float32"), num_groups=2, channel_axis=1, axes=[2, 3])
            s = R.nn.softmax(g, axis=1)
            b = R.nn.batch_norm(s, R.const([1.0, 2.0], "float32"), R.const([0.0, 1.0], "float32"), R.const([0.5, 0.5], "float32"), R.const([1.0, 4.0], "float32"), axis=1, training=False)
            y = b[0]
            v = b[1]
            q = R.cumsum(y, axis=2)
            t = R.argmax(q, axis=1, keepdims=True)
            R.output(q, t, v)
        return (q, t, v)

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
#             lv2: R.Tensor((n, 6, 8, 2), dtype="float32") = R.image.resize2d(lv1, R.shape([6, 8]), layout="NHWC", method="nearest_neighbor", coordinate_transformation_mode="asymmetric")
#             lv3: R.Tensor((n, 6, 8, 2), dtype="float32") = R.nn.group_norm(lv2, R.const([1.0, 2.0], "float32"), R.const([0.0, 1.0], "float32"), num_groups=2, channel_axis=3, axes=[1, 2])
#             lv4: R.Tensor((n, 6, 8, 2), dtype="float32") = R.nn.softmax(lv3, axis=3)
#             lv5: R.Tuple(R.Tensor((n, 6, 8, 2), dtype="float32"), R.Tensor((2,), dtype="float32"), R.Tensor((2,), dtype="float32")) = R.nn.batch_norm(lv4, R.const([1.0, 2.0], "float32"), R.const([0.0, 1.0], "float32"), R.const([0.5, 0.5], "float32"), R.const([1.0, 4.0], "float32"), axis=3, training=False)
#             lv6: R.Tensor((n, 6, 8, 2), dtype="float32") = lv5[0]
#             lv7: R.Tensor((2,), dtype="float32") = lv5[1]
#             v: R.Tensor((2,), dtype="float32") = lv7
#             lv8: R.Tensor((n, 6, 8, 2), dtype="float32") = R.cumsum(lv6, axis=1)
#             q: R.Tensor((n, 2, 6, 8), dtype="float32") = R.permute_dims(lv8, axes=[0, 3, 1, 2])
#             lv9: R.Tensor((n, 6, 8, 1), dtype="int64") = R.argmax(lv8, axis=3, keepdims=True)
#             t: R.Tensor((n, 1, 6, 8), dtype="int64") = R.permute_dims(lv9, axes=[0, 3, 1, 2])
#             R.output(lv7, v, lv8, q, lv9, t)
#         return (q, t, v)
