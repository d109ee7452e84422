# A matmul, a sum and a softmax become loop functions.
# test opt --passes=LegalizeOps

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", "m"), "float32"), w: R.Tensor(("m", 5), "float32")) -> R.Object:
        with R.dataflow():
            a = R.matmul(x, w)
            b = R.sum(a, axis=[1], keepdims=True)
            c = R.nn.softmax(a, axis=-1)
            R.output(b, c)
        return (b, c)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", "m"), dtype="float32"), w: R.Tensor(("m", 5), dtype="float32")) -> R.Object:
#         n = T.int64()
#         m = T.int64()
#         cls = Module
#         with R.dataflow():
#             a: R.Tensor((n, 5), dtype="float32") = R.call_tir(cls.matmul, (x, w), out_sinfo=R.Tensor((n, 5), dtype="float32"))
#             b: R.Tensor((n, 1), dtype="float32") = R.call_tir(cls.sum, (a,), out_sinfo=R.Tensor((n, 1), dtype="float32"))
#             c: R.Tensor((n, 5), dtype="float32") = R.call_tir(cls.softmax, (a,), out_sinfo=R.Tensor((n, 5), dtype="float32"))
#             R.output(b, c)
#         return (b, c)
#
#     @T.prim_func(private=True)
#     def matmul(var_A: T.handle, var_B: T.handle, var_matmul: T.handle):
#         T.func_attr({"tir.noalias": True})
#         n = T.int64()
#         m = T.int64()
#         A = T.match_buffer(var_A, (n, m), "float32")
#         B = T.match_buffer(var_B, (m, 5), "float32")
#         matmul = T.match_buffer(var_matmul, (n, 5), "float32")
#         for i, j, k in T.grid(n, 5, m):
#             with T.block("matmul"):
#                 v_i, v_j, v_k = T.axis.remap("SSR", [i, j, k])
#                 T.reads(A[v_i, v_k], B[v_k, v_j])
#                 T.writes(matmul[v_i, v_j])
#                 with T.init():
#                     matmul[v_i, v_j] = T.float32(0.0)
#                 matmul[v_i, v_j] = matmul[v_i, v_j] + A[v_i, v_k] * B[v_k, v_j]
#
#     @T.prim_func(private=True)
#     def sum(var_A: T.handle, var_T_sum: T.handle):
#         T.func_attr({"tir.noalias": True})
#         n = T.int64()
#         A = T.match_buffer(var_A, (n, 5), "float32")
#         T_sum = T.match_buffer(var_T_sum, (n, 1), "float32")
#         for ax0, ax1, k1 in T.grid(n, 1, 5):
#             with T.block("T_sum"):
#                 v_ax0, v_ax1, v_k1 = T.axis.remap("SSR", [ax0, ax1, k1])
#                 T.reads(A[v_ax0, v_k1])
#                 T.writes(T_sum[v_ax0, v_ax1])
#                 with T.init():
#                     T_sum[v_ax0, v_ax1] = T.float32(0.0)
#                 T_sum[v_ax0, v_ax1] = T_sum[v_ax0, v_ax1] + A[v_ax0, v_k1]
#
#     @T.prim_func(private=True)
#     def softmax(var_A: T.handle, var_T_softmax_norm: T.handle):
#         T.func_attr({"tir.noalias": True})
#         n = T.int64()
#         A = T.match_buffer(var_A, (n, 5), "float32")
#         T_softmax_norm = T.match_buffer(var_T_softmax_norm, (n, 5), "float32")
#         with T.block("root"):
#             T_softmax_maxelem = T.alloc_buffer((n,), "float32")
#             T_softmax_exp = T.alloc_buffer((n, 5), "float32")
#             T_softmax_expsum = T.alloc_buffer((n,), "float32")
#             for ax0, k1 in T.grid(n, 5):
#                 with T.block("T_softmax_maxelem"):
#                     v_ax0, v_k1 = T.axis.remap("SR", [ax0, k1])
#                     T.reads(A[v_ax0, v_k1])
#                     T.writes(T_softmax_maxelem[v_ax0])
#                     with T.init():
#                         T_softmax_maxelem[v_ax0] = T.float32("-inf")
#                     T_softmax_maxelem[v_ax0] = T.max(T_softmax_maxelem[v_ax0], A[v_ax0, v_k1])
#             for ax0, ax1 in T.grid(n, 5):
#                 with T.block("T_softmax_exp"):
#                     v_ax0, v_ax1 = T.axis.remap("SS", [ax0, ax1])
#                     T.reads(A[v_ax0, v_ax1], T_softmax_maxelem[v_ax0])
#                     T.writes(T_softmax_exp[v_ax0, v_ax1])
#                     T_softmax_exp[v_ax0, v_ax1] = T.exp(A[v_ax0, v_ax1] - T_softmax_maxelem[v_ax0])
#             for ax0, k1 in T.grid(n, 5):
#                 with T.block("T_softmax_expsum"):
#                     v_ax0, v_k1 = T.axis.remap("SR", [ax0, k1])
#                     T.reads(T_softmax_exp[v_ax0, v_k1])
#                     T.writes(T_softmax_expsum[v_ax0])
#                     with T.init():
#                         T_softmax_expsum[v_ax0] = T.float32(0.0)
#                     T_softmax_expsum[v_ax0] = T_softmax_expsum[v_ax0] + T_softmax_exp[v_ax0, v_k1]
#             for ax0, ax1 in T.grid(n, 5):
#                 with T.block("T_softmax_norm"):
#                     v_ax0, v_ax1 = T.axis.remap("SS", [ax0, ax1])
#                     T.reads(T_softmax_exp[v_ax0, v_ax1], T_softmax_expsum[v_ax0])
#                     T.writes(T_softmax_norm[v_ax0, v_ax1])
#                     T_softmax_norm[v_ax0, v_ax1] = T_softmax_exp[v_ax0, v_ax1] / T_softmax_expsum[v_ax0]
