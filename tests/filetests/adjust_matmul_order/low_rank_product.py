# Inputs only: `x @ (a @ b)` with a rank of 1 becomes `(x @ a) @ b`, which is cheaper for each number of rows.
# test opt --passes=AdjustMatmulOrder,DeadCodeElimination

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2, 8), "float32"), a: R.Tensor((8, 1), "float32"), b: R.Tensor((1, 8), "float32")) -> R.Tensor((2, 8), "float32"):
        with R.dataflow():
            u = R.matmul(a, b)
            y = R.matmul(x, u)
            R.output(y)
        return y

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor((2, 8), dtype="float32"), a: R.Tensor((8, 1), dtype="float32"), b: R.Tensor((1, 8), dtype="float32")) -> R.Tensor((2, 8), dtype="float32"):
#         with R.dataflow():
#             lv: R.Tensor((2, 1), dtype="float32") = R.matmul(x, a)
#             y: R.Tensor((2, 8), dtype="float32") = R.matmul(lv, b)
#             R.output(y)
#         return y
