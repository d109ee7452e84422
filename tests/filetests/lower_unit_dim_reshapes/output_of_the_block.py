# A reshape whose result leaves the dataflow block stays a view.
# test opt --passes=LegalizeOps,LowerUnitDimReshapes,AnnotateTIROpPattern,FuseOps,FuseTIR,RewriteDataflowReshape,EliminateUnused

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((1, "n"), "float32")) -> R.Object:
        with R.dataflow():
            a = R.exp(x)
            b = R.squeeze(a, axis=0)
            R.output(b)
        return b

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor((1, "n"), dtype="float32")) -> R.Object:
#         n = T.int64()
#         cls = Module
#         with R.dataflow():
#             a: R.Tensor((1, n), dtype="float32") = R.call_tir(cls.exp, (x,), out_sinfo=R.Tensor((1, n), dtype="float32"))
#             b: R.Tensor((n,), dtype="float32") = R.reshape(a, R.shape([n]))
#             R.output(b)
#         return b
#
#     @T.prim_func(private=True)
#     def exp(var_A: T.handle, var_compute: T.handle):
#         T.func_attr({"tir.noalias": True, "op_pattern": 0})
#         n = T.int64()
#         A = T.match_buffer(var_A, (1, n), "float32")
#         compute = T.match_buffer(var_compute, (1, n), "float32")
#         for i0, i1 in T.grid(1, n):
#             with T.block("compute"):
#                 v_i0, v_i1 = T.axis.remap("SS", [i0, i1])
#                 T.reads(A[v_i0, v_i1])
#                 T.writes(compute[v_i0, v_i1])
#                 compute[v_i0, v_i1] = T.exp(A[v_i0, v_i1])
