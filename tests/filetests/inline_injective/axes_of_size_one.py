# An expensive stage is inlined into a mean with axes of size 1, because the mean reads each value once.
# test opt --passes=LegalizeOps,AnnotateTIROpPattern,FuseOps,FuseTIR,EliminateUnused,InlineInjective

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", "c", "h"), "float32")) -> R.Object:
        with R.dataflow():
            b = R.mean(R.exp(x), axis=[1, 2], keepdims=True)
            R.output(b)
        return b

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", "c", "h"), dtype="float32")) -> R.Object:
#         n = T.int64()
#         c = T.int64()
#         h = T.int64()
#         cls = Module
#         with R.dataflow():
#             b: R.Tensor((n, 1, 1), dtype="float32") = R.call_tir(cls.fused_exp_mean, (x,), out_sinfo=R.Tensor((n, 1, 1), dtype="float32"))
#             R.output(b)
#         return b
#
#     @T.prim_func(private=True)
#     def fused_exp_mean(var_x: T.handle, var_b: T.handle):
#         T.func_attr({"tir.noalias": True})
#         n = T.int64()
#         c = T.int64()
#         h = T.int64()
#         x = T.match_buffer(var_x, (n, c, h), "float32")
#         b = T.match_buffer(var_b, (n, 1, 1), "float32")
#         with T.block("root"):
#             T_sum = T.alloc_buffer((n, 1, 1), "float32")
#             for ax0, ax1, ax2, k1, k2 in T.grid(n, 1, 1, c, h):
#                 with T.block("T_sum"):
#                     v_ax0, v_ax1, v_ax2, v_k1, v_k2 = T.axis.remap("SSSRR", [ax0, ax1, ax2, k1, k2])
#                     T.writes(T_sum[v_ax0, v_ax1, v_ax2])
#                     with T.init():
#                         T_sum[v_ax0, v_ax1, v_ax2] = T.float32(0.0)
#                     T_sum[v_ax0, v_ax1, v_ax2] = T_sum[v_ax0, v_ax1, v_ax2] + T.exp(x[v_ax0, v_k1, v_k2])
#             for ax0, ax1, ax2 in T.grid(n, 1, 1):
#                 with T.block("T_mean"):
#                     v_ax0, v_ax1, v_ax2 = T.axis.remap("SSS", [ax0, ax1, ax2])
#                     T.reads(T_sum[v_ax0, v_ax1, v_ax2])
#                     T.writes(b[v_ax0, v_ax1, v_ax2])
#                     b[v_ax0, v_ax1, v_ax2] = T_sum[v_ax0, v_ax1, v_ax2] / T.Cast("float32", c * h)
