# Only matrix products are stored in the output: the sum, which a loop computes, keeps its own buffer.
# test opt --passes=LegalizeOps,AnnotateTIROpPattern,FuseOps,FuseTIR,EliminateUnused,InlineInjective,ReuseOutput

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n",), "float32"):
        with R.dataflow():
            a = R.sum(x, axis=[1])
            b = R.sqrt(R.abs(a))
            R.output(b)
        return b

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", 4), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
#         n = T.int64()
#         cls = Module
#         with R.dataflow():
#             b: R.Tensor((n,), dtype="float32") = R.call_tir(cls.fused_sum_abs_sqrt, (x,), out_sinfo=R.Tensor((n,), dtype="float32"))
#             R.output(b)
#         return b
#
#     @T.prim_func(private=True)
#     def fused_sum_abs_sqrt(var_x: T.handle, var_b: T.handle):
#         T.func_attr({"tir.noalias": True})
#         n = T.int64()
#         x = T.match_buffer(var_x, (n, 4), "float32")
#         b = T.match_buffer(var_b, (n,), "float32")
#         with T.block("root"):
#             a = T.alloc_buffer((n,), "float32")
#             for ax0, k1 in T.grid(n, 4):
#                 with T.block("T_sum"):
#                     v_ax0, v_k1 = T.axis.remap("SR", [ax0, k1])
#                     T.reads(x[v_ax0, v_k1])
#                     T.writes(a[v_ax0])
#                     with T.init():
#                         a[v_ax0] = T.float32(0.0)
#                     a[v_ax0] = a[v_ax0] + x[v_ax0, v_k1]
#             for i0 in range(n):
#                 with T.block("compute_1"):
#                     v_i0 = T.axis.spatial(n, i0)
#                     T.writes(b[v_i0])
#                     b[v_i0] = T.sqrt(T.abs(a[v_i0]))
