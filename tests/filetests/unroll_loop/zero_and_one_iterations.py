# A loop of no iteration disappears, a loop of one iteration leaves its body, and a start other than 0 is added to each index.
# test opt --passes=UnrollLoop

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def few(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            B[i] = A[i]
        for i in T.unroll(0):
            B[i] = T.float32(7)
        for i in T.unroll(1):
            B[i] = B[i] + T.float32(1)
        for i in T.unroll(2, 4):
            B[i] = B[i] + T.float32(2)

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        cls = Module
        return R.call_tir(cls.few, (x,), out_sinfo=R.Tensor((4,), "float32"))

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func(private=True)
#     def few(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
#         for i in range(4):
#             B[i] = A[i]
#         B[0 + 0] = B[0 + 0] + T.float32(1.0)
#         B[2 + 0] = B[2 + 0] + T.float32(2.0)
#         B[2 + 1] = B[2 + 1] + T.float32(2.0)
#
#     @R.function
#     def main(x: R.Tensor((4,), dtype="float32")) -> R.Tensor((4,), dtype="float32"):
#         cls = Module
#         gv: R.Tensor((4,), dtype="float32") = R.call_tir(cls.few, (x,), out_sinfo=R.Tensor((4,), dtype="float32"))
#         return gv
