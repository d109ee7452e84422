# Products with different left operands stay, and so do those whose number of columns is a symbol or whose result type differs.
# test opt --passes=CombineParallelMatmul

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32"), y: R.Tensor(("n", 4), "float32"), w: R.Tensor((4, 3), "float32"), v: R.Tensor((4, "m"), "float32")) -> R.Object:
        with R.dataflow():
            a = R.matmul(x, w)
            b = R.matmul(y, w)
            c = R.matmul(x, v)
            d = R.matmul(x, w, out_dtype="float64")
            R.output(a, b, c, d)
        return (a, b, c, d)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", 4), dtype="float32"), y: R.Tensor(("n", 4), dtype="float32"), w: R.Tensor((4, 3), dtype="float32"), v: R.Tensor((4, "m"), dtype="float32")) -> R.Object:
#         n = T.int64()
#         m = T.int64()
#         with R.dataflow():
#             a: R.Tensor((n, 3), dtype="float32") = R.matmul(x, w)
#             b: R.Tensor((n, 3), dtype="float32") = R.matmul(y, w)
#             c: R.Tensor((n, m), dtype="float32") = R.matmul(x, v)
#             d: R.Tensor((n, 3), dtype="float64") = R.matmul(x, w, out_dtype="float64")
#             R.output(a, b, c, d)
#         return (a, b, c, d)
