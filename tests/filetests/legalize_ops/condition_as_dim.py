# A condition as a dim is 0 or 1, as an int64.
# test opt --passes=LegalizeOps
from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n",), "int32")) -> R.Object:
        n = T.int64()
        with R.dataflow():
            a = R.ones(R.shape([n == 2, 3]), "int32")
            b = R.permute_dims(a, axes=[1, 0])
            R.output(b)
        return b

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n",), dtype="int32")) -> R.Object:
#         n = T.int64()
#         cls = Module
#         with R.dataflow():
#             a: R.Tensor((n == 2, 3), dtype="int32") = R.call_tir(cls.ones, R.tuple(), out_sinfo=R.Tensor((n == 2, 3), dtype="int32"), tir_vars=R.shape([n]))
#             b: R.Tensor((3, n == 2), dtype="int32") = R.call_tir(cls.permute_dims, (a,), out_sinfo=R.Tensor((3, n == 2), dtype="int32"), tir_vars=R.shape([n]))
#             R.output(b)
#         return b
#
#     @T.prim_func(private=True)
#     def ones(var_T_full: T.handle, n: T.int64):
#         T.func_attr({"tir.noalias": True})
#         T_full = T.match_buffer(var_T_full, (T.Cast("int64", n == 2), 3), "int32")
#         for ax0, ax1 in T.grid(T.Cast("int64", n == 2), 3):
#             with T.block("T_full"):
#                 v_ax0, v_ax1 = T.axis.remap("SS", [ax0, ax1])
#                 T.reads()
#                 T.writes(T_full[v_ax0, v_ax1])
#                 T_full[v_ax0, v_ax1] = T.int32(1)
#
#     @T.prim_func(private=True)
#     def permute_dims(var_A: T.handle, var_T_transpose: T.handle, n: T.int64):
#         T.func_attr({"tir.noalias": True})
#         A = T.match_buffer(var_A, (T.Cast("int64", n == 2), 3), "int32")
#         T_transpose = T.match_buffer(var_T_transpose, (3, T.Cast("int64", n == 2)), "int32")
#         for ax0, ax1 in T.grid(3, T.Cast("int64", n == 2)):
#             with T.block("T_transpose"):
#                 v_ax0, v_ax1 = T.axis.remap("SS", [ax0, ax1])
#                 T.reads(A[v_ax1, v_ax0])
#                 T.writes(T_transpose[v_ax0, v_ax1])
#                 T_transpose[v_ax0, v_ax1] = A[v_ax1, v_ax0]
