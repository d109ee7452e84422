# Equal groups share one function; a group of tensors with another shape has its own.
# test opt --passes=LegalizeOps,AnnotateTIROpPattern,FuseOps,EliminateUnused

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n",), "float32"), y: R.Tensor(("n",), "float32"), z: R.Tensor((3,), "float32")) -> R.Object:
        with R.dataflow():
            a = R.negative(R.exp(x))
            b = R.negative(R.exp(y))
            c = R.negative(R.exp(z))
            R.output(a, b, c)
        return (a, b, c)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n",), dtype="float32"), y: R.Tensor(("n",), dtype="float32"), z: R.Tensor((3,), dtype="float32")) -> R.Object:
#         n = T.int64()
#         cls = Module
#         with R.dataflow():
#             a: R.Tensor((n,), dtype="float32") = cls.fused_exp_negative(x)
#             b: R.Tensor((n,), dtype="float32") = cls.fused_exp_negative(y)
#             c: R.Tensor((3,), dtype="float32") = cls.fused_exp1_negative1(z)
#             R.output(a, b, c)
#         return (a, b, c)
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
#     def exp1(A: T.Buffer((3,), "float32"), compute: T.Buffer((3,), "float32")):
#         T.func_attr({"tir.noalias": True, "op_pattern": 0})
#         for i0 in range(3):
#             with T.block("compute"):
#                 v_i0 = T.axis.spatial(3, i0)
#                 T.reads(A[v_i0])
#                 T.writes(compute[v_i0])
#                 compute[v_i0] = T.exp(A[v_i0])
#
#     @T.prim_func(private=True)
#     def negative1(A: T.Buffer((3,), "float32"), compute: T.Buffer((3,), "float32")):
#         T.func_attr({"tir.noalias": True, "op_pattern": 0})
#         for i0 in range(3):
#             with T.block("compute"):
#                 v_i0 = T.axis.spatial(3, i0)
#                 T.reads(A[v_i0])
#                 T.writes(compute[v_i0])
#                 compute[v_i0] = A[v_i0] * T.float32(-1.0)
#
#     @R.function(private=True)
#     def fused_exp_negative(x: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
#         n = T.int64()
#         R.func_attr({"Primitive": 1})
#         cls = Module
#         with R.dataflow():
#             lv: R.Tensor((n,), dtype="float32") = R.call_tir(cls.exp, (x,), out_sinfo=R.Tensor((n,), dtype="float32"))
#             a: R.Tensor((n,), dtype="float32") = R.call_tir(cls.negative, (lv,), out_sinfo=R.Tensor((n,), dtype="float32"))
#             R.output(a)
#         return a
#
#     @R.function(private=True)
#     def fused_exp1_negative1(z: R.Tensor((3,), dtype="float32")) -> R.Tensor((3,), dtype="float32"):
#         R.func_attr({"Primitive": 1})
#         cls = Module
#         with R.dataflow():
#             lv2: R.Tensor((3,), dtype="float32") = R.call_tir(cls.exp1, (z,), out_sinfo=R.Tensor((3,), dtype="float32"))
#             c: R.Tensor((3,), dtype="float32") = R.call_tir(cls.negative1, (lv2,), out_sinfo=R.Tensor((3,), dtype="float32"))
#             R.output(c)
#         return c
