# Outside of dataflow blocks a call between the products may write to their operands, so they stay.
# test opt --passes=CombineParallelMatmul

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32"), w: R.Tensor((4, 3), "float32"), v: R.Tensor((4, 2), "float32")) -> R.Object:
        a = R.matmul(x, w)
        b = R.matmul(x, v)
        return (a, b)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", 4), dtype="float32"), w: R.Tensor((4, 3), dtype="float32"), v: R.Tensor((4, 2), dtype="float32")) -> R.Object:
#         n = T.int64()
#         a: R.Tensor((n, 3), dtype="float32") = R.matmul(x, w)
#         b: R.Tensor((n, 2), dtype="float32") = R.matmul(x, v)
#         return (a, b)
