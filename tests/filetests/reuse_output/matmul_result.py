# The result of a matmul is stored in the output that its epilogue overwrites.
# test opt --passes=LegalizeOps,AnnotateTIROpPattern,FuseOps,FuseTIR,EliminateUnused,InlineInjective,ReuseOutput

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
            R.output(act)
        return act

    @R.function
    def widened(x: R.Tensor(("n", 3), "float32"), w: R.Tensor((3, 5), "float32")) -> R.Object:
        with R.dataflow():
            product = R.matmul(x, w)
            wide = R.astype(product, "float64")
            R.output(wide)
        return wide

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
#             R.output(act)
#         return act
#
#     @R.function
#     def widened(x: R.Tensor(("n", 3), dtype="float32"), w: R.Tensor((3, 5), dtype="float32")) -> R.Object:
#         n = T.int64()
#         cls = Module
#         with R.dataflow():
#             wide: R.Tensor((n, 5), dtype="float64") = R.call_tir(cls.fused_matmul1_astype, (x, w), out_sinfo=R.Tensor((n, 5), dtype="float64"))
#             R.output(wide)
#         return wide
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
#             for i, j, k in T.grid(n, 5, m):
#                 with T.block("matmul"):
#                     v_i, v_j, v_k = T.axis.remap("SSR", [i, j, k])
#                     T.reads(x[v_i, v_k], w[v_k, v_j])
#                     T.writes(act[v_i, v_j])
#                     with T.init():
#                         act[v_i, v_j] = T.float32(0.0)
#                     act[v_i, v_j] = act[v_i, v_j] + x[v_i, v_k] * w[v_k, v_j]
#             for i0, i1 in T.grid(n, 5):
#                 with T.block("compute"):
#                     v_i0, v_i1 = T.axis.remap("SS", [i0, i1])
#                     T.writes(act[v_i0, v_i1])
#                     act[v_i0, v_i1] = T.max(act[v_i0, v_i1] + b[v_i1], T.float32(0.0))
#
#     @T.prim_func(private=True)
#     def fused_matmul1_astype(var_x: T.handle, w: T.Buffer((3, 5), "float32"), var_wide: T.handle):
#         T.func_attr({"tir.noalias": True})
#         n = T.int64()
#         x = T.match_buffer(var_x, (n, 3), "float32")
#         wide = T.match_buffer(var_wide, (n, 5), "float64")
#         with T.block("root"):
#             product = T.alloc_buffer((n, 5), "float32")
#             for i, j, k in T.grid(n, 5, 3):
#                 with T.block("matmul"):
#                     v_i, v_j, v_k = T.axis.remap("SSR", [i, j, k])
#                     T.reads(x[v_i, v_k], w[v_k, v_j])
#                     T.writes(product[v_i, v_j])
#                     with T.init():
#                         product[v_i, v_j] = T.float32(0.0)
#                     product[v_i, v_j] = product[v_i, v_j] + x[v_i, v_k] * w[v_k, v_j]
#             for i0, i1 in T.grid(n, 5):
#                 with T.block("compute"):
#                     v_i0, v_i1 = T.axis.remap("SS", [i0, i1])
#                     T.reads(product[v_i0, v_i1])
#                     T.writes(wide[v_i0, v_i1])
#                     wide[v_i0, v_i1] = T.Cast("float64", product[v_i0, v_i1])
