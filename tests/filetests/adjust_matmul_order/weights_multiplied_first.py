# Two weights are multiplied first, whatever the sizes, since their product is computed once.
# test opt --passes=AdjustMatmulOrder,DeadCodeElimination

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 8), "float32"), a: R.Tensor((8, 1), "float32"), b: R.Tensor((1, 8), "float32")) -> R.Tensor(("n", 8), "float32"):
        R.func_attr({"num_input": 1})
        with R.dataflow():
            y = R.matmul(x, a)
            z = R.matmul(y, b)
            R.output(z)
        return z

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", 8), dtype="float32"), a: R.Tensor((8, 1), dtype="float32"), b: R.Tensor((1, 8), dtype="float32")) -> R.Tensor(("n", 8), dtype="float32"):
#         n = T.int64()
#         R.func_attr({"num_input": 1})
#         with R.dataflow():
#             lv: R.Tensor((8, 8), dtype="float32") = R.matmul(a, b)
#             z: R.Tensor((n, 8), dtype="float32") = R.matmul(x, lv)
#             R.output(z)
#         return z
