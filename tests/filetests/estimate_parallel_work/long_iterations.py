# A negative grain counts the tasks that one long iteration is worth; a loop of symbolic extent counts as 64 iterations.
# test opt --passes=EstimateParallelWork

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def many_stores(a: T.handle, c: T.handle):
        T.func_attr({"tir.is_scheduled": True})
        n = T.int64()
        A = T.match_buffer(a, (64, n, 64), "float32")
        C = T.match_buffer(c, (64, n, 64), "float32")
        for i in T.parallel(64):
            for j, k in T.grid(n, 64):
                C[i, j, k] = A[i, j, k]

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func(private=True)
#     def many_stores(a: T.handle, c: T.handle):
#         T.func_attr({"tir.is_scheduled": True})
#         n = T.int64()
#         A = T.match_buffer(a, (64, n, 64), "float32")
#         C = T.match_buffer(c, (64, n, 64), "float32")
#         for i in T.parallel(64, annotations={"grain": -8}):
#             for j, k in T.grid(n, 64):
#                 C[i, j, k] = A[i, j, k]
