# The dequantized input has another reader, for which it is still computed.
# test opt --passes=OffloadDequantized

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 2), "uint8")) -> R.Object:
        with R.dataflow():
            a = R.dequantize(x, R.const(0.5, "float32"), R.const(1, "uint8"))
            b = R.dequantize(R.const([[1, 2], [3, 4]], "int8"), R.const(0.25, "float32"), R.const(0, "int8"))
            y = R.matmul(a, b)
            z = R.exp(a)
            R.output(y, z)
        return (y, z)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", 2), dtype="uint8")) -> R.Object:
#         n = T.int64()
#         with R.dataflow():
#             a: R.Tensor((n, 2), dtype="float32") = R.dequantize(x, R.const(0.5, "float32"), R.const(1, "uint8"))
#             b: R.Tensor((2, 2), dtype="float32") = R.dequantize(R.const([[1, 2], [3, 4]], "int8"), R.const(0.25, "float32"), R.const(0, "int8"))
#             lv: R.Tensor((n, 2), dtype="int32") = R.astype(x, dtype="int32")
#             lv1: R.Tensor((n, 2), dtype="int32") = R.subtract(lv, R.const(1, "int32"))
#             lv2: R.Tensor((n, 2), dtype="int32") = R.matmul(lv1, R.const([[1, 2], [3, 4]], "int32"))
#             lv3: R.Tensor((n, 2), dtype="float32") = R.astype(lv2, dtype="float32")
#             lv4: R.Tensor((n, 2), dtype="float32") = R.multiply(lv3, R.const(0.5, "float32"))
#             y: R.Tensor((n, 2), dtype="float32") = R.multiply(lv4, R.const([0.25, 0.25], "float32"))
#             z: R.Tensor((n, 2), dtype="float32") = R.exp(a)
#             R.output(y, z)
#         return (y, z)
