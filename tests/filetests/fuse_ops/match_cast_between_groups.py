# A match_cast separates groups: its check stays where it is.
# test opt --passes=LegalizeOps,AnnotateTIROpPattern,FuseOps,EliminateUnused

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n",), "float32")) -> R.Tensor((2,), "float32"):
        with R.dataflow():
            a = R.exp(x)
            b = R.match_cast(a, R.Tensor((2,), "float32"))
            c = R.negative(b)
            R.output(c)
        return c

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n",), dtype="float32")) -> R.Tensor((2,), dtype="float32"):
#         n = T.int64()
#         cls = Module
#         with R.dataflow():
#             a: R.Tensor((n,), dtype="float32") = R.call_tir(cls.exp, (x,), out_sinfo=R.Tensor((n,), dtype="float32"))
#             b: R.Tensor((2,), dtype="float32") = R.match_cast(a, R.Tensor((2,), dtype="float32"))
#             c: R.Tensor((2,), dtype="float32") = R.call_tir(cls.negative, (b,), out_sinfo=R.Tensor((2,), dtype="float32"))
#             R.output(c)
#         return c
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
#     def negative(A: T.Buffer((2,), "float32"), compute: T.Buffer((2,), "float32")):
#         T.func_attr({"tir.noalias": True, "op_pattern": 0})
#         for i0 in range(2):
#             with T.block("compute"):
#                 v_i0 = T.axis.spatial(2, i0)
#                 T.reads(A[v_i0])
#                 T.writes(compute[v_i0])
#                 compute[v_i0] = A[v_i0] * T.float32(-1.0)
