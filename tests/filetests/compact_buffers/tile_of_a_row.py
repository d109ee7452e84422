# A buffer that one iteration writes and reads shrinks to the region of that iteration.
# test opt --passes=CompactBuffers

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def f(A: T.Buffer((64,), "float32"), C: T.Buffer((64,), "float32")):
        T.func_attr({"tir.is_scheduled": True})
        B = T.alloc_buffer((64,), "float32")
        for i in range(16):
            for j in range(4):
                B[i * 4 + j] = A[i * 4 + j] * T.float32(2)
            for j in range(4):
                C[i * 4 + j] = B[i * 4 + j] + T.float32(1)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func(private=True)
#     def f(A: T.Buffer((64,), "float32"), C: T.Buffer((64,), "float32")):
#         T.func_attr({"tir.is_scheduled": True})
#         for i in range(16):
#             B = T.alloc_buffer((4,), "float32")
#             for j in range(4):
#                 B[j] = A[i * 4 + j] * T.float32(2.0)
#             for j in range(4):
#                 C[i * 4 + j] = B[j] + T.float32(1.0)
