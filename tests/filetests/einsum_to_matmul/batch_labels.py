# Batch labels stay dims of the matmul, in the order of the result.
# test opt --passes=EinsumToMatmul

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(a: R.Tensor(("b", "n", 4), "float32"), c: R.Tensor(("b", 4, 5), "float32")) -> R.Tensor(("b", "n", 5), "float32"):
        with R.dataflow():
            y = R.einsum((a, c), subscripts="bik,bkj->bij")
            R.output(y)
        return y

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(a: R.Tensor(("b", "n", 4), dtype="float32"), c: R.Tensor(("b", 4, 5), dtype="float32")) -> R.Tensor(("b", "n", 5), dtype="float32"):
#         b = T.int64()
#         n = T.int64()
#         with R.dataflow():
#             y: R.Tensor((b, n, 5), dtype="float32") = R.matmul(a, c)
#             R.output(y)
#         return y
