# Constant right operands of matmuls and linear layers are packed, also with batch dims and for vectors.
# test opt --passes=OffloadKernels

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 3), "float32"), b: R.Tensor((17,), "float32")) -> R.Tensor(("n", 8), "float32"):
        with R.dataflow():
            y = R.linear(x, R.const([[-2.0, -3.0, 0.0], [-3.0, 3.0, 3.0], [3.0, 2.0, -1.0], [-3.0, 3.0, -4.0], [2.0, 2.0, -4.0], [3.0, 0.0, -1.0], [-3.0, 1.0, -4.0], [-4.0, -4.0, 4.0], [-4.0, 2.0, -1.0], [2.0, -4.0, 4.0], [-1.0, 3.0, 3.0], [4.0, -1.0, 1.0], [-1.0, -1.0, 3.0], [0.0, -4.0, 2.0], [4.0, -3.0, -2.0], [0.0, -3.0, 1.0], [4.0, 2.0, 4.0]], "float32"), b)
            z = R.nn.relu(y)
            gv = R.matmul(z, R.const([[-1.0, 0.0, 0.0, 3.0, 4.0, 2.0, -4.0, 3.0], [-1.0, 2.0, 2.0, -2.0, 1.0, 4.0, 1.0, -3.0], [3.0, 4.0, -3.0, -2.0, 4.0, 2.0, 1.0, 3.0], [-4.0, 3.0, -4.0, 0.0, 2.0, -2.0, -2.0, 4.0], [-1.0, -4.0, -1.0, 4.0, 4.0, -1.0, 2.0, 4.0], [1.0, 1.0, 3.0, 0.0, 4.0, -4.0, 2.0, 4.0], [-2.0, 4.0, 4.0, -1.0, 2.0, -4.0, 3.0, 1.0], [4.0, -1.0, 4.0, 2.0, 3.0, 1.0, 2.0, 1.0], [-4.0, 4.0, 4.0, 1.0, 3.0, -4.0, -1.0, -2.0], [4.0, -2.0, -3.0, 4.0, 0.0, -4.0, -3.0, -3.0], [-4.0, 3.0, -4.0, 0.0, -1.0, 0.0, -3.0, -2.0], [1.0, 0.0, -3.0, -2.0, -2.0, 0.0, 4.0, -2.0], [0.0, 0.0, 3.0, 1.0, 3.0, 3.0, -3.0, -4.0], [0.0, 2.0, 1.0, 2.0, -1.0, 0.0, -3.0, 0.0], [4.0, -1.0, 2.0, -4.0, -1.0, -4.0, 2.0, -2.0], [-4.0, -2.0, 3.0, 4.0, 2.0, 4.0, -1.0, 4.0], [3.0, -1.0, 4.0, -4.0, 2.0, 1.0, 2.0, -4.0]], "float32"))
            R.output(gv)
        return gv

    @R.function
    def batched(x: R.Tensor(("b", "n", 2), "float32")) -> R.Tensor(("b", "n", 9), "float32"):
        w = R.matmul(x, R.const([[0.0, -2.0, -1.0, -4.0, 0.0, -3.0, -3.0, 0.0, 0.0], [-2.0, 2.0, 0.0, -2.0, -4.0, 4.0, -4.0, -1.0, 3.0]], "float32"))
        return w

    @R.function
    def vector(x: R.Tensor((2,), "float32")) -> R.Tensor((9,), "float32"):
        w = R.matmul(x, R.const([[-2.0, 4.0, -4.0, 2.0, -1.0, 1.0, -3.0, -1.0, 2.0], [-1.0, 3.0, -3.0, 2.0, 0.0, 4.0, 3.0, -4.0, 1.0]], "float32"))
        return w

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# metadata = {
#     "relax.expr.Constant": [
#         I.tensor((1, 3, 32), "float32", [[[-2.0, -3.0, 3.0, -3.0, 2.0, 3.0, -3.0, -4.0, -4.0, 2.0, -1.0, 4.0,
#             -1.0, 0.0, 4.0, 0.0, 4.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0,
#             0.0], [-3.0, 3.0, 2.0, 3.0, 2.0, 0.0, 1.0, -4.0, 2.0, -4.0, 3.0, -1.0, -1.0, -4.0, -3.0, -3.0, 2.0,
#             0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 3.0, -1.0, -4.0,
#             -4.0, -1.0, -4.0, 4.0, -1.0, 4.0, 3.0, 1.0, 3.0, 2.0, -2.0, 1.0, 4.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0,
#             0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]]]),
#         I.tensor((1, 17, 16), "float32", [[[-1.0, 0.0, 0.0, 3.0, 4.0, 2.0, -4.0, 3.0, 0.0, 0.0, 0.0, 0.0, 0.0,
#             0.0, 0.0, 0.0], [-1.0, 2.0, 2.0, -2.0, 1.0, 4.0, 1.0, -3.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0,
#             0.0], [3.0, 4.0, -3.0, -2.0, 4.0, 2.0, 1.0, 3.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [-4.0,
#             3.0, -4.0, 0.0, 2.0, -2.0, -2.0, 4.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [-1.0, -4.0, -1.0,
#             4.0, 4.0, -1.0, 2.0, 4.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [1.0, 1.0, 3.0, 0.0, 4.0, -4.0,
#             2.0, 4.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [-2.0, 4.0, 4.0, -1.0, 2.0, -4.0, 3.0, 1.0, 0.0,
#             0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [4.0, -1.0, 4.0, 2.0, 3.0, 1.0, 2.0, 1.0, 0.0, 0.0, 0.0, 0.0,
#             0.0, 0.0, 0.0, 0.0], [-4.0, 4.0, 4.0, 1.0, 3.0, -4.0, -1.0, -2.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0,
#             0.0, 0.0], [4.0, -2.0, -3.0, 4.0, 0.0, -4.0, -3.0, -3.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
#             [-4.0, 3.0, -4.0, 0.0, -1.0, 0.0, -3.0, -2.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [1.0, 0.0,
#             -3.0, -2.0, -2.0, 0.0, 4.0, -2.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 3.0, 1.0,
#             3.0, 3.0, -3.0, -4.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 2.0, 1.0, 2.0, -1.0, 0.0,
#             -3.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [4.0, -1.0, 2.0, -4.0, -1.0, -4.0, 2.0, -2.0,
#             0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [-4.0, -2.0, 3.0, 4.0, 2.0, 4.0, -1.0, 4.0, 0.0, 0.0, 0.0,
#             0.0, 0.0, 0.0, 0.0, 0.0], [3.0, -1.0, 4.0, -4.0, 2.0, 1.0, 2.0, -4.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0,
#             0.0, 0.0]]]),
#         I.tensor((1, 2, 16), "float32", [[[0.0, -2.0, -1.0, -4.0, 0.0, -3.0, -3.0, 0.0, 0.0, 0.0, 0.0, 0.0,
#             0.0, 0.0, 0.0, 0.0], [-2.0, 2.0, 0.0, -2.0, -4.0, 4.0, -4.0, -1.0, 3.0, 0.0, 0.0, 0.0, 0.0, 0.0,
#             0.0, 0.0]]]),
#         I.tensor((1, 2, 16), "float32", [[[-2.0, 4.0, -4.0, 2.0, -1.0, 1.0, -3.0, -1.0, 2.0, 0.0, 0.0, 0.0,
#             0.0, 0.0, 0.0, 0.0], [-1.0, 3.0, -3.0, 2.0, 0.0, 4.0, 3.0, -4.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0,
#             0.0]]]),
#     ]
# }
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", 3), dtype="float32"), b: R.Tensor((17,), dtype="float32")) -> R.Tensor(("n", 8), dtype="float32"):
#         n = T.int64()
#         cls = Module
#         with R.dataflow():
#             lv: R.Tensor((n, 17), dtype="float32") = R.call_tir(cls.matmul_packed, (x, metadata["relax.expr.Constant"][0]), out_sinfo=R.Tensor((n, 17), dtype="float32"))
#             y: R.Tensor((n, 17), dtype="float32") = R.add(lv, b)
#             z: R.Tensor((n, 17), dtype="float32") = R.nn.relu(y)
#             gv: R.Tensor((n, 8), dtype="float32") = R.call_tir(cls.matmul_packed1, (z, metadata["relax.expr.Constant"][1]), out_sinfo=R.Tensor((n, 8), dtype="float32"))
#             R.output(gv)
#         return gv
#
#     @R.function
#     def batched(x: R.Tensor(("b", "n", 2), dtype="float32")) -> R.Tensor(("b", "n", 9), dtype="float32"):
#         b = T.int64()
#         n = T.int64()
#         cls = Module
#         w: R.Tensor((b, n, 9), dtype="float32") = R.call_tir(cls.matmul_packed2, (x, metadata["relax.expr.Constant"][2]), out_sinfo=R.Tensor((b, n, 9), dtype="float32"))
#         return w
#
#     @R.function
#     def vector(x: R.Tensor((2,), dtype="float32")) -> R.Tensor((9,), dtype="float32"):
#         cls = Module
#         w: R.Tensor((9,), dtype="float32") = R.call_tir(cls.matmul_packed3, (x, metadata["relax.expr.Constant"][3]), out_sinfo=R.Tensor((9,), dtype="float32"))
#         return w
#
#     @T.prim_func(private=True)
#     def matmul_packed(var_A: T.handle, B: T.Buffer((1, 3, 32), "float32"), var_matmul: T.handle):
#         T.func_attr({"tir.noalias": True})
#         n = T.int64()
#         A = T.match_buffer(var_A, (n, 3), "float32")
#         matmul = T.match_buffer(var_matmul, (n, 17), "float32")
#         for ax0, ax1, k in T.grid(n, 17, 3):
#             with T.block("matmul"):
#                 v_ax0, v_ax1, v_k = T.axis.remap("SSR", [ax0, ax1, k])
#                 T.reads(A[v_ax0, v_k], B[v_ax1 // 32, v_k, v_ax1 % 32])
#                 T.writes(matmul[v_ax0, v_ax1])
#                 with T.init():
#                     matmul[v_ax0, v_ax1] = T.float32(0.0)
#                 matmul[v_ax0, v_ax1] = matmul[v_ax0, v_ax1] + A[v_ax0, v_k] * B[v_ax1 // 32, v_k, v_ax1 % 32]
#
#     @T.prim_func(private=True)
#     def matmul_packed1(var_A: T.handle, B: T.Buffer((1, 17, 16), "float32"), var_matmul: T.handle):
#         T.func_attr({"tir.noalias": True})
#         n = T.int64()
#         A = T.match_buffer(var_A, (n, 17), "float32")
#         matmul = T.match_buffer(var_matmul, (n, 8), "float32")
#         for ax0, ax1, k in T.grid(n, 8, 17):
#             with T.block("matmul"):
#                 v_ax0, v_ax1, v_k = T.axis.remap("SSR", [ax0, ax1, k])
#                 T.reads(A[v_ax0, v_k], B[v_ax1 // 16, v_k, v_ax1 % 16])
#                 T.writes(matmul[v_ax0, v_ax1])
#                 with T.init():
#                     matmul[v_ax0, v_ax1] = T.float32(0.0)
#                 matmul[v_ax0, v_ax1] = matmul[v_ax0, v_ax1] + A[v_ax0, v_k] * B[v_ax1 // 16, v_k, v_ax1 % 16]
#
#     @T.prim_func(private=True)
#     def matmul_packed2(var_A: T.handle, B: T.Buffer((1, 2, 16), "float32"), var_matmul: T.handle):
#         T.func_attr({"tir.noalias": True})
#         b = T.int64()
#         n = T.int64()
#         A = T.match_buffer(var_A, (b, n, 2), "float32")
#         matmul = T.match_buffer(var_matmul, (b, n, 9), "float32")
#         for ax0, ax1, ax2, k in T.grid(b, n, 9, 2):
#             with T.block("matmul"):
#                 v_ax0, v_ax1, v_ax2, v_k = T.axis.remap("SSSR", [ax0, ax1, ax2, k])
#                 T.reads(A[v_ax0, v_ax1, v_k], B[v_ax2 // 16, v_k, v_ax2 % 16])
#                 T.writes(matmul[v_ax0, v_ax1, v_ax2])
#                 with T.init():
#                     matmul[v_ax0, v_ax1, v_ax2] = T.float32(0.0)
#                 matmul[v_ax0, v_ax1, v_ax2] = matmul[v_ax0, v_ax1, v_ax2] + A[v_ax0, v_ax1, v_k] * B[v_ax2 // 16, v_k, v_ax2 % 16]
#
#     @T.prim_func(private=True)
#     def matmul_packed3(A: T.Buffer((2,), "float32"), B: T.Buffer((1, 2, 16), "float32"), matmul: T.Buffer((9,), "float32")):
#         T.func_attr({"tir.noalias": True})
#         for ax0, k in T.grid(9, 2):
#             with T.block("matmul"):
#                 v_ax0, v_k = T.axis.remap("SR", [ax0, k])
#                 T.reads(A[v_k], B[v_ax0 // 16, v_k, v_ax0 % 16])
#                 T.writes(matmul[v_ax0])
#                 with T.init():
#                     matmul[v_ax0] = T.float32(0.0)
#                 matmul[v_ax0] = matmul[v_ax0] + A[v_k] * B[v_ax0 // 16, v_k, v_ax0 % 16]
