# The region contains the elements before and after those that an iteration computes.
# test opt --passes=CompactBuffers

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def f(A: T.Buffer((66,), "float32"), C: T.Buffer((64,), "float32")):
        T.func_attr({"tir.is_scheduled": True})
        B = T.alloc_buffer((66,), "float32")
        for i in range(16):
            for j in range(6):
                B[i * 4 + j] = A[i * 4 + j] * T.float32(2)
            for j in range(4):
                C[i * 4 + j] = B[i * 4 + j] + B[i * 4 + j + 1] + B[i * 4 + j + 2]

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func(private=True)
#     def f(A: T.Buffer((66,), "float32"), C: T.Buffer((64,), "float32")):
#         T.func_attr({"tir.is_scheduled": True})
#         for i in range(16):
#             B = T.alloc_buffer((6,), "float32")
#             for j in range(6):
#                 B[j] = A[i * 4 + j] * T.float32(2.0)
#             for j in range(4):
#                 C[i * 4 + j] = B[j] + B[j + 1] + B[j + 2]
