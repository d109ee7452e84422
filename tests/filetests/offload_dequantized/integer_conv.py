# A convolution with one scale per filter: the sums are multiplied by the input's scale and the scale of their filter.
# test opt --passes=OffloadDequantized

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 1, 2, 2), "uint8")) -> R.Object:
        with R.dataflow():
            a = R.dequantize(x, R.const(0.5, "float32"), R.const(2, "uint8"))
            b = R.dequantize(R.const([[[[1]]], [[[-2]]]], "int8"), R.const([0.25, 2.0], "float32"), R.const([0, 0], "int8"), axis=0)
            y = R.nn.conv2d(a, b)
            R.output(y)
        return y

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", 1, 2, 2), dtype="uint8")) -> R.Object:
#         n = T.int64()
#         with R.dataflow():
#             a: R.Tensor((n, 1, 2, 2), dtype="float32") = R.dequantize(x, R.const(0.5, "float32"), R.const(2, "uint8"))
#             b: R.Tensor((2, 1, 1, 1), dtype="float32") = R.dequantize(R.const([[[[1]]], [[[-2]]]], "int8"), R.const([0.25, 2.0], "float32"), R.const([0, 0], "int8"), axis=0)
#             lv: R.Tensor((n, 1, 2, 2), dtype="int32") = R.astype(x, dtype="int32")
#             lv1: R.Tensor((n, 1, 2, 2), dtype="int32") = R.subtract(lv, R.const(2, "int32"))
#             lv2: R.Tensor((n, 2, 2, 2), dtype="int32") = R.nn.conv2d(lv1, R.const([[[[1]]], [[[-2]]]], "int32"), out_dtype="int32")
#             lv3: R.Tensor((n, 2, 2, 2), dtype="float32") = R.astype(lv2, dtype="float32")
#             lv4: R.Tensor((n, 2, 2, 2), dtype="float32") = R.multiply(lv3, R.const(0.5, "float32"))
#             y: R.Tensor((n, 2, 2, 2), dtype="float32") = R.multiply(lv4, R.const([[[[0.25]], [[2.0]]]], "float32"))
#             R.output(y)
#         return y
