# No index is inside of a buffer without elements, but a loop over its dim has no iteration.
# test opt --passes=CheckBounds

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def copy(A: T.Buffer((0, 4), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            B[i] = T.float32(1)
        for i, j in T.grid(0, 4):
            B[j] = B[j] + A[i, j]

    @R.function
    def main(x: R.Tensor((0, 4), "float32")) -> R.Tensor((4,), "float32"):
        cls = Module
        return R.call_tir(cls.copy, (x,), out_sinfo=R.Tensor((4,), "float32"))

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func(private=True)
#     def copy(A: T.Buffer((0, 4), "float32"), B: T.Buffer((4,), "float32")):
#         for i in range(4):
#             B[i] = T.float32(1.0)
#         for i, j in T.grid(0, 4):
#             B[j] = B[j] + A[i, j]
#
#     @R.function
#     def main(x: R.Tensor((0, 4), dtype="float32")) -> R.Tensor((4,), dtype="float32"):
#         cls = Module
#         gv: R.Tensor((4,), dtype="float32") = R.call_tir(cls.copy, (x,), out_sinfo=R.Tensor((4,), dtype="float32"))
#         return gv
