# Each reader of a tuple counts as a reader of all its fields. So exp and negative, whose results are fields of t, are not fused.
# test opt --passes=LegalizeOps,AnnotateTIROpPattern,FuseOps,EliminateUnused

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        with R.dataflow():
            a = R.exp(x)
            b = R.negative(a)
            t = (a, b)
            c = t[0]
            d = R.abs(c)
            R.output(d)
        return d

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
#             a: R.Tensor((n,), dtype="float32") = R.call_tir(cls.exp, (x,), out_sinfo=R.Tensor((n,), dtype="float32"))
#             b: R.Tensor((n,), dtype="float32") = R.call_tir(cls.negative, (a,), out_sinfo=R.Tensor((n,), dtype="float32"))
#             t: R.Tuple(R.Tensor((n,), dtype="float32"), R.Tensor((n,), dtype="float32")) = (a, b)
#             c: R.Tensor((n,), dtype="float32") = t[0]
#             d: R.Tensor((n,), dtype="float32") = R.call_tir(cls.abs, (c,), out_sinfo=R.Tensor((n,), dtype="float32"))
#             R.output(d)
#         return d
#
#     @T.prim_func(private=True)
#     def exp(var_A: T.handle, var_compute: T.handle):
#         T.func_attr({"tir.noalias": True, "op_pattern": 0})
#         n = T.int64()
#         A = T.match_buffer(var_A, (n,), "float32")
#         compute = T.match_buffer(var_compute, (n,), "float32")
#         for i0 in range(n):
#             with T.block("compute"):
#                 v_i0 = T.axis.spatial(n, i0)
#                 T.reads(A[v_i0])
#                 T.writes(compute[v_i0])
#                 compute[v_i0] = T.exp(A[v_i0])
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
#     @T.prim_func(private=True)
#     def abs(var_A: T.handle, var_compute: T.handle):
#         T.func_attr({"tir.noalias": True, "op_pattern": 0})
#         n = T.int64()
#         A = T.match_buffer(var_A, (n,), "float32")
#         compute = T.match_buffer(var_compute, (n,), "float32")
#         for i0 in range(n):
#             with T.block("compute"):
#                 v_i0 = T.axis.spatial(n, i0)
#                 T.reads(A[v_i0])
#                 T.writes(compute[v_i0])
#                 compute[v_i0] = T.abs(A[v_i0])
