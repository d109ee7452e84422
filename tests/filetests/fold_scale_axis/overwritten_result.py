# A scale is kept if a call may overwrite the result of the convolution before the scale reads it.
# test opt --passes=FoldScaleAxis
# no-run: it calls a packed function

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function(pure=False)
    def main(x: R.Tensor(("n", 2, "h", 4), "float32")) -> R.Object:
        c = R.nn.conv2d(x, R.const([[[[0.5]], [[-1.0]]], [[[2.0]], [[1.0]]]], "float32"))
        _ = R.call_packed("overwrite", c, sinfo_args=R.Object)
        y = R.multiply(c, R.const([[[2.0]], [[4.0]]], "float32"))
        return y

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function(pure=False)
#     def main(x: R.Tensor(("n", 2, "h", 4), dtype="float32")) -> R.Object:
#         n = T.int64()
#         h = T.int64()
#         c: R.Tensor((n, 2, h, 4), dtype="float32") = R.nn.conv2d(x, R.const([[[[0.5]], [[-1.0]]], [[[2.0]], [[1.0]]]], "float32"))
#         _: R.Object = R.call_packed("overwrite", c, sinfo_args=(R.Object,))
#         y: R.Tensor((n, 2, h, 4), dtype="float32") = R.multiply(c, R.const([[[2.0]], [[4.0]]], "float32"))
#         return y
