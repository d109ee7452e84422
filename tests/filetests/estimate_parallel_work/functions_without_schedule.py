# Parallel loops of functions that no user has scheduled get no estimate.
# test opt --passes=EstimateParallelWork

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def parallel(A: T.Buffer((64,), "float32"), C: T.Buffer((64,), "float32")):
        for i in T.parallel(64):
            C[i] = A[i]

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func(private=True)
#     def parallel(A: T.Buffer((64,), "float32"), C: T.Buffer((64,), "float32")):
#         for i in T.parallel(64):
#             C[i] = A[i]
