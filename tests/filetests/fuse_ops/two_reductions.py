# A reduction does not fuse into a reduction: the second sum starts a new group with what is computed from the first.
# test opt --passes=LegalizeOps,AnnotateTIROpPattern,FuseOps,EliminateUnused

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32")) -> R.Tensor((), "float32"):
        with R.dataflow():
            a = R.sum(x, axis=[1])
            b = R.negative(a)
            c = R.sum(b, axis=[0])
            R.output(c)
        return c

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", 4), dtype="float32")) -> R.Tensor((), dtype="float32"):
#         n = T.int64()
#         cls = Module
#         with R.dataflow():
#             b: R.Tensor((n,), dtype="float32") = cls.fused_sum_negative(x)
#             c: R.Tensor((), dtype="float32") = R.call_tir(cls.sum1, (b,), out_sinfo=R.Tensor((), dtype="float32"))
#             R.output(c)
#         return c
#
#     @T.prim_func(private=True)
#     def sum(var_A: T.handle, var_T_sum: T.handle):
#         T.func_attr({"tir.noalias": True, "op_pattern": 3})
#         n = T.int64()
#         A = T.match_buffer(var_A, (n, 4), "float32")
#         T_sum = T.match_buffer(var_T_sum, (n,), "float32")
#         for ax0, k1 in T.grid(n, 4):
#             with T.block("T_sum"):
#                 v_ax0, v_k1 = T.axis.remap("SR", [ax0, k1])
#                 T.reads(A[v_ax0, v_k1])
#                 T.writes(T_sum[v_ax0])
#                 with T.init():
#                     T_sum[v_ax0] = T.float32(0.0)
#                 T_sum[v_ax0] = T_sum[v_ax0] + A[v_ax0, v_k1]
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
#     def sum1(var_A: T.handle, T_sum: T.Buffer((), "float32")):
#         T.func_attr({"tir.noalias": True, "op_pattern": 3})
#         n = T.int64()
#         A = T.match_buffer(var_A, (n,), "float32")
#         for k0 in range(n):
#             with T.block("T_sum"):
#                 v_k0 = T.axis.reduce(n, k0)
#                 T.reads(A[v_k0])
#                 T.writes(T_sum[()])
#                 with T.init():
#                     T_sum[()] = T.float32(0.0)
#                 T_sum[()] = T_sum[()] + A[v_k0]
#
#     @R.function(private=True)
#     def fused_sum_negative(x: R.Tensor(("n", 4), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
#         n = T.int64()
#         R.func_attr({"Primitive": 1})
#         cls = Module
#         with R.dataflow():
#             a: R.Tensor((n,), dtype="float32") = R.call_tir(cls.sum, (x,), out_sinfo=R.Tensor((n,), dtype="float32"))
#             b: R.Tensor((n,), dtype="float32") = R.call_tir(cls.negative, (a,), out_sinfo=R.Tensor((n,), dtype="float32"))
#             R.output(b)
#         return b
