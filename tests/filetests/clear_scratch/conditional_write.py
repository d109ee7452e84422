# A buffer that is written only under a condition is cleared, in each iteration of the loop that allocates it.
# test opt --passes=ClearScratch

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def positive(A: T.Buffer((3, 2), "float32"), B: T.Buffer((3, 2), "float32")):
        for i in range(3):
            row = T.alloc_buffer((2,), "float32")
            for j in range(2):
                if A[i, j] > T.float32(0):
                    row[j] = A[i, j]
            for j in range(2):
                B[i, j] = T.float32(0)
                if A[i, j] > T.float32(0):
                    B[i, j] = row[j]

    @R.function
    def main(x: R.Tensor((3, 2), "float32")) -> R.Tensor((3, 2), "float32"):
        cls = Module
        return R.call_tir(cls.positive, (x,), out_sinfo=R.Tensor((3, 2), "float32"))

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func(private=True)
#     def positive(A: T.Buffer((3, 2), "float32"), B: T.Buffer((3, 2), "float32")):
#         for i in range(3):
#             row = T.alloc_buffer((2,), "float32")
#             for i0 in range(2):
#                 with T.block("row_clear"):
#                     v0 = T.axis.spatial(2, i0)
#                     row[v0] = T.float32(0.0)
#             for j in range(2):
#                 if A[i, j] > T.float32(0.0):
#                     row[j] = A[i, j]
#             for j in range(2):
#                 B[i, j] = T.float32(0.0)
#                 if A[i, j] > T.float32(0.0):
#                     B[i, j] = row[j]
#
#     @R.function
#     def main(x: R.Tensor((3, 2), dtype="float32")) -> R.Tensor((3, 2), dtype="float32"):
#         cls = Module
#         gv: R.Tensor((3, 2), dtype="float32") = R.call_tir(cls.positive, (x,), out_sinfo=R.Tensor((3, 2), dtype="float32"))
#         return gv
