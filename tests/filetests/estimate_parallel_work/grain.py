# A loop that stores little per iteration runs many iterations per task; a negative grain counts the tasks that an iteration is worth.
# test opt --passes=EstimateParallelWork

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def one_store(A: T.Buffer((64,), "float32"), C: T.Buffer((64,), "float32")):
        T.func_attr({"tir.is_scheduled": True})
        for i in T.parallel(64):
            C[i] = A[i]

    @T.prim_func(private=True)
    def many_stores(a: T.handle, c: T.handle):
        T.func_attr({"tir.is_scheduled": True})
        n = T.int64()
        A = T.match_buffer(a, (64, n, 64), "float32")
        C = T.match_buffer(c, (64, n, 64), "float32")
        for i in T.parallel(64):
            for j, k in T.grid(n, 64):
                C[i, j, k] = A[i, j, k]

    @T.prim_func(private=True)
    def vector_store(A: T.Buffer((64, 100, 8), "float32"), C: T.Buffer((64, 100, 8), "float32")):
        T.func_attr({"tir.is_scheduled": True})
        for i in T.parallel(64):
            for j in range(100):
                for k in T.vectorized(8):
                    C[i, j, k] = A[i, j, k]

    @T.prim_func(private=True)
    def not_scheduled(A: T.Buffer((64,), "float32"), C: T.Buffer((64,), "float32")):
        for i in T.parallel(64):
            C[i] = A[i]

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func(private=True)
#     def one_store(A: T.Buffer((64,), "float32"), C: T.Buffer((64,), "float32")):
#         T.func_attr({"tir.is_scheduled": True})
#         for i in T.parallel(64, annotations={"grain": 500}):
#             C[i] = A[i]
#
#     @T.prim_func(private=True)
#     def many_stores(a: T.handle, c: T.handle):
#         T.func_attr({"tir.is_scheduled": True})
#         n = T.int64()
#         A = T.match_buffer(a, (64, n, 64), "float32")
#         C = T.match_buffer(c, (64, n, 64), "float32")
#         for i in T.parallel(64, annotations={"grain": -8}):
#             for j, k in T.grid(n, 64):
#                 C[i, j, k] = A[i, j, k]
#
#     @T.prim_func(private=True)
#     def vector_store(A: T.Buffer((64, 100, 8), "float32"), C: T.Buffer((64, 100, 8), "float32")):
#         T.func_attr({"tir.is_scheduled": True})
#         for i in T.parallel(64, annotations={"grain": 5}):
#             for j in range(100):
#                 for k in T.vectorized(8):
#                     C[i, j, k] = A[i, j, k]
#
#     @T.prim_func(private=True)
#     def not_scheduled(A: T.Buffer((64,), "float32"), C: T.Buffer((64,), "float32")):
#         for i in T.parallel(64):
#             C[i] = A[i]
