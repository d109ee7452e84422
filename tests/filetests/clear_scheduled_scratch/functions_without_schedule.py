# Buffers of functions that no user has scheduled are left to ClearScratch.
# test opt --passes=ClearScheduledScratch

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def through(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        C = T.alloc_buffer((8,), "float32")
        for i in range(4):
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
#         C = T.alloc_buffer((8,), "float32")
#         for i in range(4):
#             C[i] = A[i]
#         for i in range(8):
#             B[i] = C[7 - i]
