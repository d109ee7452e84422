# A matmul takes bias and activation as its epilogue, and elementwise operators are fused into a sum.
# test opt --passes=LegalizeOps,AnnotateTIROpPattern,FuseOps,EliminateUnused

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
            act = R.nn.relu(biased)
            squared = R.multiply(act, act)
            summed = R.sum(squared, axis=[1])
            scaled = R.multiply(summed, R.const(2.0, "float32"))
            turned = R.permute_dims(R.exp(act))
            R.output(scaled, turned)
        return (scaled, turned)

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
#             act: R.Tensor((n, 5), dtype="float32") = cls.fused_matmul_add_relu(x, w, b)
#             scaled: R.Tensor((n,), dtype="float32") = cls.fused_multiply_sum_multiply1(act)
#             turned: R.Tensor((5, n), dtype="float32") = cls.fused_exp_permute_dims(act)
#             R.output(scaled, turned)
#         return (scaled, turned)
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
#     def relu(var_A: T.handle, var_compute: T.handle):
#         T.func_attr({"tir.noalias": True, "op_pattern": 0})
#         n = T.int64()
#         A = T.match_buffer(var_A, (n, 5), "float32")
#         compute = T.match_buffer(var_compute, (n, 5), "float32")
#         for i0, i1 in T.grid(n, 5):
#             with T.block("compute"):
#                 v_i0, v_i1 = T.axis.remap("SS", [i0, i1])
#                 T.reads(A[v_i0, v_i1])
#                 T.writes(compute[v_i0, v_i1])
#                 compute[v_i0, v_i1] = T.max(A[v_i0, v_i1], T.float32(0.0))
#
#     @T.prim_func(private=True)
#     def multiply(var_A: T.handle, var_B: T.handle, var_T_multiply: T.handle):
#         T.func_attr({"tir.noalias": True, "op_pattern": 0})
#         n = T.int64()
#         A = T.match_buffer(var_A, (n, 5), "float32")
#         B = T.match_buffer(var_B, (n, 5), "float32")
#         T_multiply = T.match_buffer(var_T_multiply, (n, 5), "float32")
#         for ax0, ax1 in T.grid(n, 5):
#             with T.block("T_multiply"):
#                 v_ax0, v_ax1 = T.axis.remap("SS", [ax0, ax1])
#                 T.reads(A[v_ax0, v_ax1], B[v_ax0, v_ax1])
#                 T.writes(T_multiply[v_ax0, v_ax1])
#                 T_multiply[v_ax0, v_ax1] = A[v_ax0, v_ax1] * B[v_ax0, v_ax1]
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
#     def multiply1(var_A: T.handle, var_T_multiply: T.handle):
#         T.func_attr({"tir.noalias": True, "op_pattern": 0})
#         n = T.int64()
#         A = T.match_buffer(var_A, (n,), "float32")
#         T_multiply = T.match_buffer(var_T_multiply, (n,), "float32")
#         for ax0 in range(n):
#             with T.block("T_multiply"):
#                 v_ax0 = T.axis.spatial(n, ax0)
#                 T.reads(A[v_ax0])
#                 T.writes(T_multiply[v_ax0])
#                 T_multiply[v_ax0] = A[v_ax0] * T.float32(2.0)
#
#     @T.prim_func(private=True)
#     def exp(var_A: T.handle, var_compute: T.handle):
#         T.func_attr({"tir.noalias": True, "op_pattern": 0})
#         n = T.int64()
#         A = T.match_buffer(var_A, (n, 5), "float32")
#         compute = T.match_buffer(var_compute, (n, 5), "float32")
#         for i0, i1 in T.grid(n, 5):
#             with T.block("compute"):
#                 v_i0, v_i1 = T.axis.remap("SS", [i0, i1])
#                 T.reads(A[v_i0, v_i1])
#                 T.writes(compute[v_i0, v_i1])
#                 compute[v_i0, v_i1] = T.exp(A[v_i0, v_i1])
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
#     @R.function(private=True)
#     def fused_matmul_add_relu(x: R.Tensor(("n", "m"), dtype="float32"), w: R.Tensor(("m", 5), dtype="float32"), b: R.Tensor((5,), dtype="float32")) -> R.Tensor(("n", 5), dtype="float32"):
#         n = T.int64()
#         m = T.int64()
#         R.func_attr({"Primitive": 1})
#         cls = Module
#         with R.dataflow():
#             product: R.Tensor((n, 5), dtype="float32") = R.call_tir(cls.matmul, (x, w), out_sinfo=R.Tensor((n, 5), dtype="float32"))
#             biased: R.Tensor((n, 5), dtype="float32") = R.call_tir(cls.add, (product, b), out_sinfo=R.Tensor((n, 5), dtype="float32"))
#             act: R.Tensor((n, 5), dtype="float32") = R.call_tir(cls.relu, (biased,), out_sinfo=R.Tensor((n, 5), dtype="float32"))
#             R.output(act)
#         return act
#
#     @R.function(private=True)
#     def fused_multiply_sum_multiply1(act: R.Tensor(("n", 5), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
#         n = T.int64()
#         R.func_attr({"Primitive": 1})
#         cls = Module
#         with R.dataflow():
#             squared: R.Tensor((n, 5), dtype="float32") = R.call_tir(cls.multiply, (act, act), out_sinfo=R.Tensor((n, 5), dtype="float32"))
#             summed: R.Tensor((n,), dtype="float32") = R.call_tir(cls.sum, (squared,), out_sinfo=R.Tensor((n,), dtype="float32"))
#             scaled: R.Tensor((n,), dtype="float32") = R.call_tir(cls.multiply1, (summed,), out_sinfo=R.Tensor((n,), dtype="float32"))
#             R.output(scaled)
#         return scaled
#
#     @R.function(private=True)
#     def fused_exp_permute_dims(act: R.Tensor(("n", 5), dtype="float32")) -> R.Tensor((5, "n"), dtype="float32"):
#         n = T.int64()
#         R.func_attr({"Primitive": 1})
#         cls = Module
#         with R.dataflow():
#             lv: R.Tensor((n, 5), dtype="float32") = R.call_tir(cls.exp, (act,), out_sinfo=R.Tensor((n, 5), dtype="float32"))
#             turned: R.Tensor((5, n), dtype="float32") = R.call_tir(cls.permute_dims, (lv,), out_sinfo=R.Tensor((5, n), dtype="float32"))
#             R.output(turned)
#         return turned
