# The second matrix is computed after the first product, from its result, so the products cannot be one.
# test opt --passes=CombineParallelMatmul

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4, 4), "float32"), w: R.Tensor((4, 4), "float32")) -> R.Object:
        with R.dataflow():
            a = R.matmul(x, w)
            e = R.exp(a)
            b = R.matmul(x, e)
            R.output(a, b)
        return (a, b)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor((4, 4), dtype="float32"), w: R.Tensor((4, 4), dtype="float32")) -> R.Object:
#         with R.dataflow():
#             a: R.Tensor((4, 4), dtype="float32") = R.matmul(x, w)
#             e: R.Tensor((4, 4), dtype="float32") = R.exp(a)
#             b: R.Tensor((4, 4), dtype="float32") = R.matmul(x, e)
#             R.output(a, b)
#         return (a, b)
