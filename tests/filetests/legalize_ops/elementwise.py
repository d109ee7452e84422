# Elementwise operators with a broadcast operand and a constant operand become loop functions.
# test opt --passes=LegalizeOps

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32"), y: R.Tensor((4,), "float32")) -> R.Tensor(("n", 4), "float32"):
        with R.dataflow():
            a = R.add(x, y)
            b = R.multiply(a, R.const(2.0, "float32"))
            c = R.nn.relu(b)
            R.output(c)
        return c

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", 4), dtype="float32"), y: R.Tensor((4,), dtype="float32")) -> R.Tensor(("n", 4), dtype="float32"):
#         n = T.int64()
#         cls = Module
#         with R.dataflow():
#             a: R.Tensor((n, 4), dtype="float32") = R.call_tir(cls.add, (x, y), out_sinfo=R.Tensor((n, 4), dtype="float32"))
#             b: R.Tensor((n, 4), dtype="float32") = R.call_tir(cls.multiply, (a,), out_sinfo=R.Tensor((n, 4), dtype="float32"))
#             c: R.Tensor((n, 4), dtype="float32") = R.call_tir(cls.relu, (b,), out_sinfo=R.Tensor((n, 4), dtype="float32"))
#             R.output(c)
#         return c
#
#     @T.prim_func(private=True)
#     def add(var_A: T.handle, B: T.Buffer((4,), "float32"), var_T_add: T.handle):
#         T.func_attr({"tir.noalias": True})
#         n = T.int64()
#         A = T.match_buffer(var_A, (n, 4), "float32")
#         T_add = T.match_buffer(var_T_add, (n, 4), "float32")
#         for ax0, ax1 in T.grid(n, 4):
#             with T.block("T_add"):
#                 v_ax0, v_ax1 = T.axis.remap("SS", [ax0, ax1])
#                 T.reads(A[v_ax0, v_ax1], B[v_ax1])
#                 T.writes(T_add[v_ax0, v_ax1])
#                 T_add[v_ax0, v_ax1] = A[v_ax0, v_ax1] + B[v_ax1]
#
#     @T.prim_func(private=True)
#     def multiply(var_A: T.handle, var_T_multiply: T.handle):
#         T.func_attr({"tir.noalias": True})
#         n = T.int64()
#         A = T.match_buffer(var_A, (n, 4), "float32")
#         T_multiply = T.match_buffer(var_T_multiply, (n, 4), "float32")
#         for ax0, ax1 in T.grid(n, 4):
#             with T.block("T_multiply"):
#                 v_ax0, v_ax1 = T.axis.remap("SS", [ax0, ax1])
#                 T.reads(A[v_ax0, v_ax1])
#                 T.writes(T_multiply[v_ax0, v_ax1])
#                 T_multiply[v_ax0, v_ax1] = A[v_ax0, v_ax1] * T.float32(2.0)
#
#     @T.prim_func(private=True)
#     def relu(var_A: T.handle, var_compute: T.handle):
#         T.func_attr({"tir.noalias": True})
#         n = T.int64()
#         A = T.match_buffer(var_A, (n, 4), "float32")
#         compute = T.match_buffer(var_compute, (n, 4), "float32")
#         for i0, i1 in T.grid(n, 4):
#             with T.block("compute"):
#                 v_i0, v_i1 = T.axis.remap("SS", [i0, i1])
#                 T.reads(A[v_i0, v_i1])
#                 T.writes(compute[v_i0, v_i1])
#                 compute[v_i0, v_i1] = T.max(A[v_i0, v_i1], T.float32(0.0))
