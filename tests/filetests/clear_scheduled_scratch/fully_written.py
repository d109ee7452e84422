# A buffer of a user-scheduled function that is written as a whole before it is read is not cleared.
# test opt --passes=ClearScheduledScratch

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def through(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        T.func_attr({"tir.is_scheduled": True})
        C = T.alloc_buffer((8,), "float32")
        for i in range(8):
            C[i] = A[i]
        for i in range(8):
            B[i] = C[7 - i]

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func(private=True)
#     def through(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
#         T.func_attr({"tir.is_scheduled": True})
#         C = T.alloc_buffer((8,), "float32")
#         for i in range(8):
#             C[i] = A[i]
#         for i in range(8):
#             B[i] = C[7 - i]
