# Rows of the matrix are summed over, so gathering them cannot move behind the product.
# test opt --passes=ReorderTakeAfterMatmul

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2, 3), "float32"), w: R.Tensor((8, 4), "float32"), i: R.Tensor((3,), "int64")) -> R.Tensor((2, 4), "float32"):
        with R.dataflow():
            r = R.take(w, i, axis=0)
            y = R.matmul(x, r)
            R.output(y)
        return y

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor((2, 3), dtype="float32"), w: R.Tensor((8, 4), dtype="float32"), i: R.Tensor((3,), dtype="int64")) -> R.Tensor((2, 4), dtype="float32"):
#         with R.dataflow():
#             r: R.Tensor((3, 4), dtype="float32") = R.take(w, i, axis=0)
#             y: R.Tensor((2, 4), dtype="float32") = R.matmul(x, r)
#             R.output(y)
#         return y
