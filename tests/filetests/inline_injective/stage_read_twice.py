# A cheap stage that its reader reads twice is computed in both places.
# test opt --passes=LegalizeOps,AnnotateTIROpPattern,FuseOps,FuseTIR,EliminateUnused,InlineInjective

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        with R.dataflow():
            a = R.add(x, R.const(1.0, "float32"))
            b = R.multiply(a, a)
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
#             b: R.Tensor((n,), dtype="float32") = R.call_tir(cls.fused_add_multiply, (x,), out_sinfo=R.Tensor((n,), dtype="float32"))
#             R.output(b)
#         return b
#
#     @T.prim_func(private=True)
#     def fused_add_multiply(var_x: T.handle, var_b: T.handle):
#         T.func_attr({"tir.noalias": True})
#         n = T.int64()
#         x = T.match_buffer(var_x, (n,), "float32")
#         b = T.match_buffer(var_b, (n,), "float32")
#         with T.block("root"):
#             for ax0 in range(n):
#                 with T.block("T_multiply"):
#                     v_ax0 = T.axis.spatial(n, ax0)
#                     T.writes(b[v_ax0])
#                     b[v_ax0] = (x[v_ax0] + T.float32(1.0)) * (x[v_ax0] + T.float32(1.0))
