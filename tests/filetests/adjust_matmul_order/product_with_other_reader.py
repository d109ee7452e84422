# The first product has another reader, which needs it anyway, so the order is kept.
# test opt --passes=AdjustMatmulOrder

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((16, "n"), "float32"), y: R.Tensor(("n", 8), "float32"), v: R.Tensor((8,), "float32")) -> R.Object:
        with R.dataflow():
            a = R.matmul(x, y)
            b = R.matmul(a, v)
            R.output(a, b)
        return (a, b)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor((16, "n"), dtype="float32"), y: R.Tensor(("n", 8), dtype="float32"), v: R.Tensor((8,), dtype="float32")) -> R.Object:
#         n = T.int64()
#         with R.dataflow():
#             a: R.Tensor((16, 8), dtype="float32") = R.matmul(x, y)
#             b: R.Tensor((16,), dtype="float32") = R.matmul(a, v)
#             R.output(a, b)
#         return (a, b)
