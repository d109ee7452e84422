# The product with a sum of a weight and a low-rank update becomes the sum of two products.
# test opt --passes=ExpandMatmulOfSum,DeadCodeElimination

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 8), "float32"), w: R.Tensor((8, 4), "float32"), a: R.Tensor((8, 1), "float32"), b: R.Tensor((1, 4), "float32")) -> R.Tensor(("n", 4), "float32"):
        with R.dataflow():
            u = R.matmul(a, b)
            s = R.add(u, w)
            y = R.matmul(x, s)
            R.output(y)
        return y

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", 8), dtype="float32"), w: R.Tensor((8, 4), dtype="float32"), a: R.Tensor((8, 1), dtype="float32"), b: R.Tensor((1, 4), dtype="float32")) -> R.Tensor(("n", 4), dtype="float32"):
#         n = T.int64()
#         with R.dataflow():
#             u: R.Tensor((8, 4), dtype="float32") = R.matmul(a, b)
#             lv: R.Tensor((n, 4), dtype="float32") = R.matmul(x, u)
#             lv1: R.Tensor((n, 4), dtype="float32") = R.matmul(x, w)
#             y: R.Tensor((n, 4), dtype="float32") = R.add(lv, lv1)
#             R.output(y)
#         return y
