# test opt --passes=FoldScaleAxis,FoldConstant,DeadCodeElimination
# Weights and scales that are parameters from num_input on are folded, for LiftTransformParams to compute them once.

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 2, "h", 4), "float32"), w: R.Tensor((2, 2, 1, 1), "float32"), s: R.Tensor((2, 1, 1), "float32")) -> R.Object:
        R.func_attr({"num_input": 1})
        with R.dataflow():
            c = R.nn.conv2d(x, w)
            y = R.multiply(c, s)
            R.output(y)
        return y

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", 2, "h", 4), dtype="float32"), w: R.Tensor((2, 2, 1, 1), dtype="float32"), s: R.Tensor((2, 1, 1), dtype="float32")) -> R.Object:
#         n = T.int64()
#         h = T.int64()
#         R.func_attr({"num_input": 1})
#         with R.dataflow():
#             lv: R.Tensor((2, 1, 1, 1), dtype="float32") = R.reshape(s, R.shape([2, 1, 1, 1]))
#             lv1: R.Tensor((2, 2, 1, 1), dtype="float32") = R.multiply(w, lv)
#             y: R.Tensor((n, 2, h, 4), dtype="float32") = R.nn.conv2d(x, lv1)
#             R.output(y)
#         return y
