# A grain that the user has annotated is kept.
# test opt --passes=EstimateParallelWork

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def annotated(A: T.Buffer((64,), "float32"), C: T.Buffer((64,), "float32")):
        T.func_attr({"tir.is_scheduled": True})
        for i in T.parallel(64, annotations={"grain": 8}):
            C[i] = A[i]

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func(private=True)
#     def annotated(A: T.Buffer((64,), "float32"), C: T.Buffer((64,), "float32")):
#         T.func_attr({"tir.is_scheduled": True})
#         for i in T.parallel(64, annotations={"grain": 8}):
#             C[i] = A[i]
