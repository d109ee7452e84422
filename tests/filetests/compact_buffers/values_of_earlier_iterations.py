# A buffer keeps its size if an iteration reads what an earlier one has written, or if the function is not scheduled.
# test opt --passes=CompactBuffers

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def carried(A: T.Buffer((64,), "float32"), C: T.Buffer((64,), "float32")):
        T.func_attr({"tir.is_scheduled": True})
        B = T.alloc_buffer((65,), "float32")
        for i in range(64):
            B[i + 1] = B[i] + A[i]
            C[i] = B[i + 1]

    @T.prim_func(private=True)
    def not_scheduled(A: T.Buffer((64,), "float32"), C: T.Buffer((64,), "float32")):
        B = T.alloc_buffer((64,), "float32")
        for i in range(64):
            B[i] = A[i] * T.float32(2)
            C[i] = B[i] + T.float32(1)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func(private=True)
#     def carried(A: T.Buffer((64,), "float32"), C: T.Buffer((64,), "float32")):
#         T.func_attr({"tir.is_scheduled": True})
#         B = T.alloc_buffer((65,), "float32")
#         for i in range(64):
#             B[i + 1] = B[i] + A[i]
#             C[i] = B[i + 1]
#
#     @T.prim_func(private=True)
#     def not_scheduled(A: T.Buffer((64,), "float32"), C: T.Buffer((64,), "float32")):
#         B = T.alloc_buffer((64,), "float32")
#         for i in range(64):
#             B[i] = A[i] * T.float32(2.0)
#             C[i] = B[i] + T.float32(1.0)
