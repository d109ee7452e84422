# Products of float64, float32 and integers stay, and so does a product of float16 whose result is float64.
# test opt --passes=OffloadDequantized

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(a: R.Tensor((2, 2), "float64"), b: R.Tensor((2, 2), "float32"), c: R.Tensor((2, 2), "int8"), d: R.Tensor((2, 2), "float16")) -> R.Object:
        with R.dataflow():
            w = R.matmul(a, a)
            x = R.matmul(b, b)
            y = R.matmul(c, c, out_dtype="int32")
            z = R.matmul(d, d, out_dtype="float64")
            R.output(w, x, y, z)
        return (w, x, y, z)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(a: R.Tensor((2, 2), dtype="float64"), b: R.Tensor((2, 2), dtype="float32"), c: R.Tensor((2, 2), dtype="int8"), d: R.Tensor((2, 2), dtype="float16")) -> R.Object:
#         with R.dataflow():
#             w: R.Tensor((2, 2), dtype="float64") = R.matmul(a, a)
#             x: R.Tensor((2, 2), dtype="float32") = R.matmul(b, b)
#             y: R.Tensor((2, 2), dtype="int32") = R.matmul(c, c, out_dtype="int32")
#             z: R.Tensor((2, 2), dtype="float64") = R.matmul(d, d, out_dtype="float64")
#             R.output(w, x, y, z)
#         return (w, x, y, z)
