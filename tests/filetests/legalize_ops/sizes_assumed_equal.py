# Sizes that are assumed equal are checked first, with messages that name the user's dims. The sizes that file tests run at
# differ from each other; tests/python/operators/test_invalid_operands.py runs every operator at sizes that agree.
# test opt --passes=LegalizeOps
# no-run: the sizes that files run at differ from each other

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", "k"), "float32"), y: R.Tensor(("m", 4), "float32")) -> R.Object:
        with R.dataflow():
            z = R.matmul(x, y)
            R.output(z)
        return z

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", "k"), dtype="float32"), y: R.Tensor(("m", 4), dtype="float32")) -> R.Object:
#         n = T.int64()
#         k = T.int64()
#         m = T.int64()
#         cls = Module
#         with R.dataflow():
#             z: R.Tensor((n, 4), dtype="float32") = R.call_tir(cls.matmul, (x, y), out_sinfo=R.Tensor((n, 4), dtype="float32"))
#             R.output(z)
#         return z
#
#     @T.prim_func(private=True)
#     def matmul(var_A: T.handle, var_B: T.handle, var_matmul: T.handle):
#         T.func_attr({"tir.noalias": True})
#         n = T.int64()
#         k = T.int64()
#         m = T.int64()
#         A = T.match_buffer(var_A, (n, k), "float32")
#         B = T.match_buffer(var_B, (m, 4), "float32")
#         matmul = T.match_buffer(var_matmul, (n, 4), "float32")
#         with T.block("matmul_check"):
#             T.reads()
#             T.writes()
#             assert T.explain(m == k, m, k), "ShapeError: relax.matmul: dim 0 of x2, m = {0}, must be k = {1}"
#         for i, j, k1 in T.grid(n, 4, k):
#             with T.block("matmul"):
#                 v_i, v_j, v_k = T.axis.remap("SSR", [i, j, k1])
#                 T.reads(A[v_i, v_k], B[v_k, v_j])
#                 T.writes(matmul[v_i, v_j])
#                 with T.init():
#                     matmul[v_i, v_j] = T.float32(0.0)
#                 matmul[v_i, v_j] = matmul[v_i, v_j] + A[v_i, v_k] * B[v_k, v_j]
