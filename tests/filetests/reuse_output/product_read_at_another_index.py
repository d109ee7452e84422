# The last stage reads the product at another index than it writes, so the output cannot hold both.
# test opt --passes=ReuseOutput

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def reversed_product(A: T.Buffer((4, 2), "float32"), B: T.Buffer((2, 3), "float32"), D: T.Buffer((4, 3), "float32")):
        C = T.alloc_buffer((4, 3), "float32")
        for i, j, k in T.grid(4, 3, 2):
            with T.block("matmul"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
        for i, j in T.grid(4, 3):
            with T.block("reverse"):
                vi, vj = T.axis.remap("SS", [i, j])
                D[vi, vj] = C[3 - vi, vj]

    @R.function
    def main(x: R.Tensor((4, 2), "float32"), w: R.Tensor((2, 3), "float32")) -> R.Tensor((4, 3), "float32"):
        cls = Module
        return R.call_tir(cls.reversed_product, (x, w), out_sinfo=R.Tensor((4, 3), "float32"))

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func(private=True)
#     def reversed_product(A: T.Buffer((4, 2), "float32"), B: T.Buffer((2, 3), "float32"), D: T.Buffer((4, 3), "float32")):
#         C = T.alloc_buffer((4, 3), "float32")
#         for i, j, k in T.grid(4, 3, 2):
#             with T.block("matmul"):
#                 vi, vj, vk = T.axis.remap("SSR", [i, j, k])
#                 with T.init():
#                     C[vi, vj] = T.float32(0.0)
#                 C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
#         for i, j in T.grid(4, 3):
#             with T.block("reverse"):
#                 vi, vj = T.axis.remap("SS", [i, j])
#                 D[vi, vj] = C[3 - vi, vj]
#
#     @R.function
#     def main(x: R.Tensor((4, 2), dtype="float32"), w: R.Tensor((2, 3), dtype="float32")) -> R.Tensor((4, 3), dtype="float32"):
#         cls = Module
#         gv: R.Tensor((4, 3), dtype="float32") = R.call_tir(cls.reversed_product, (x, w), out_sinfo=R.Tensor((4, 3), dtype="float32"))
#         return gv
