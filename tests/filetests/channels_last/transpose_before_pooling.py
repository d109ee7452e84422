# Pooling and resizing read the operand of a transpose from channels last to channels first; an addition does not.
# test opt --passes=ChannelsLast,DeadCodeElimination

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", "h", 4, 2), "float32")) -> R.Object:
        with R.dataflow():
            t = R.permute_dims(x, [0, 3, 1, 2])
            p = R.nn.max_pool2d(t, pool_size=[2, 2])
            c = R.nn.conv2d(p, R.const([[[[0.5]], [[-1.0]]], [[[2.0]], [[1.0]]]], "float32"))
            y = R.add(t, t)
            R.output(c, y)
        return c, y

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
#             t: R.Tensor((n, 2, h, 4), dtype="float32") = R.permute_dims(x, axes=[0, 3, 1, 2])
#             lv: R.Tensor((n, h - 1, 3, 2), dtype="float32") = R.nn.max_pool2d(x, pool_size=[2, 2], layout="NHWC", out_layout="NHWC")
#             lv1: R.Tensor((n, h - 1, 3, 2), dtype="float32") = R.nn.conv2d(lv, R.const([[[[0.5]], [[-1.0]]], [[[2.0]], [[1.0]]]], "float32"), data_layout="NHWC", out_layout="NHWC")
#             c: R.Tensor((n, 2, h - 1, 3), dtype="float32") = R.permute_dims(lv1, axes=[0, 3, 1, 2])
#             y: R.Tensor((n, 2, h, 4), dtype="float32") = R.add(t, t)
#             R.output(lv1, c, y)
#         return (c, y)
