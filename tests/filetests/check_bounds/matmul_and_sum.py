# The loops of operators access only elements inside of their buffers and get no assertions.
# test opt --passes=LegalizeOps,InlineInjective,CheckBounds

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", "m"), "float32"), w: R.Tensor(("m", 6), "float32")) -> R.Object:
        with R.dataflow():
            y = R.matmul(x, w)
            z = R.nn.relu(y)
            s = R.sum(R.exp(x), axis=[1])
            R.output(z, s)
        return (z, s)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", "m"), dtype="float32"), w: R.Tensor(("m", 6), dtype="float32")) -> R.Object:
#         n = T.int64()
#         m = T.int64()
#         cls = Module
#         with R.dataflow():
#             y: R.Tensor((n, 6), dtype="float32") = R.call_tir(cls.matmul, (x, w), out_sinfo=R.Tensor((n, 6), dtype="float32"))
#             z: R.Tensor((n, 6), dtype="float32") = R.call_tir(cls.relu, (y,), out_sinfo=R.Tensor((n, 6), dtype="float32"))
#             lv: R.Tensor((n, m), dtype="float32") = R.call_tir(cls.exp, (x,), out_sinfo=R.Tensor((n, m), dtype="float32"))
#             s: R.Tensor((n,), dtype="float32") = R.call_tir(cls.sum, (lv,), out_sinfo=R.Tensor((n,), dtype="float32"))
#             R.output(z, s)
#         return (z, s)
#
#     @T.prim_func(private=True)
#     def matmul(var_A: T.handle, var_B: T.handle, var_matmul: T.handle):
#         T.func_attr({"tir.noalias": True})
#         n = T.int64()
#         m = T.int64()
#         A = T.match_buffer(var_A, (n, m), "float32")
#         B = T.match_buffer(var_B, (m, 6), "float32")
#         matmul = T.match_buffer(var_matmul, (n, 6), "float32")
#         for i, j, k in T.grid(n, 6, m):
#             with T.block("matmul"):
#                 v_i, v_j, v_k = T.axis.remap("SSR", [i, j, k])
#                 T.reads(A[v_i, v_k], B[v_k, v_j])
#                 T.writes(matmul[v_i, v_j])
#                 with T.init():
#                     matmul[v_i, v_j] = T.float32(0.0)
#                 matmul[v_i, v_j] = matmul[v_i, v_j] + A[v_i, v_k] * B[v_k, v_j]
#
#     @T.prim_func(private=True)
#     def relu(var_A: T.handle, var_compute: T.handle):
#         T.func_attr({"tir.noalias": True})
#         n = T.int64()
#         A = T.match_buffer(var_A, (n, 6), "float32")
#         compute = T.match_buffer(var_compute, (n, 6), "float32")
#         for i0, i1 in T.grid(n, 6):
#             with T.block("compute"):
#                 v_i0, v_i1 = T.axis.remap("SS", [i0, i1])
#                 T.reads(A[v_i0, v_i1])
#                 T.writes(compute[v_i0, v_i1])
#                 compute[v_i0, v_i1] = T.max(A[v_i0, v_i1], T.float32(0.0))
#
#     @T.prim_func(private=True)
#     def exp(var_A: T.handle, var_compute: T.handle):
#         T.func_attr({"tir.noalias": True})
#         n = T.int64()
#         m = T.int64()
#         A = T.match_buffer(var_A, (n, m), "float32")
#         compute = T.match_buffer(var_compute, (n, m), "float32")
#         for i0, i1 in T.grid(n, m):
#             with T.block("compute"):
#                 v_i0, v_i1 = T.axis.remap("SS", [i0, i1])
#                 T.reads(A[v_i0, v_i1])
#                 T.writes(compute[v_i0, v_i1])
#                 compute[v_i0, v_i1] = T.exp(A[v_i0, v_i1])
#
#     @T.prim_func(private=True)
#     def sum(var_A: T.handle, var_T_sum: T.handle):
#         T.func_attr({"tir.noalias": True})
#         n = T.int64()
#         m = T.int64()
#         A = T.match_buffer(var_A, (n, m), "float32")
#         T_sum = T.match_buffer(var_T_sum, (n,), "float32")
#         for ax0, k1 in T.grid(n, m):
#             with T.block("T_sum"):
#                 v_ax0, v_k1 = T.axis.remap("SR", [ax0, k1])
#                 T.reads(A[v_ax0, v_k1])
#                 T.writes(T_sum[v_ax0])
#                 with T.init():
#                     T_sum[v_ax0] = T.float32(0.0)
#                 T_sum[v_ax0] = T_sum[v_ax0] + A[v_ax0, v_k1]
