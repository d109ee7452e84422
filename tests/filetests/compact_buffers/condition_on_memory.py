# A buffer keeps its size if a condition on memory decides whether an iteration writes it; a condition on indices does not matter.
# test opt --passes=CompactBuffers

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def on_memory(A: T.Buffer((64,), "float32"), C: T.Buffer((64,), "float32")):
        T.func_attr({"tir.is_scheduled": True})
        B = T.alloc_buffer((1,), "float32")
        for i in range(64):
            if A[i] > T.float32(0):
                B[0] = A[i]
            C[i] = B[0]

    @T.prim_func(private=True)
    def on_indices(A: T.Buffer((60,), "float32"), C: T.Buffer((60,), "float32")):
        T.func_attr({"tir.is_scheduled": True})
        B = T.alloc_buffer((60,), "float32")
        for i, j in T.grid(8, 8):
            if i * 8 + j < 60:
                B[i * 8 + j] = A[i * 8 + j]
                C[i * 8 + j] = B[i * 8 + j]

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func(private=True)
#     def on_memory(A: T.Buffer((64,), "float32"), C: T.Buffer((64,), "float32")):
#         T.func_attr({"tir.is_scheduled": True})
#         B = T.alloc_buffer((1,), "float32")
#         for i in range(64):
#             if A[i] > T.float32(0.0):
#                 B[0] = A[i]
#             C[i] = B[0]
#
#     @T.prim_func(private=True)
#     def on_indices(A: T.Buffer((60,), "float32"), C: T.Buffer((60,), "float32")):
#         T.func_attr({"tir.is_scheduled": True})
#         for i, j in T.grid(8, 8):
#             B = T.alloc_buffer((1,), "float32")
#             if i * 8 + j < 60:
#                 B[0] = A[i * 8 + j]
#                 C[i * 8 + j] = B[0]
