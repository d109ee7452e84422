# A reshape of dims of size 1 is fused with the operators before and after it.
# test opt --passes=LegalizeOps,LowerUnitDimReshapes,AnnotateTIROpPattern,FuseOps,FuseTIR,RewriteDataflowReshape,EliminateUnused

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32"), y: R.Tensor(("n", 3, 4), "float32")) -> R.Object:
        with R.dataflow():
            a = R.exp(x)
            b = R.expand_dims(a, axis=1)
            c = R.add(b, y)
            R.output(c)
        return c

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", 4), dtype="float32"), y: R.Tensor(("n", 3, 4), dtype="float32")) -> R.Object:
#         n = T.int64()
#         cls = Module
#         with R.dataflow():
#             c: R.Tensor((n, 3, 4), dtype="float32") = R.call_tir(cls.fused_exp_reshape_add, (x, y), out_sinfo=R.Tensor((n, 3, 4), dtype="float32"))
#             R.output(c)
#         return c
#
#     @T.prim_func(private=True)
#     def fused_exp_reshape_add(var_x: T.handle, var_y: T.handle, var_c: T.handle):
#         T.func_attr({"tir.noalias": True})
#         n = T.int64()
#         x = T.match_buffer(var_x, (n, 4), "float32")
#         y = T.match_buffer(var_y, (n, 3, 4), "float32")
#         c = T.match_buffer(var_c, (n, 3, 4), "float32")
#         with T.block("root"):
#             a = T.alloc_buffer((n, 4), "float32")
#             b = T.alloc_buffer((n, 1, 4), "float32")
#             for i0, i1 in T.grid(n, 4):
#                 with T.block("compute"):
#                     v_i0, v_i1 = T.axis.remap("SS", [i0, i1])
#                     T.reads(x[v_i0, v_i1])
#                     T.writes(a[v_i0, v_i1])
#                     a[v_i0, v_i1] = T.exp(x[v_i0, v_i1])
#             for ax0, ax1, ax2 in T.grid(n, 1, 4):
#                 with T.block("T_reshape"):
#                     v_ax0, v_ax1, v_ax2 = T.axis.remap("SSS", [ax0, ax1, ax2])
#                     T.reads(a[v_ax0, v_ax2])
#                     T.writes(b[v_ax0, v_ax1, v_ax2])
#                     b[v_ax0, v_ax1, v_ax2] = a[v_ax0, v_ax2]
#             for ax0, ax1, ax2 in T.grid(n, 3, 4):
#                 with T.block("T_add"):
#                     v_ax0, v_ax1, v_ax2 = T.axis.remap("SSS", [ax0, ax1, ax2])
#                     T.reads(b[v_ax0, 0, v_ax2], y[v_ax0, v_ax1, v_ax2])
#                     T.writes(c[v_ax0, v_ax1, v_ax2])
#                     c[v_ax0, v_ax1, v_ax2] = b[v_ax0, 0, v_ax2] + y[v_ax0, v_ax1, v_ax2]
