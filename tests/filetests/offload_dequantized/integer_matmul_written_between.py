# The quantized input is overwritten after it was dequantized, so the product must not read it later.
# test opt --passes=OffloadDequantized

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def increase(A: T.Buffer((2, 2), "int8")):
        for i, j in T.grid(2, 2):
            with T.block("increase"):
                vi, vj = T.axis.remap("SS", [i, j])
                A[vi, vj] = A[vi, vj] + T.int8(1)

    @R.function
    def main(x: R.Tensor((2, 2), "int8")) -> R.Object:
        cls = Module
        with R.dataflow():
            q = R.add(x, R.const(1, "int8"))
            a = R.dequantize(q, R.const(0.5, "float32"), R.const(0, "int8"))
            c = R.call_tir_inplace(cls.increase, (q,), inplace_indices=[0], out_sinfo=R.Tensor((2, 2), "int8"))
            w = R.dequantize(R.const([[1, 2], [3, 4]], "int8"), R.const(0.25, "float32"), R.const(0, "int8"))
            y = R.matmul(a, w)
            R.output(c, y)
        return (c, y)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func(private=True)
#     def increase(A: T.Buffer((2, 2), "int8")):
#         for i, j in T.grid(2, 2):
#             with T.block("increase"):
#                 vi, vj = T.axis.remap("SS", [i, j])
#                 A[vi, vj] = A[vi, vj] + T.int8(1)
#
#     @R.function
#     def main(x: R.Tensor((2, 2), dtype="int8")) -> R.Object:
#         cls = Module
#         with R.dataflow():
#             q: R.Tensor((2, 2), dtype="int8") = R.add(x, R.const(1, "int8"))
#             a: R.Tensor((2, 2), dtype="float32") = R.dequantize(q, R.const(0.5, "float32"), R.const(0, "int8"))
#             c: R.Tensor((2, 2), dtype="int8") = R.call_tir_inplace(cls.increase, (q,), out_sinfo=R.Tensor((2, 2), dtype="int8"), inplace_indices=[0])
#             w: R.Tensor((2, 2), dtype="float32") = R.dequantize(R.const([[1, 2], [3, 4]], "int8"), R.const(0.25, "float32"), R.const(0, "int8"))
#             y: R.Tensor((2, 2), dtype="float32") = R.call_kernel("matmul_int4_weight", x=a, weight=R.const([[[32, 49, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]]], "uint8"), scales=R.const([[[0.25, 0.25, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]]], "float32"), zeros=R.const([[[-1.0, -1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]]], "float32"), group=2, out_sinfo=R.Tensor((2, 2), dtype="float32"))
#             R.output(c, y)
#         return (c, y)
