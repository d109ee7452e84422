# Indices of two dims make the right operand a batch of matrices, which stays.
# test opt --passes=ReorderTakeAfterMatmul

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2, 4), "float32"), w: R.Tensor((4, 5), "float32"), i: R.Tensor((3, 2), "int64")) -> R.Object:
        with R.dataflow():
            c = R.take(w, i, axis=1)
            p = R.permute_dims(c, axes=[1, 0, 2])
            y = R.matmul(x, p)
            R.output(y)
        return y

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor((2, 4), dtype="float32"), w: R.Tensor((4, 5), dtype="float32"), i: R.Tensor((3, 2), dtype="int64")) -> R.Object:
#         with R.dataflow():
#             c: R.Tensor((4, 3, 2), dtype="float32") = R.take(w, i, axis=1)
#             p: R.Tensor((3, 4, 2), dtype="float32") = R.permute_dims(c, axes=[1, 0, 2])
#             y: R.Tensor((3, 2, 2), dtype="float32") = R.matmul(x, p)
#             R.output(y)
#         return y
