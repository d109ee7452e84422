# A stage is inlined into the sum that reads it; the sum is not inlined into what reads it.
# test opt --passes=LegalizeOps,AnnotateTIROpPattern,FuseOps,FuseTIR,EliminateUnused,InlineInjective

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n",), "float32"):
        with R.dataflow():
            a = R.multiply(x, x)
            b = R.sum(a, axis=[1])
            c = R.sqrt(b)
            R.output(c)
        return c

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
#             c: R.Tensor((n,), dtype="float32") = R.call_tir(cls.fused_multiply_sum_sqrt, (x,), out_sinfo=R.Tensor((n,), dtype="float32"))
#             R.output(c)
#         return c
#
#     @T.prim_func(private=True)
#     def fused_multiply_sum_sqrt(var_x: T.handle, var_c: T.handle):
#         T.func_attr({"tir.noalias": True})
#         n = T.int64()
#         x = T.match_buffer(var_x, (n, 4), "float32")
#         c = T.match_buffer(var_c, (n,), "float32")
#         with T.block("root"):
#             b = T.alloc_buffer((n,), "float32")
#             for ax0, k1 in T.grid(n, 4):
#                 with T.block("T_sum"):
#                     v_ax0, v_k1 = T.axis.remap("SR", [ax0, k1])
#                     T.writes(b[v_ax0])
#                     with T.init():
#                         b[v_ax0] = T.float32(0.0)
#                     b[v_ax0] = b[v_ax0] + x[v_ax0, v_k1] * x[v_ax0, v_k1]
#             for i0 in range(n):
#                 with T.block("compute"):
#                     v_i0 = T.axis.spatial(n, i0)
#                     T.reads(b[v_i0])
#                     T.writes(c[v_i0])
#                     c[v_i0] = T.sqrt(b[v_i0])
