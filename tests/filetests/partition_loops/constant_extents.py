# A loop with a constant extent is split at a constant; a condition that reads memory stays.
# test opt --passes=PartitionLoops,Simplify

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def f(A: T.Buffer((33,), "float32"), limit: T.Buffer((), "int64"), C: T.Buffer((33,), "float32")):
        T.func_attr({"tir.is_scheduled": True})
        for i in range(9):
            for j in range(4):
                if i * 4 + j < 33:
                    C[i * 4 + j] = A[i * 4 + j]
        for i in range(33):
            if i < limit[()]:
                C[i] = C[i] + T.float32(1)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func(private=True)
#     def f(A: T.Buffer((33,), "float32"), limit: T.Buffer((), "int64"), C: T.Buffer((33,), "float32")):
#         T.func_attr({"tir.is_scheduled": True})
#         for i, j in T.grid(8, 4):
#             C[i * 4 + j] = A[i * 4 + j]
#         C[32] = A[32]
#         for i in range(33):
#             if i < limit[()]:
#                 C[i] = C[i] + T.float32(1.0)
