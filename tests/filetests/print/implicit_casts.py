# Operands of different types and stored values are converted by the parser: the printed function has explicit casts.
# test print

from pliant.script import ir as I, tir as T


@I.ir_module
class Module:
    @T.prim_func
    def operands(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float64")):
        for i in range(4):
            B[i] = B[i] + A[i]

    @T.prim_func
    def stored(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float64")):
        for i in range(4):
            B[i] = A[i]

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func
#     def operands(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float64")):
#         for i in range(4):
#             B[i] = B[i] + T.Cast("float64", A[i])
#
#     @T.prim_func
#     def stored(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float64")):
#         for i in range(4):
#             B[i] = T.Cast("float64", A[i])
