# A parallel loop becomes serial if its iterations write the same elements of a temporary and read them.
# test opt --passes=CompactBuffers

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def overlapping(A: T.Buffer((66,), "float32"), C: T.Buffer((64,), "float32"), D: T.Buffer((64,), "float32")):
        T.func_attr({"tir.is_scheduled": True})
        B = T.alloc_buffer((66,), "float32")
        for i in T.parallel(64):
            for j in range(3):
                B[i + j] = B[i + j] + A[i + j]
            C[i] = B[i] + B[i + 2]

    @T.prim_func(private=True)
    def disjoint(A: T.Buffer((64, 4), "float32"), C: T.Buffer((64, 4), "float32")):
        T.func_attr({"tir.is_scheduled": True})
        B = T.alloc_buffer((64, 4), "float32")
        for i in T.parallel(64):
            for j in range(4):
                B[i, j] = B[i, j] + A[i, j]
            for j in range(4):
                C[i, j] = B[i, 3 - j]

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func(private=True)
#     def overlapping(A: T.Buffer((66,), "float32"), C: T.Buffer((64,), "float32"), D: T.Buffer((64,), "float32")):
#         T.func_attr({"tir.is_scheduled": True})
#         B = T.alloc_buffer((66,), "float32")
#         for i in range(64):
#             for j in range(3):
#                 B[i + j] = B[i + j] + A[i + j]
#             C[i] = B[i] + B[i + 2]
#
#     @T.prim_func(private=True)
#     def disjoint(A: T.Buffer((64, 4), "float32"), C: T.Buffer((64, 4), "float32")):
#         T.func_attr({"tir.is_scheduled": True})
#         B = T.alloc_buffer((64, 4), "float32")
#         for i in T.parallel(64):
#             for j in range(4):
#                 B[i, j] = B[i, j] + A[i, j]
#             for j in range(4):
#                 C[i, j] = B[i, 3 - j]
