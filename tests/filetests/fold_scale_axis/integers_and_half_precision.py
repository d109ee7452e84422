# Scales of integer and of float16 convolutions are kept, because the scaled weights would overflow or be rounded.
# test opt --passes=FoldScaleAxis,FoldConstant,DeadCodeElimination

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 2, "h", 4), "float16"), z: R.Tensor(("n", 2, "h", 4), "int8")) -> R.Object:
        with R.dataflow():
            c = R.nn.conv2d(x, R.const([[[[1]], [[2]]]], "float16"))
            y = R.multiply(c, R.const(3.0, "float16"))
            d = R.nn.conv2d(z, R.const([[[[1]], [[2]]]], "int8"), out_dtype="int32")
            w = R.multiply(d, R.const(3, "int32"))
            R.output(y, w)
        return y, w

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", 2, "h", 4), dtype="float16"), z: R.Tensor(("n", 2, "h", 4), dtype="int8")) -> R.Object:
#         n = T.int64()
#         h = T.int64()
#         with R.dataflow():
#             c: R.Tensor((n, 1, h, 4), dtype="float16") = R.nn.conv2d(x, R.const([[[[1.0]], [[2.0]]]], "float16"))
#             y: R.Tensor((n, 1, h, 4), dtype="float16") = R.multiply(c, R.const(3.0, "float16"))
#             d: R.Tensor((n, 1, h, 4), dtype="int32") = R.nn.conv2d(z, R.const([[[[1]], [[2]]]], "int8"), out_dtype="int32")
#             w: R.Tensor((n, 1, h, 4), dtype="int32") = R.multiply(d, R.const(3, "int32"))
#             R.output(y, w)
#         return (y, w)
