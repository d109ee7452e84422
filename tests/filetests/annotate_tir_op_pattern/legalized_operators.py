# The patterns of loop functions that operators are lowered to: products, broadcasts, transposes, sums and softmax.
# test opt --passes=LegalizeOps,AnnotateTIROpPattern

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(
        x: R.Tensor(("n", "m"), "float32"), w: R.Tensor(("m", 5), "float32"), b: R.Tensor((5,), "float32")
    ) -> R.Object:
        with R.dataflow():
            product = R.matmul(x, w)
            biased = R.add(product, b)
            turned = R.permute_dims(biased)
            summed = R.sum(biased, axis=[1])
            soft = R.nn.softmax(biased, axis=-1)
            R.output(turned, summed, soft)
        return (turned, summed, soft)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", "m"), dtype="float32"), w: R.Tensor(("m", 5), dtype="float32"), b: R.Tensor((5,), dtype="float32")) -> R.Object:
#         n = T.int64()
#         m = T.int64()
#         cls = Module
#         with R.dataflow():
#             product: R.Tensor((n, 5), dtype="float32") = R.call_tir(cls.matmul, (x, w), out_sinfo=R.Tensor((n, 5), dtype="float32"))
#             biased: R.Tensor((n, 5), dtype="float32") = R.call_tir(cls.add, (product, b), out_sinfo=R.Tensor((n, 5), dtype="float32"))
#             turned: R.Tensor((5, n), dtype="float32") = R.call_tir(cls.permute_dims, (biased,), out_sinfo=R.Tensor((5, n), dtype="float32"))
#             summed: R.Tensor((n,), dtype="float32") = R.call_tir(cls.sum, (biased,), out_sinfo=R.Tensor((n,), dtype="float32"))
#             soft: R.Tensor((n, 5), dtype="float32") = R.call_tir(cls.softmax, (biased,), out_sinfo=R.Tensor((n, 5), dtype="float32"))
#             R.output(turned, summed, soft)
#         return (turned, summed, soft)
#
#     @T.prim_func(private=True)
#     def matmul(var_A: T.handle, var_B: T.handle, var_matmul: T.handle):
#         T.func_attr({"tir.noalias": True, "op_pattern": 4})
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
#     def add(var_A: T.handle, B: T.Buffer((5,), "float32"), var_T_add: T.handle):
#         T.func_attr({"tir.noalias": True, "op_pattern": 0})
#         n = T.int64()
#         A = T.match_buffer(var_A, (n, 5), "float32")
#         T_add = T.match_buffer(var_T_add, (n, 5), "float32")
#         for ax0, ax1 in T.grid(n, 5):
#             with T.block("T_add"):
#                 v_ax0, v_ax1 = T.axis.remap("SS", [ax0, ax1])
#                 T.reads(A[v_ax0, v_ax1], B[v_ax1])
#                 T.writes(T_add[v_ax0, v_ax1])
#                 T_add[v_ax0, v_ax1] = A[v_ax0, v_ax1] + B[v_ax1]
#
#     @T.prim_func(private=True)
#     def permute_dims(var_A: T.handle, var_T_transpose: T.handle):
#         T.func_attr({"tir.noalias": True, "op_pattern": 2})
#         n = T.int64()
#         A = T.match_buffer(var_A, (n, 5), "float32")
#         T_transpose = T.match_buffer(var_T_transpose, (5, n), "float32")
#         for ax0, ax1 in T.grid(5, n):
#             with T.block("T_transpose"):
#                 v_ax0, v_ax1 = T.axis.remap("SS", [ax0, ax1])
#                 T.reads(A[v_ax1, v_ax0])
#                 T.writes(T_transpose[v_ax0, v_ax1])
#                 T_transpose[v_ax0, v_ax1] = A[v_ax1, v_ax0]
#
#     @T.prim_func(private=True)
#     def sum(var_A: T.handle, var_T_sum: T.handle):
#         T.func_attr({"tir.noalias": True, "op_pattern": 3})
#         n = T.int64()
#         A = T.match_buffer(var_A, (n, 5), "float32")
#         T_sum = T.match_buffer(var_T_sum, (n,), "float32")
#         for ax0, k1 in T.grid(n, 5):
#             with T.block("T_sum"):
#                 v_ax0, v_k1 = T.axis.remap("SR", [ax0, k1])
#                 T.reads(A[v_ax0, v_k1])
#                 T.writes(T_sum[v_ax0])
#                 with T.init():
#                     T_sum[v_ax0] = T.float32(0.0)
#                 T_sum[v_ax0] = T_sum[v_ax0] + A[v_ax0, v_k1]
#
#     @T.prim_func(private=True)
#     def softmax(var_A: T.handle, var_T_softmax_norm: T.handle):
#         T.func_attr({"tir.noalias": True, "op_pattern": 4})
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
