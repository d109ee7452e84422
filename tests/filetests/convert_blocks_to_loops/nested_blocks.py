# A block within a block: both disappear, and the buffer that the outer one allocates stays in the loop.
# test opt --passes=ConvertBlocksToLoops

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def twice(A: T.Buffer((2, 3), "float32"), B: T.Buffer((2, 3), "float32")):
        for i in range(2):
            with T.block("row"):
                vi = T.axis.spatial(2, i)
                row = T.alloc_buffer((3,), "float32")
                for j in range(3):
                    with T.block("load"):
                        vj = T.axis.spatial(3, j)
                        row[vj] = A[vi, vj] * T.float32(2)
                for j in range(3):
                    with T.block("store"):
                        vj = T.axis.spatial(3, j)
                        B[vi, vj] = row[2 - vj]

    @R.function
    def main(x: R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32"):
        cls = Module
        return R.call_tir(cls.twice, (x,), out_sinfo=R.Tensor((2, 3), "float32"))

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func(private=True)
#     def twice(A: T.Buffer((2, 3), "float32"), B: T.Buffer((2, 3), "float32")):
#         for i in range(2):
#             row = T.alloc_buffer((3,), "float32")
#             for j in range(3):
#                 row[j] = A[i, j] * T.float32(2.0)
#             for j in range(3):
#                 B[i, j] = row[2 - j]
#
#     @R.function
#     def main(x: R.Tensor((2, 3), dtype="float32")) -> R.Tensor((2, 3), dtype="float32"):
#         cls = Module
#         gv: R.Tensor((2, 3), dtype="float32") = R.call_tir(cls.twice, (x,), out_sinfo=R.Tensor((2, 3), dtype="float32"))
#         return gv
