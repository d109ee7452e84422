# Calls with operands of the same types share one loop function. Operands of another size or data type have their own.
# test opt --passes=LegalizeOps

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n",), "float32"), w: R.Tensor(("n",), "float32"), y: R.Tensor(("m",), "float32"), z: R.Tensor(("n",), "int32")) -> R.Object:
        with R.dataflow():
            a = R.add(x, x)
            b = R.add(y, y)
            c = R.add(z, z)
            d = R.add(w, w)
            R.output(a, b, c, d)
        return (a, b, c, d)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n",), dtype="float32"), w: R.Tensor(("n",), dtype="float32"), y: R.Tensor(("m",), dtype="float32"), z: R.Tensor(("n",), dtype="int32")) -> R.Object:
#         n = T.int64()
#         m = T.int64()
#         cls = Module
#         with R.dataflow():
#             a: R.Tensor((n,), dtype="float32") = R.call_tir(cls.add, (x, x), out_sinfo=R.Tensor((n,), dtype="float32"))
#             b: R.Tensor((m,), dtype="float32") = R.call_tir(cls.add1, (y, y), out_sinfo=R.Tensor((m,), dtype="float32"))
#             c: R.Tensor((n,), dtype="int32") = R.call_tir(cls.add2, (z, z), out_sinfo=R.Tensor((n,), dtype="int32"))
#             d: R.Tensor((n,), dtype="float32") = R.call_tir(cls.add, (w, w), out_sinfo=R.Tensor((n,), dtype="float32"))
#             R.output(a, b, c, d)
#         return (a, b, c, d)
#
#     @T.prim_func(private=True)
#     def add(var_A: T.handle, var_B: T.handle, var_T_add: T.handle):
#         T.func_attr({"tir.noalias": True})
#         n = T.int64()
#         A = T.match_buffer(var_A, (n,), "float32")
#         B = T.match_buffer(var_B, (n,), "float32")
#         T_add = T.match_buffer(var_T_add, (n,), "float32")
#         for ax0 in range(n):
#             with T.block("T_add"):
#                 v_ax0 = T.axis.spatial(n, ax0)
#                 T.reads(A[v_ax0], B[v_ax0])
#                 T.writes(T_add[v_ax0])
#                 T_add[v_ax0] = A[v_ax0] + B[v_ax0]
#
#     @T.prim_func(private=True)
#     def add1(var_A: T.handle, var_B: T.handle, var_T_add: T.handle):
#         T.func_attr({"tir.noalias": True})
#         m = T.int64()
#         A = T.match_buffer(var_A, (m,), "float32")
#         B = T.match_buffer(var_B, (m,), "float32")
#         T_add = T.match_buffer(var_T_add, (m,), "float32")
#         for ax0 in range(m):
#             with T.block("T_add"):
#                 v_ax0 = T.axis.spatial(m, ax0)
#                 T.reads(A[v_ax0], B[v_ax0])
#                 T.writes(T_add[v_ax0])
#                 T_add[v_ax0] = A[v_ax0] + B[v_ax0]
#
#     @T.prim_func(private=True)
#     def add2(var_A: T.handle, var_B: T.handle, var_T_add: T.handle):
#         T.func_attr({"tir.noalias": True})
#         n = T.int64()
#         A = T.match_buffer(var_A, (n,), "int32")
#         B = T.match_buffer(var_B, (n,), "int32")
#         T_add = T.match_buffer(var_T_add, (n,), "int32")
#         for ax0 in range(n):
#             with T.block("T_add"):
#                 v_ax0 = T.axis.spatial(n, ax0)
#                 T.reads(A[v_ax0], B[v_ax0])
#                 T.writes(T_add[v_ax0])
#                 T_add[v_ax0] = A[v_ax0] + B[v_ax0]
