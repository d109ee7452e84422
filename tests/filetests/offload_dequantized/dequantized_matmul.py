# Matmuls by dequantized constants become weight-only kernel calls if the integers fit 8 bits.
# test opt --passes=OffloadDequantized

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def bytes(x: R.Tensor(("n", 2), "float32")) -> R.Object:
        with R.dataflow():
            w = R.astype(R.const([[1, -2, 30], [4, 5, -6]], "int8"), "float32")
            s = R.multiply(w, R.const([0.5, 2.0, 1.0], "float32"))
            y = R.matmul(x, s)
            R.output(y)
        return y

    @R.function
    def halves(x: R.Tensor(("n", "m", 2), "float32")) -> R.Object:
        with R.dataflow():
            w = R.dequantize(R.const([[1, 7], [2, 8], [3, 9]], "uint8"), R.const(0.5, "float32"), R.const(8, "uint8"))
            t = R.permute_dims(w)
            y = R.matmul(x, t)
            R.output(y)
        return y

    @R.function
    def wide(x: R.Tensor(("n", 2), "float32")) -> R.Object:
        with R.dataflow():
            w = R.astype(R.const([[1, 2], [3, 400]], "int32"), "float32")
            s = R.multiply(w, R.const(0.5, "float32"))
            y = R.matmul(x, s)
            R.output(y)
        return y

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# metadata = {
#     "relax.expr.Constant": [
#         I.tensor((1, 2, 16), "int8", [[[1, -2, 30, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], [4, 5, -6, 0,
#             0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]]]),
#     ]
# }
#
# @I.ir_module
# class Module:
#     @R.function
#     def bytes(x: R.Tensor(("n", 2), dtype="float32")) -> R.Object:
#         n = T.int64()
#         with R.dataflow():
#             w: R.Tensor((2, 3), dtype="float32") = R.astype(R.const([[1, -2, 30], [4, 5, -6]], "int8"), dtype="float32")
#             s: R.Tensor((2, 3), dtype="float32") = R.multiply(w, R.const([0.5, 2.0, 1.0], "float32"))
#             y: R.Tensor((n, 3), dtype="float32") = R.call_kernel("matmul_int8_weight", x=x, weight=metadata["relax.expr.Constant"][0], scales=R.const([[[0.5, 2.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]]], "float32"), group=2, out_sinfo=R.Tensor((n, 3), dtype="float32"))
#             R.output(y)
#         return y
#
#     @R.function
#     def halves(x: R.Tensor(("n", "m", 2), dtype="float32")) -> R.Object:
#         n = T.int64()
#         m = T.int64()
#         with R.dataflow():
#             w: R.Tensor((3, 2), dtype="float32") = R.dequantize(R.const([[1, 7], [2, 8], [3, 9]], "uint8"), R.const(0.5, "float32"), R.const(8, "uint8"))
#             t: R.Tensor((2, 3), dtype="float32") = R.permute_dims(w)
#             y: R.Tensor((n, m, 3), dtype="float32") = R.call_kernel("matmul_int4_weight", x=x, weight=R.const([[[96, 113, 130, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]]], "uint8"), scales=R.const([[[0.5, 0.5, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]]], "float32"), zeros=R.const([[[7.0, 7.0, 7.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]]], "float32"), group=2, out_sinfo=R.Tensor((n, m, 3), dtype="float32"))
#             R.output(y)
#         return y
#
#     @R.function
#     def wide(x: R.Tensor(("n", 2), dtype="float32")) -> R.Object:
#         n = T.int64()
#         with R.dataflow():
#             w: R.Tensor((2, 2), dtype="float32") = R.astype(R.const([[1, 2], [3, 400]], "int32"), dtype="float32")
#             s: R.Tensor((2, 2), dtype="float32") = R.multiply(w, R.const(0.5, "float32"))
#             y: R.Tensor((n, 2), dtype="float32") = R.matmul(x, s)
#             R.output(y)
#         return y
