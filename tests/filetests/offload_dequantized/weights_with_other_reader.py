# The dequantized weights have another reader, for which the float copy is still computed.
# test opt --passes=OffloadDequantized,DeadCodeElimination

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 2), "float32")) -> R.Object:
        with R.dataflow():
            w = R.dequantize(R.const([[1, 2], [3, 4]], "int8"), R.const(0.25, "float32"), R.const(0, "int8"))
            y = R.matmul(x, w)
            z = R.sum(w)
            R.output(y, z)
        return (y, z)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", 2), dtype="float32")) -> R.Object:
#         n = T.int64()
#         with R.dataflow():
#             w: R.Tensor((2, 2), dtype="float32") = R.dequantize(R.const([[1, 2], [3, 4]], "int8"), R.const(0.25, "float32"), R.const(0, "int8"))
#             y: R.Tensor((n, 2), dtype="float32") = R.call_kernel("matmul_int4_weight", x=x, weight=R.const([[[32, 49, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]]], "uint8"), scales=R.const([[[0.25, 0.25, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]]], "float32"), zeros=R.const([[[-1.0, -1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]]], "float32"), group=2, out_sinfo=R.Tensor((n, 2), dtype="float32"))
#             z: R.Tensor((), dtype="float32") = R.sum(w)
#             R.output(y, z)
#         return (y, z)
