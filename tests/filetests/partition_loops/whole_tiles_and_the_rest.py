# The first loop runs the tiles that are full, without the condition; the second one ends the inner loop early.
# test opt --passes=PartitionLoops,Simplify

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def f(a: T.handle, c: T.handle):
        T.func_attr({"tir.is_scheduled": True})
        n = T.int64()
        A = T.match_buffer(a, (n,), "float32")
        C = T.match_buffer(c, (n,), "float32")
        for i in T.parallel((n + 15) // 16):
            for j in T.vectorized(16):
                if i * 16 + j < n:
                    C[i * 16 + j] = A[i * 16 + j] + T.float32(1)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func(private=True)
#     def f(a: T.handle, c: T.handle):
#         T.func_attr({"tir.is_scheduled": True})
#         n = T.int64()
#         A = T.match_buffer(a, (n,), "float32")
#         C = T.match_buffer(c, (n,), "float32")
#         for i in T.parallel(T.max(T.min(n // 16, (n + 15) // 16), 0)):
#             for j in T.vectorized(16):
#                 C[i * 16 + j] = A[i * 16 + j] + T.float32(1.0)
#         for i in T.parallel((n + 15) // 16 - T.max(T.min(n // 16, (n + 15) // 16), 0)):
#             for j in range(T.max(T.min(16, n - T.max(T.min((n + 15) // 16, n // 16), 0) * 16 - i * 16), 0)):
#                 C[(T.max(T.min(n // 16, (n + 15) // 16), 0) + i) * 16 + j] = A[(T.max(T.min(n // 16, (n + 15) // 16), 0) + i) * 16 + j] + T.float32(1.0)
