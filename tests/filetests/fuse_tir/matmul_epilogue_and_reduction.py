# Each group of calls, such as a matmul and its epilogue, becomes one loop function.
# test opt --passes=LegalizeOps,AnnotateTIROpPattern,FuseOps,FuseTIR,EliminateUnused

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
#             act: R.Tensor((n, 5), dtype="float32") = R.call_tir(cls.fused_matmul_add_relu, (x, w, b), out_sinfo=R.Tensor((n, 5), dtype="float32"))
#             scaled: R.Tensor((n,), dtype="float32") = R.call_tir(cls.fused_multiply_sum_multiply1, (act,), out_sinfo=R.Tensor((n,), dtype="float32"))
#             turned: R.Tensor((5, n), dtype="float32") = R.call_tir(cls.fused_exp_permute_dims, (act,), out_sinfo=R.Tensor((5, n), dtype="float32"))
#             R.output(scaled, turned)
#         return (scaled, turned)
#
#     @T.prim_func(private=True)
#     def fused_matmul_add_relu(var_x: T.handle, var_w: T.handle, b: T.Buffer((5,), "float32"), var_act: T.handle):
#         T.func_attr({"tir.noalias": True})
#         n = T.int64()
#         m = T.int64()
#         x = T.match_buffer(var_x, (n, m), "float32")
#         w = T.match_buffer(var_w, (m, 5), "float32")
#         act = T.match_buffer(var_act, (n, 5), "float32")
#         with T.block("root"):
#             product = T.alloc_buffer((n, 5), "float32")
#             biased = T.alloc_buffer((n, 5), "float32")
#             for i, j, k in T.grid(n, 5, m):
#                 with T.block("matmul"):
#                     v_i, v_j, v_k = T.axis.remap("SSR", [i, j, k])
#                     T.reads(x[v_i, v_k], w[v_k, v_j])
#                     T.writes(product[v_i, v_j])
#                     with T.init():
#                         product[v_i, v_j] = T.float32(0.0)
#                     product[v_i, v_j] = product[v_i, v_j] + x[v_i, v_k] * w[v_k, v_j]
#             for ax0, ax1 in T.grid(n, 5):
#                 with T.block("T_add"):
#                     v_ax0, v_ax1 = T.axis.remap("SS", [ax0, ax1])
#                     T.reads(product[v_ax0, v_ax1], b[v_ax1])
#                     T.writes(biased[v_ax0, v_ax1])
#                     biased[v_ax0, v_ax1] = product[v_ax0, v_ax1] + b[v_ax1]
#             for i0, i1 in T.grid(n, 5):
#                 with T.block("compute"):
#                     v_i0, v_i1 = T.axis.remap("SS", [i0, i1])
#                     T.reads(biased[v_i0, v_i1])
#                     T.writes(act[v_i0, v_i1])
#                     act[v_i0, v_i1] = T.max(biased[v_i0, v_i1], T.float32(0.0))
#
#     @T.prim_func(private=True)
#     def fused_multiply_sum_multiply1(var_act: T.handle, var_scaled: T.handle):
#         T.func_attr({"tir.noalias": True})
#         n = T.int64()
#         act = T.match_buffer(var_act, (n, 5), "float32")
#         scaled = T.match_buffer(var_scaled, (n,), "float32")
#         with T.block("root"):
#             squared = T.alloc_buffer((n, 5), "float32")
#             summed = T.alloc_buffer((n,), "float32")
#             for ax0, ax1 in T.grid(n, 5):
#                 with T.block("T_multiply"):
#                     v_ax0, v_ax1 = T.axis.remap("SS", [ax0, ax1])
#                     T.reads(act[v_ax0, v_ax1], act[v_ax0, v_ax1])
#                     T.writes(squared[v_ax0, v_ax1])
#                     squared[v_ax0, v_ax1] = act[v_ax0, v_ax1] * act[v_ax0, v_ax1]
#             for ax0, k1 in T.grid(n, 5):
#                 with T.block("T_sum"):
#                     v_ax0, v_k1 = T.axis.remap("SR", [ax0, k1])
#                     T.reads(squared[v_ax0, v_k1])
#                     T.writes(summed[v_ax0])
#                     with T.init():
#                         summed[v_ax0] = T.float32(0.0)
#                     summed[v_ax0] = summed[v_ax0] + squared[v_ax0, v_k1]
#             for ax0 in range(n):
#                 with T.block("T_multiply_1"):
#                     v_ax0 = T.axis.spatial(n, ax0)
#                     T.reads(summed[v_ax0])
#                     T.writes(scaled[v_ax0])
#                     scaled[v_ax0] = summed[v_ax0] * T.float32(2.0)
#
#     @T.prim_func(private=True)
#     def fused_exp_permute_dims(var_act: T.handle, var_turned: T.handle):
#         T.func_attr({"tir.noalias": True})
#         n = T.int64()
#         act = T.match_buffer(var_act, (n, 5), "float32")
#         turned = T.match_buffer(var_turned, (5, n), "float32")
#         with T.block("root"):
#             lv = T.alloc_buffer((n, 5), "float32")
#             for i0, i1 in T.grid(n, 5):
#                 with T.block("compute"):
#                     v_i0, v_i1 = T.axis.remap("SS", [i0, i1])
#                     T.reads(act[v_i0, v_i1])
#                     T.writes(lv[v_i0, v_i1])
#                     lv[v_i0, v_i1] = T.exp(act[v_i0, v_i1])
#             for ax0, ax1 in T.grid(5, n):
#                 with T.block("T_transpose"):
#                     v_ax0, v_ax1 = T.axis.remap("SS", [ax0, ax1])
#                     T.reads(lv[v_ax1, v_ax0])
#                     T.writes(turned[v_ax0, v_ax1])
#                     turned[v_ax0, v_ax1] = lv[v_ax1, v_ax0]
