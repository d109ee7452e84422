# A parallel loop that stores little per iteration runs many iterations per task.
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
    def vector_store(A: T.Buffer((64, 100, 8), "float32"), C: T.Buffer((64, 100, 8), "float32")):
        T.func_attr({"tir.is_scheduled": True})
        for i in T.parallel(64):
            for j in range(100):
                for k in T.vectorized(8):
                    C[i, j, k] = A[i, j, k]

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
#     def vector_store(A: T.Buffer((64, 100, 8), "float32"), C: T.Buffer((64, 100, 8), "float32")):
#         T.func_attr({"tir.is_scheduled": True})
#         for i in T.parallel(64, annotations={"grain": 5}):
#             for j in range(100):
#                 for k in T.vectorized(8):
#                     C[i, j, k] = A[i, j, k]
