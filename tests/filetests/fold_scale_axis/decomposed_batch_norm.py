# A batch normalization that is written as a difference, a quotient, a product and a sum becomes part of the convolution.
# test opt --passes=FoldScaleAxis,FoldConstant,DeadCodeElimination

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 2, "h", 4), "float32")) -> R.Object:
        with R.dataflow():
            c = R.nn.conv2d(x, R.const([[[[0.5]], [[-1.0]]], [[[2.0]], [[1.0]]]], "float32"))
            m = R.subtract(c, R.const([[[1.0]], [[-2.0]]], "float32"))
            q = R.divide(m, R.const([[[2.0]], [[4.0]]], "float32"))
            g = R.multiply(q, R.const([[[3.0]], [[5.0]]], "float32"))
            y = R.add(g, R.const(1.0, "float32"))
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
#             lv11: R.Tensor((n, 2, h, 4), dtype="float32") = R.nn.conv2d(x, R.const([[[[0.75]], [[-1.5]]], [[[2.5]], [[1.25]]]], "float32"))
#             y: R.Tensor((n, 2, h, 4), dtype="float32") = R.add(lv11, R.const([[[-0.5]], [[3.5]]], "float32"))
#             R.output(y)
#         return y
