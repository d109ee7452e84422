# Two calls of one group become two calls of one loop function.
# test opt --passes=LegalizeOps,AnnotateTIROpPattern,FuseOps,FuseTIR,EliminateUnused

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n",), "float32"), y: R.Tensor(("n",), "float32")) -> R.Tuple(R.Tensor(("n",), "float32"), R.Tensor(("n",), "float32")):
        with R.dataflow():
            a = R.negative(R.exp(x))
            b = R.negative(R.exp(y))
            R.output(a, b)
        return (a, b)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n",), dtype="float32"), y: R.Tensor(("n",), dtype="float32")) -> R.Tuple(R.Tensor(("n",), dtype="float32"), R.Tensor(("n",), dtype="float32")):
#         n = T.int64()
#         cls = Module
#         with R.dataflow():
#             a: R.Tensor((n,), dtype="float32") = R.call_tir(cls.fused_exp_negative, (x,), out_sinfo=R.Tensor((n,), dtype="float32"))
#             b: R.Tensor((n,), dtype="float32") = R.call_tir(cls.fused_exp_negative, (y,), out_sinfo=R.Tensor((n,), dtype="float32"))
#             R.output(a, b)
#         return (a, b)
#
#     @T.prim_func(private=True)
#     def fused_exp_negative(var_x: T.handle, var_a: T.handle):
#         T.func_attr({"tir.noalias": True})
#         n = T.int64()
#         x = T.match_buffer(var_x, (n,), "float32")
#         a = T.match_buffer(var_a, (n,), "float32")
#         with T.block("root"):
#             lv = T.alloc_buffer((n,), "float32")
#             for i0 in range(n):
#                 with T.block("compute"):
#                     v_i0 = T.axis.spatial(n, i0)
#                     T.reads(x[v_i0])
#                     T.writes(lv[v_i0])
#                     lv[v_i0] = T.exp(x[v_i0])
#             for i0 in range(n):
#                 with T.block("compute_1"):
#                     v_i0 = T.axis.spatial(n, i0)
#                     T.reads(lv[v_i0])
#                     T.writes(a[v_i0])
#                     a[v_i0] = lv[v_i0] * T.float32(-1.0)
