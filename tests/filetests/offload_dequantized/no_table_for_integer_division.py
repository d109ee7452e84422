# A function that divides integers has no table, because the division fails for an argument that the input may not contain.
# test opt --passes=OffloadDequantized

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((3,), "uint8")) -> R.Object:
        with R.dataflow():
            a = R.astype(x, "int32")
            b = R.maximum(a, R.const(1, "int32"))
            c = R.floor_divide(R.const(1000, "int32"), b)
            d = R.minimum(c, R.const(255, "int32"))
            y = R.astype(d, "uint8")
            R.output(y)
        return y

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor((3,), dtype="uint8")) -> R.Object:
#         with R.dataflow():
#             a: R.Tensor((3,), dtype="int32") = R.astype(x, dtype="int32")
#             b: R.Tensor((3,), dtype="int32") = R.maximum(a, R.const(1, "int32"))
#             c: R.Tensor((3,), dtype="int32") = R.floor_divide(R.const(1000, "int32"), b)
#             d: R.Tensor((3,), dtype="int32") = R.minimum(c, R.const(255, "int32"))
#             y: R.Tensor((3,), dtype="uint8") = R.astype(d, dtype="uint8")
#             R.output(y)
#         return y
