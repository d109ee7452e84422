# Sorting has a loop function of its own: neither what it reads nor what reads it joins it, but both sides form groups.
# test opt --passes=LegalizeOps,AnnotateTIROpPattern,FuseOps,EliminateUnused

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        with R.dataflow():
            a = R.negative(R.abs(x))
            b = R.sort(a)
            c = R.abs(R.negative(b))
            R.output(c)
        return c

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
#             a: R.Tensor((n,), dtype="float32") = cls.fused_abs_negative(x)
#             b: R.Tensor((n,), dtype="float32") = R.call_tir(cls.sort, (a,), out_sinfo=R.Tensor((n,), dtype="float32"))
#             c: R.Tensor((n,), dtype="float32") = cls.fused_negative_abs(b)
#             R.output(c)
#         return c
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
#     def sort(var_A: T.handle, var_sort: T.handle):
#         T.func_attr({"tir.noalias": True, "op_pattern": 8})
#         n = T.int64()
#         A = T.match_buffer(var_A, (n,), "float32")
#         sort = T.match_buffer(var_sort, (n,), "float32")
#         with T.block("sort"):
#             T.evaluate(T.call_kernel("sort", x=T.view(A, [1, n], strides=[n, 1]), values=T.view(sort, [1, n], strides=[n, 1])))
#
#     @R.function(private=True)
#     def fused_abs_negative(x: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
#         n = T.int64()
#         R.func_attr({"Primitive": 1})
#         cls = Module
#         with R.dataflow():
#             lv: R.Tensor((n,), dtype="float32") = R.call_tir(cls.abs, (x,), out_sinfo=R.Tensor((n,), dtype="float32"))
#             a: R.Tensor((n,), dtype="float32") = R.call_tir(cls.negative, (lv,), out_sinfo=R.Tensor((n,), dtype="float32"))
#             R.output(a)
#         return a
#
#     @R.function(private=True)
#     def fused_negative_abs(b: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
#         n = T.int64()
#         R.func_attr({"Primitive": 1})
#         cls = Module
#         with R.dataflow():
#             lv1: R.Tensor((n,), dtype="float32") = R.call_tir(cls.negative, (b,), out_sinfo=R.Tensor((n,), dtype="float32"))
#             c: R.Tensor((n,), dtype="float32") = R.call_tir(cls.abs, (lv1,), out_sinfo=R.Tensor((n,), dtype="float32"))
#             R.output(c)
#         return c
