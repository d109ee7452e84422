# A reshape that changes dims other than 1 stays a view.
# test opt --passes=LegalizeOps,LowerUnitDimReshapes,AnnotateTIROpPattern,FuseOps,FuseTIR,RewriteDataflowReshape,EliminateUnused

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32"), y: R.Tensor(("n", 2, 2), "float32")) -> R.Object:
        n = T.int64()
        with R.dataflow():
            a = R.exp(x)
            b = R.reshape(a, R.shape([n, 2, 2]))
            c = R.add(b, y)
            R.output(c)
        return c

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", 4), dtype="float32"), y: R.Tensor(("n", 2, 2), dtype="float32")) -> R.Object:
#         n = T.int64()
#         cls = Module
#         with R.dataflow():
#             a: R.Tensor((n, 4), dtype="float32") = R.call_tir(cls.exp, (x,), out_sinfo=R.Tensor((n, 4), dtype="float32"))
#             b: R.Tensor((n, 2, 2), dtype="float32") = R.reshape(a, R.shape([n, 2, 2]))
#             c: R.Tensor((n, 2, 2), dtype="float32") = R.call_tir(cls.add, (b, y), out_sinfo=R.Tensor((n, 2, 2), dtype="float32"))
#             R.output(c)
#         return c
#
#     @T.prim_func(private=True)
#     def exp(var_A: T.handle, var_compute: T.handle):
#         T.func_attr({"tir.noalias": True, "op_pattern": 0})
#         n = T.int64()
#         A = T.match_buffer(var_A, (n, 4), "float32")
#         compute = T.match_buffer(var_compute, (n, 4), "float32")
#         for i0, i1 in T.grid(n, 4):
#             with T.block("compute"):
#                 v_i0, v_i1 = T.axis.remap("SS", [i0, i1])
#                 T.reads(A[v_i0, v_i1])
#                 T.writes(compute[v_i0, v_i1])
#                 compute[v_i0, v_i1] = T.exp(A[v_i0, v_i1])
#
#     @T.prim_func(private=True)
#     def add(var_A: T.handle, var_B: T.handle, var_T_add: T.handle):
#         T.func_attr({"tir.noalias": True, "op_pattern": 0})
#         n = T.int64()
#         A = T.match_buffer(var_A, (n, 2, 2), "float32")
#         B = T.match_buffer(var_B, (n, 2, 2), "float32")
#         T_add = T.match_buffer(var_T_add, (n, 2, 2), "float32")
#         for ax0, ax1, ax2 in T.grid(n, 2, 2):
#             with T.block("T_add"):
#                 v_ax0, v_ax1, v_ax2 = T.axis.remap("SSS", [ax0, ax1, ax2])
#                 T.reads(A[v_ax0, v_ax1, v_ax2], B[v_ax0, v_ax1, v_ax2])
#                 T.writes(T_add[v_ax0, v_ax1, v_ax2])
#                 T_add[v_ax0, v_ax1, v_ax2] = A[v_ax0, v_ax1, v_ax2] + B[v_ax0, v_ax1, v_ax2]
