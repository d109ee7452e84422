# The right operand is an input, not a constant, so the product of the dequantized operands stays.
# test opt --passes=OffloadDequantized

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((3, 2), "int8"), w: R.Tensor((2, 3), "int8")) -> R.Object:
        with R.dataflow():
            a = R.dequantize(x, R.const(0.5, "float32"), R.const(0, "int8"))
            b = R.dequantize(w, R.const(0.25, "float32"), R.const(0, "int8"))
            y = R.matmul(a, b)
            R.output(y)
        return y

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor((3, 2), dtype="int8"), w: R.Tensor((2, 3), dtype="int8")) -> R.Object:
#         with R.dataflow():
#             a: R.Tensor((3, 2), dtype="float32") = R.dequantize(x, R.const(0.5, "float32"), R.const(0, "int8"))
#             b: R.Tensor((2, 3), dtype="float32") = R.dequantize(w, R.const(0.25, "float32"), R.const(0, "int8"))
#             y: R.Tensor((3, 3), dtype="float32") = R.matmul(a, b)
#             R.output(y)
#         return y
