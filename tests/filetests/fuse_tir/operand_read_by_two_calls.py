# The merged function takes an operand that both calls read only once.
# test opt --passes=LegalizeOps,AnnotateTIROpPattern,FuseOps,FuseTIR,EliminateUnused

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        with R.dataflow():
            a = R.exp(x)
            b = R.multiply(a, x)
            R.output(b)
        return b

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
#         n = T.int64()
#         cls = Module
#         with R.dataflow():
#             b: R.Tensor((n,), dtype="float32") = R.call_tir(cls.fused_exp_multiply, (x,), out_sinfo=R.Tensor((n,), dtype="float32"))
#             R.output(b)
#         return b
#
#     @T.prim_func(private=True)
#     def fused_exp_multiply(var_x: T.handle, var_b: T.handle):
#         T.func_attr({"tir.noalias": True})
#         n = T.int64()
#         x = T.match_buffer(var_x, (n,), "float32")
#         b = T.match_buffer(var_b, (n,), "float32")
#         with T.block("root"):
#             a = T.alloc_buffer((n,), "float32")
#             for i0 in range(n):
#                 with T.block("compute"):
#                     v_i0 = T.axis.spatial(n, i0)
#                     T.reads(x[v_i0])
#                     T.writes(a[v_i0])
#                     a[v_i0] = T.exp(x[v_i0])
#             for ax0 in range(n):
#                 with T.block("T_multiply"):
#                     v_ax0 = T.axis.spatial(n, ax0)
#                     T.reads(a[v_ax0], x[v_ax0])
#                     T.writes(b[v_ax0])
#                     b[v_ax0] = a[v_ax0] * x[v_ax0]
