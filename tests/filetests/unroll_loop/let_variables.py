# Each copy of the body has variables of its own.
# test opt --passes=UnrollLoop

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def squares(A: T.Buffer((3,), "int64"), B: T.Buffer((3,), "int64")):
        for i in T.unroll(3):
            y: T.int64 = A[i] + i
            B[i] = y * y

    @R.function
    def main(x: R.Tensor((3,), "int64")) -> R.Tensor((3,), "int64"):
        cls = Module
        return R.call_tir(cls.squares, (x,), out_sinfo=R.Tensor((3,), "int64"))

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func(private=True)
#     def squares(A: T.Buffer((3,), "int64"), B: T.Buffer((3,), "int64")):
#         with T.LetStmt(A[0 + 0] + (0 + 0)) as y:
#             B[0 + 0] = y * y
#         with T.LetStmt(A[0 + 1] + (0 + 1)) as y:
#             B[0 + 1] = y * y
#         y: T.int64 = A[0 + 2] + (0 + 2)
#         B[0 + 2] = y * y
#
#     @R.function
#     def main(x: R.Tensor((3,), dtype="int64")) -> R.Tensor((3,), dtype="int64"):
#         cls = Module
#         gv: R.Tensor((3,), dtype="int64") = R.call_tir(cls.squares, (x,), out_sinfo=R.Tensor((3,), dtype="int64"))
#         return gv
