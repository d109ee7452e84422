# No tensor of the group defines `n`, so its function takes the size as a shape.
# test opt --passes=LegalizeOps,AnnotateTIROpPattern,FuseOps,EliminateUnused

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        n = T.int64()
        with R.dataflow():
            a = R.arange(n, dtype="float32")
            b = R.negative(a)
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
#             b: R.Tensor((n,), dtype="float32") = cls.fused_arange_negative(R.shape([n]))
#             R.output(b)
#         return b
#
#     @T.prim_func(private=True)
#     def arange(var_T_arange: T.handle):
#         T.func_attr({"tir.noalias": True, "op_pattern": 0})
#         n = T.int64()
#         T_arange = T.match_buffer(var_T_arange, (n,), "float32")
#         for ax0 in range(n):
#             with T.block("T_arange"):
#                 v_ax0 = T.axis.spatial(n, ax0)
#                 T.reads()
#                 T.writes(T_arange[v_ax0])
#                 T_arange[v_ax0] = T.Cast("float32", v_ax0)
#
#     @T.prim_func(private=True)
#     def negative(var_A: T.handle, var_compute: T.handle):
#         T.func_attr({"tir.noalias": True, "op_pattern": 0})
#         n = T.int64()
#         A = T.match_buffer(var_A, (n,), "float32")
#         compute = T.match_buffer(var_compute, (n,), "float32")
#         for i0 in range(n):
#             with T.block("compute"):
#                 v_i0 = T.axis.spatial(n, i0)
#                 T.reads(A[v_i0])
#                 T.writes(compute[v_i0])
#                 compute[v_i0] = A[v_i0] * T.float32(-1.0)
#
#     @R.function(private=True)
#     def fused_arange_negative(sizes: R.Shape(["n"])) -> R.Tensor(("n",), dtype="float32"):
#         n = T.int64()
#         R.func_attr({"Primitive": 1})
#         cls = Module
#         with R.dataflow():
#             a: R.Tensor((n,), dtype="float32") = R.call_tir(cls.arange, R.tuple(), out_sinfo=R.Tensor((n,), dtype="float32"))
#             b: R.Tensor((n,), dtype="float32") = R.call_tir(cls.negative, (a,), out_sinfo=R.Tensor((n,), dtype="float32"))
#             R.output(b)
#         return b
