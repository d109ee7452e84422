# An expensive stage whose values the reader reads several times is not inlined; a cheap stage is.
# test opt --passes=LegalizeOps,AnnotateTIROpPattern,FuseOps,FuseTIR,EliminateUnused,InlineInjective

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def heavy(x: R.Tensor((4, "n"), "float32")) -> R.Tensor((4, "n * 3"), "float32"):
        with R.dataflow():
            a = R.exp(x)
            b = R.repeat(a, 3, axis=1)
            R.output(b)
        return b

    @R.function
    def light(x: R.Tensor(("n", 4), "float32")) -> R.Tensor((4, "n"), "float32"):
        with R.dataflow():
            a = R.negative(x)
            b = R.permute_dims(a)
            R.output(b)
        return b

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def heavy(x: R.Tensor((4, "n"), dtype="float32")) -> R.Tensor((4, "n * 3"), dtype="float32"):
#         n = T.int64()
#         cls = Module
#         with R.dataflow():
#             b: R.Tensor((4, n * 3), dtype="float32") = R.call_tir(cls.fused_exp_repeat, (x,), out_sinfo=R.Tensor((4, n * 3), dtype="float32"))
#             R.output(b)
#         return b
#
#     @R.function
#     def light(x: R.Tensor(("n", 4), dtype="float32")) -> R.Tensor((4, "n"), dtype="float32"):
#         n = T.int64()
#         cls = Module
#         with R.dataflow():
#             b: R.Tensor((4, n), dtype="float32") = R.call_tir(cls.fused_negative_permute_dims, (x,), out_sinfo=R.Tensor((4, n), dtype="float32"))
#             R.output(b)
#         return b
#
#     @T.prim_func(private=True)
#     def fused_exp_repeat(var_x: T.handle, var_b: T.handle):
#         T.func_attr({"tir.noalias": True})
#         n = T.int64()
#         x = T.match_buffer(var_x, (4, n), "float32")
#         b = T.match_buffer(var_b, (4, n * 3), "float32")
#         with T.block("root"):
#             a = T.alloc_buffer((4, n), "float32")
#             for i0, i1 in T.grid(4, n):
#                 with T.block("compute"):
#                     v_i0, v_i1 = T.axis.remap("SS", [i0, i1])
#                     T.reads(x[v_i0, v_i1])
#                     T.writes(a[v_i0, v_i1])
#                     a[v_i0, v_i1] = T.exp(x[v_i0, v_i1])
#             for ax0, ax1 in T.grid(4, n * 3):
#                 with T.block("T_repeat"):
#                     v_ax0, v_ax1 = T.axis.remap("SS", [ax0, ax1])
#                     T.reads(a[v_ax0, v_ax1 // 3])
#                     T.writes(b[v_ax0, v_ax1])
#                     b[v_ax0, v_ax1] = a[v_ax0, v_ax1 // 3]
#
#     @T.prim_func(private=True)
#     def fused_negative_permute_dims(var_x: T.handle, var_b: T.handle):
#         T.func_attr({"tir.noalias": True})
#         n = T.int64()
#         x = T.match_buffer(var_x, (n, 4), "float32")
#         b = T.match_buffer(var_b, (4, n), "float32")
#         with T.block("root"):
#             for ax0, ax1 in T.grid(4, n):
#                 with T.block("T_transpose"):
#                     v_ax0, v_ax1 = T.axis.remap("SS", [ax0, ax1])
#                     T.writes(b[v_ax0, v_ax1])
#                     b[v_ax0, v_ax1] = x[v_ax1, v_ax0] * T.float32(-1.0)
