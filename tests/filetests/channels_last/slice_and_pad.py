# Slices, padding and flips between convolutions keep the channels-last layout, with their axes converted.
# test opt --passes=ChannelsLast,DeadCodeElimination

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 2, "h", 4), "float32")) -> R.Object:
        with R.dataflow():
            c = R.nn.conv2d(x, R.const([[[[0.5]], [[-1.0]]], [[[2.0]], [[1.0]]]], "float32"))
            s = R.strided_slice(c, axes=[1, -1], begin=[1, 0], end=[2, 4], strides=[1, 2])
            p = R.nn.pad(s, pad_width=[0, 0, 0, 1, 1, 0, 0, 2])
            f = R.flip(p, axis=3)
            k = R.nn.conv2d(f, R.const([[[[0.5]], [[-1.0]]], [[[2.0]], [[1.0]]]], "float32"))
            R.output(k)
        return k

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
#             lv2: R.Tensor((n, h, 2, 1), dtype="float32") = R.strided_slice(lv1, R.shape([3, 2]), R.shape([1, 0]), R.shape([2, 4]), R.shape([1, 2]))
#             lv3: R.Tensor((n, h + 1, 4, 2), dtype="float32") = R.nn.pad(lv2, pad_width=[0, 0, 1, 0, 0, 2, 0, 1])
#             lv4: R.Tensor((n, h + 1, 4, 2), dtype="float32") = R.flip(lv3, axis=2)
#             lv5: R.Tensor((n, h + 1, 4, 2), dtype="float32") = R.nn.conv2d(lv4, R.const([[[[0.5]], [[-1.0]]], [[[2.0]], [[1.0]]]], "float32"), data_layout="NHWC", out_layout="NHWC")
#             k: R.Tensor((n, 2, h + 1, 4), dtype="float32") = R.permute_dims(lv5, axes=[0, 3, 1, 2])
#             R.output(lv5, k)
#         return k
