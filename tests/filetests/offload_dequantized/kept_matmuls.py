# Weights that are an input, an infinite scale, and a product of float64 keep their operators.
# test opt --passes=OffloadDequantized

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 2), "float32"), y: R.Tensor(("n", 2), "float64"), v: R.Tensor((2, 2), "int8")) -> R.Object:
        with R.dataflow():
            a = R.dequantize(v, R.const(0.25, "float32"), R.const(0, "int8"))
            b = R.matmul(x, a)
            c = R.dequantize(R.const([[1, 2], [3, 4]], "int8"), R.const(float("inf"), "float32"), R.const(0, "int8"))
            d = R.matmul(x, c)
            e = R.astype(R.const([[1, 2], [3, 4]], "int8"), "float64")
            f = R.matmul(y, e)
            R.output(b, d, f)
        return (b, d, f)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", 2), dtype="float32"), y: R.Tensor(("n", 2), dtype="float64"), v: R.Tensor((2, 2), dtype="int8")) -> R.Object:
#         n = T.int64()
#         with R.dataflow():
#             a: R.Tensor((2, 2), dtype="float32") = R.dequantize(v, R.const(0.25, "float32"), R.const(0, "int8"))
#             b: R.Tensor((n, 2), dtype="float32") = R.matmul(x, a)
#             c: R.Tensor((2, 2), dtype="float32") = R.dequantize(R.const([[1, 2], [3, 4]], "int8"), R.const(float("inf"), "float32"), R.const(0, "int8"))
#             d: R.Tensor((n, 2), dtype="float32") = R.matmul(x, c)
#             e: R.Tensor((2, 2), dtype="float64") = R.astype(R.const([[1, 2], [3, 4]], "int8"), dtype="float64")
#             f: R.Tensor((n, 2), dtype="float64") = R.matmul(y, e)
#             R.output(b, d, f)
#         return (b, d, f)
