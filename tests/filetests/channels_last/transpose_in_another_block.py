# A convolution reads the operand of a transpose in another dataflow block; the operand becomes an output of its block.
# test opt --passes=ChannelsLast,DeadCodeElimination

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", "h", 4, 2), "float32")) -> R.Object:
        with R.dataflow():
            r = R.nn.relu(x)
            t = R.permute_dims(r, [0, 3, 1, 2])
            R.output(t)
        u = R.add(t, t)
        with R.dataflow():
            y = R.nn.conv2d(t, R.const([[[[0.5]], [[-1.0]]], [[[2.0]], [[1.0]]]], "float32"))
            R.output(y)
        return (u, y)

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
#             r: R.Tensor((n, h, 4, 2), dtype="float32") = R.nn.relu(x)
#             t: R.Tensor((n, 2, h, 4), dtype="float32") = R.permute_dims(r, axes=[0, 3, 1, 2])
#             R.output(r, t)
#         u: R.Tensor((n, 2, h, 4), dtype="float32") = R.add(t, t)
#         with R.dataflow():
#             lv: R.Tensor((n, h, 4, 2), dtype="float32") = R.nn.conv2d(r, R.const([[[[0.5]], [[-1.0]]], [[[2.0]], [[1.0]]]], "float32"), data_layout="NHWC", out_layout="NHWC")
#             y: R.Tensor((n, 2, h, 4), dtype="float32") = R.permute_dims(lv, axes=[0, 3, 1, 2])
#             R.output(lv, y)
#         return (u, y)
