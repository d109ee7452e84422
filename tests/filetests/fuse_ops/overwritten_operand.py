# `a` is overwritten after `b` has read it, so `b` must not move behind the in-place call.
# test opt --passes=LegalizeOps,AnnotateTIROpPattern,FuseOps,EliminateUnused

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def double(A: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("double"):
                vi = T.axis.spatial(4, i)
                A[vi] = A[vi] * T.float32(2)

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Object:
        cls = Module
        with R.dataflow():
            a = R.exp(x)
            b = R.negative(a)
            c = R.call_tir_inplace(cls.double, (a,), inplace_indices=[0], out_sinfo=R.Tensor((4,), "float32"))
            d = R.sin(b)
            R.output(c, d)
        return (c, d)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func(private=True)
#     def double(A: T.Buffer((4,), "float32")):
#         T.func_attr({"op_pattern": 8})
#         for i in range(4):
#             with T.block("double"):
#                 vi = T.axis.spatial(4, i)
#                 A[vi] = A[vi] * T.float32(2.0)
#
#     @R.function
#     def main(x: R.Tensor((4,), dtype="float32")) -> R.Object:
#         cls = Module
#         with R.dataflow():
#             a: R.Tensor((4,), dtype="float32") = R.call_tir(cls.exp, (x,), out_sinfo=R.Tensor((4,), dtype="float32"))
#             b: R.Tensor((4,), dtype="float32") = R.call_tir(cls.negative, (a,), out_sinfo=R.Tensor((4,), dtype="float32"))
#             c: R.Tensor((4,), dtype="float32") = R.call_tir_inplace(cls.double, (a,), out_sinfo=R.Tensor((4,), dtype="float32"), inplace_indices=[0])
#             d: R.Tensor((4,), dtype="float32") = R.call_tir(cls.sin, (b,), out_sinfo=R.Tensor((4,), dtype="float32"))
#             R.output(c, d)
#         return (c, d)
#
#     @T.prim_func(private=True)
#     def exp(A: T.Buffer((4,), "float32"), compute: T.Buffer((4,), "float32")):
#         T.func_attr({"tir.noalias": True, "op_pattern": 0})
#         for i0 in range(4):
#             with T.block("compute"):
#                 v_i0 = T.axis.spatial(4, i0)
#                 T.reads(A[v_i0])
#                 T.writes(compute[v_i0])
#                 compute[v_i0] = T.exp(A[v_i0])
#
#     @T.prim_func(private=True)
#     def negative(A: T.Buffer((4,), "float32"), compute: T.Buffer((4,), "float32")):
#         T.func_attr({"tir.noalias": True, "op_pattern": 0})
#         for i0 in range(4):
#             with T.block("compute"):
#                 v_i0 = T.axis.spatial(4, i0)
#                 T.reads(A[v_i0])
#                 T.writes(compute[v_i0])
#                 compute[v_i0] = A[v_i0] * T.float32(-1.0)
#
#     @T.prim_func(private=True)
#     def sin(A: T.Buffer((4,), "float32"), compute: T.Buffer((4,), "float32")):
#         T.func_attr({"tir.noalias": True, "op_pattern": 0})
#         for i0 in range(4):
#             with T.block("compute"):
#                 v_i0 = T.axis.spatial(4, i0)
#                 T.reads(A[v_i0])
#                 T.writes(compute[v_i0])
#                 compute[v_i0] = T.sin(A[v_i0])
