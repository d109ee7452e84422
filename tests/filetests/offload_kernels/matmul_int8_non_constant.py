# A kernel packs a non-constant right operand of 8 bits; 128 is subtracted from uint8 values and their zero points.
# test opt --passes=OffloadKernels

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(
        x: R.Tensor(("m", "k"), "int8"), w: R.Tensor(("k", "n"), "uint8"), z: R.Tensor(("n",), "int32")
    ) -> R.Tensor(("m", "n"), "int32"):
        m, k, n = T.int64(), T.int64(), T.int64()
        with R.dataflow():
            a = R.astype(x, "int32")
            b = R.astype(w, "int32")
            c = R.subtract(b, z)
            y = R.matmul(a, c)
            R.output(y)
        return y

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("m", "k"), dtype="int8"), w: R.Tensor(("k", "n"), dtype="uint8"), z: R.Tensor(("n",), dtype="int32")) -> R.Tensor(("m", "n"), dtype="int32"):
#         m = T.int64()
#         k = T.int64()
#         n = T.int64()
#         cls = Module
#         with R.dataflow():
#             a: R.Tensor((m, k), dtype="int32") = R.astype(x, dtype="int32")
#             b: R.Tensor((k, n), dtype="int32") = R.astype(w, dtype="int32")
#             c: R.Tensor((k, n), dtype="int32") = R.subtract(b, z)
#             lv: R.Tuple(R.Tensor(((n + 63) // 64, (k + 3) // 4, 64, 4), dtype="int8"), R.Tensor((n,), dtype="int32")) = R.call_kernel("pack_int8", x=w, out_sinfo=[R.Tensor(((n + 63) // 64, (k + 3) // 4, 64, 4), dtype="int8"), R.Tensor((n,), dtype="int32")])
#             lv1: R.Tensor(((n + 63) // 64, (k + 3) // 4, 64, 4), dtype="int8") = lv[0]
#             lv2: R.Tensor((n,), dtype="int32") = lv[1]
#             lv3: R.Tensor((n,), dtype="int32") = R.subtract(z, R.const(128, "int32"))
#             lv4: R.Tensor((n,), dtype="int32") = R.reshape(lv3, R.shape([n]))
#             y: R.Tensor((m, n), dtype="int32") = R.call_tir(cls.matmul_int8, (x, lv1, lv2, lv4), out_sinfo=R.Tensor((m, n), dtype="int32"))
#             R.output(y)
#         return y
#
#     @T.prim_func(private=True)
#     def matmul_int8(var_A: T.handle, var_B: T.handle, var_C: T.handle, var_D: T.handle, var_matmul_int8: T.handle):
#         T.func_attr({"tir.noalias": True})
#         m = T.int64()
#         k = T.int64()
#         n = T.int64()
#         A = T.match_buffer(var_A, (m, k), "int8")
#         B = T.match_buffer(var_B, ((n + 63) // 64, (k + 3) // 4, 64, 4), "int8")
#         C = T.match_buffer(var_C, (n,), "int32")
#         D = T.match_buffer(var_D, (n,), "int32")
#         matmul_int8 = T.match_buffer(var_matmul_int8, (m, n), "int32")
#         with T.block("matmul_int8"):
#             T.evaluate(T.call_kernel("matmul_int8", x=A, weight=B, column_sums=C, weight_zeros=D, out=matmul_int8))
