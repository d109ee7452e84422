# A mean takes its elementwise producer, since each element is read once. A variance does not, since it reads each element twice.
# test opt --passes=LegalizeOps,AnnotateTIROpPattern,FuseOps,EliminateUnused

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", "m"), "float32")):
        with R.dataflow():
            mean = R.mean(R.exp(x), axis=[1])
            variance = R.variance(R.abs(x), axis=[1])
            R.output(mean, variance)
        return mean, variance

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", "m"), dtype="float32")) -> R.Tuple(R.Tensor(("n",), dtype="float32"), R.Tensor(("n",), dtype="float32")):
#         n = T.int64()
#         m = T.int64()
#         cls = Module
#         with R.dataflow():
#             mean: R.Tensor((n,), dtype="float32") = cls.fused_exp_mean(x)
#             lv1: R.Tensor((n, m), dtype="float32") = R.call_tir(cls.abs, (x,), out_sinfo=R.Tensor((n, m), dtype="float32"))
#             variance: R.Tensor((n,), dtype="float32") = R.call_tir(cls.variance, (lv1,), out_sinfo=R.Tensor((n,), dtype="float32"))
#             R.output(mean, variance)
#         return (mean, variance)
#
#     @T.prim_func(private=True)
#     def exp(var_A: T.handle, var_compute: T.handle):
#         T.func_attr({"tir.noalias": True, "op_pattern": 0})
#         n = T.int64()
#         m = T.int64()
#         A = T.match_buffer(var_A, (n, m), "float32")
#         compute = T.match_buffer(var_compute, (n, m), "float32")
#         for i0, i1 in T.grid(n, m):
#             with T.block("compute"):
#                 v_i0, v_i1 = T.axis.remap("SS", [i0, i1])
#                 T.reads(A[v_i0, v_i1])
#                 T.writes(compute[v_i0, v_i1])
#                 compute[v_i0, v_i1] = T.exp(A[v_i0, v_i1])
#
#     @T.prim_func(private=True)
#     def mean(var_A: T.handle, var_T_mean: T.handle):
#         T.func_attr({"tir.noalias": True, "op_pattern": 3})
#         n = T.int64()
#         m = T.int64()
#         A = T.match_buffer(var_A, (n, m), "float32")
#         T_mean = T.match_buffer(var_T_mean, (n,), "float32")
#         with T.block("root"):
#             T_sum = T.alloc_buffer((n,), "float32")
#             for ax0, k1 in T.grid(n, m):
#                 with T.block("T_sum"):
#                     v_ax0, v_k1 = T.axis.remap("SR", [ax0, k1])
#                     T.reads(A[v_ax0, v_k1])
#                     T.writes(T_sum[v_ax0])
#                     with T.init():
#                         T_sum[v_ax0] = T.float32(0.0)
#                     T_sum[v_ax0] = T_sum[v_ax0] + A[v_ax0, v_k1]
#             for ax0 in range(n):
#                 with T.block("T_mean"):
#                     v_ax0 = T.axis.spatial(n, ax0)
#                     T.reads(T_sum[v_ax0])
#                     T.writes(T_mean[v_ax0])
#                     T_mean[v_ax0] = T_sum[v_ax0] / T.Cast("float32", m)
#
#     @T.prim_func(private=True)
#     def abs(var_A: T.handle, var_compute: T.handle):
#         T.func_attr({"tir.noalias": True, "op_pattern": 0})
#         n = T.int64()
#         m = T.int64()
#         A = T.match_buffer(var_A, (n, m), "float32")
#         compute = T.match_buffer(var_compute, (n, m), "float32")
#         for i0, i1 in T.grid(n, m):
#             with T.block("compute"):
#                 v_i0, v_i1 = T.axis.remap("SS", [i0, i1])
#                 T.reads(A[v_i0, v_i1])
#                 T.writes(compute[v_i0, v_i1])
#                 compute[v_i0, v_i1] = T.abs(A[v_i0, v_i1])
#
#     @T.prim_func(private=True)
#     def variance(var_A: T.handle, var_T_variance: T.handle):
#         T.func_attr({"tir.noalias": True, "op_pattern": 4})
#         n = T.int64()
#         m = T.int64()
#         A = T.match_buffer(var_A, (n, m), "float32")
#         T_variance = T.match_buffer(var_T_variance, (n,), "float32")
#         with T.block("root"):
#             T_sum = T.alloc_buffer((n,), "float32")
#             T_squares = T.alloc_buffer((n,), "float32")
#             for ax0, k1 in T.grid(n, m):
#                 with T.block("T_sum"):
#                     v_ax0, v_k1 = T.axis.remap("SR", [ax0, k1])
#                     T.reads(A[v_ax0, v_k1])
#                     T.writes(T_sum[v_ax0])
#                     with T.init():
#                         T_sum[v_ax0] = T.float32(0.0)
#                     T_sum[v_ax0] = T_sum[v_ax0] + A[v_ax0, v_k1]
#             for ax0, k1 in T.grid(n, m):
#                 with T.block("T_squares"):
#                     v_ax0, v_k1 = T.axis.remap("SR", [ax0, k1])
#                     T.reads(A[v_ax0, v_k1], T_sum[v_ax0])
#                     T.writes(T_squares[v_ax0])
#                     with T.init():
#                         T_squares[v_ax0] = T.float32(0.0)
#                     T_squares[v_ax0] = T_squares[v_ax0] + (A[v_ax0, v_k1] - T_sum[v_ax0] / T.Cast("float32", m)) * (A[v_ax0, v_k1] - T_sum[v_ax0] / T.Cast("float32", m))
#             for ax0 in range(n):
#                 with T.block("T_variance"):
#                     v_ax0 = T.axis.spatial(n, ax0)
#                     T.reads(T_squares[v_ax0])
#                     T.writes(T_variance[v_ax0])
#                     T_variance[v_ax0] = T_squares[v_ax0] / T.Cast("float32", m)
#
#     @R.function(private=True)
#     def fused_exp_mean(x: R.Tensor(("n", "m"), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
#         n = T.int64()
#         m = T.int64()
#         R.func_attr({"Primitive": 1})
#         cls = Module
#         with R.dataflow():
#             lv: R.Tensor((n, m), dtype="float32") = R.call_tir(cls.exp, (x,), out_sinfo=R.Tensor((n, m), dtype="float32"))
#             mean: R.Tensor((n,), dtype="float32") = R.call_tir(cls.mean, (lv,), out_sinfo=R.Tensor((n,), dtype="float32"))
#             R.output(mean)
#         return mean
