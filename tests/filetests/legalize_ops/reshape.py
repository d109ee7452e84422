# A reshape stays a view; a transpose and a concatenation become loop functions.
# test opt --passes=LegalizeOps

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 2, 3), "float32")) -> R.Object:
        n = T.int64()
        with R.dataflow():
            a = R.reshape(x, R.shape([n * 2, 3]))
            b = R.permute_dims(a, axes=[1, 0])
            c = R.concat((b, b), axis=1)
            R.output(c)
        return c

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", 2, 3), dtype="float32")) -> R.Object:
#         n = T.int64()
#         cls = Module
#         with R.dataflow():
#             a: R.Tensor((n * 2, 3), dtype="float32") = R.reshape(x, R.shape([n * 2, 3]))
#             b: R.Tensor((3, n * 2), dtype="float32") = R.call_tir(cls.permute_dims, (a,), out_sinfo=R.Tensor((3, n * 2), dtype="float32"), tir_vars=R.shape([n]))
#             c: R.Tensor((3, n * 4), dtype="float32") = R.call_tir(cls.concat, (b, b), out_sinfo=R.Tensor((3, n * 4), dtype="float32"), tir_vars=R.shape([n]))
#             R.output(c)
#         return c
#
#     @T.prim_func(private=True)
#     def permute_dims(var_A: T.handle, var_T_transpose: T.handle, n: T.int64):
#         T.func_attr({"tir.noalias": True})
#         A = T.match_buffer(var_A, (n * 2, 3), "float32")
#         T_transpose = T.match_buffer(var_T_transpose, (3, n * 2), "float32")
#         for ax0, ax1 in T.grid(3, n * 2):
#             with T.block("T_transpose"):
#                 v_ax0, v_ax1 = T.axis.remap("SS", [ax0, ax1])
#                 T.reads(A[v_ax1, v_ax0])
#                 T.writes(T_transpose[v_ax0, v_ax1])
#                 T_transpose[v_ax0, v_ax1] = A[v_ax1, v_ax0]
#
#     @T.prim_func(private=True)
#     def concat(var_A: T.handle, var_B: T.handle, var_T_concat: T.handle, n: T.int64):
#         T.func_attr({"tir.noalias": True})
#         A = T.match_buffer(var_A, (3, n * 2), "float32")
#         B = T.match_buffer(var_B, (3, n * 2), "float32")
#         T_concat = T.match_buffer(var_T_concat, (3, n * 4), "float32")
#         for ax0, ax1 in T.grid(3, n * 4):
#             with T.block("T_concat"):
#                 v_ax0, v_ax1 = T.axis.remap("SS", [ax0, ax1])
#                 T.reads(A[v_ax0, v_ax1], B[v_ax0, v_ax1 - n * 2])
#                 T.writes(T_concat[v_ax0, v_ax1])
#                 T_concat[v_ax0, v_ax1] = T.if_then_else(v_ax1 < n * 2, A[v_ax0, v_ax1], B[v_ax0, v_ax1 - n * 2])
