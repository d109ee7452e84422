# Each of two nested loops is split, and a condition moves out of the loop on which it does not depend.
# test opt --passes=PartitionLoops,Simplify

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def f(a: T.handle, c: T.handle):
        T.func_attr({"tir.is_scheduled": True})
        n = T.int64()
        m = T.int64()
        A = T.match_buffer(a, (n, m), "float32")
        C = T.match_buffer(c, (n, m), "float32")
        for i, j in T.grid((n + 3) // 4, (m + 7) // 8):
            for k, l in T.grid(4, 8):
                if i * 4 + k < n and j * 8 + l < m:
                    C[i * 4 + k, j * 8 + l] = A[i * 4 + k, j * 8 + l]

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func(private=True)
#     def f(a: T.handle, c: T.handle):
#         T.func_attr({"tir.is_scheduled": True})
#         n = T.int64()
#         m = T.int64()
#         A = T.match_buffer(a, (n, m), "float32")
#         C = T.match_buffer(c, (n, m), "float32")
#         for i in range(T.max(T.min(n // 4, (n + 3) // 4), 0)):
#             for j, k, l in T.grid(T.max(T.min(m // 8, (m + 7) // 8), 0), 4, 8):
#                 C[i * 4 + k, j * 8 + l] = A[i * 4 + k, j * 8 + l]
#             for j, k in T.grid((m + 7) // 8 - T.max(T.min(m // 8, (m + 7) // 8), 0), 4):
#                 for l in range(T.max(T.min(8, m - T.max(T.min((m + 7) // 8, m // 8), 0) * 8 - j * 8), 0)):
#                     C[i * 4 + k, (T.max(T.min(m // 8, (m + 7) // 8), 0) + j) * 8 + l] = A[i * 4 + k, (T.max(T.min(m // 8, (m + 7) // 8), 0) + j) * 8 + l]
#         for i in range((n + 3) // 4 - T.max(T.min(n // 4, (n + 3) // 4), 0)):
#             for j, k, l in T.grid(T.max(T.min(m // 8, (m + 7) // 8), 0), T.max(T.min(4, n - T.max(0, T.min((n + 3) // 4, n // 4)) * 4 - i * 4), 0), 8):
#                 C[(T.max(T.min(n // 4, (n + 3) // 4), 0) + i) * 4 + k, j * 8 + l] = A[(T.max(T.min(n // 4, (n + 3) // 4), 0) + i) * 4 + k, j * 8 + l]
#             for j, k in T.grid((m + 7) // 8 - T.max(T.min(m // 8, (m + 7) // 8), 0), T.max(T.min(4, n - T.max(0, T.min((n + 3) // 4, n // 4)) * 4 - i * 4), 0)):
#                 for l in range(T.max(T.min(8, m - T.max(T.min((m + 7) // 8, m // 8), 0) * 8 - j * 8), 0)):
#                     C[(T.max(T.min(n // 4, (n + 3) // 4), 0) + i) * 4 + k, (T.max(T.min(m // 8, (m + 7) // 8), 0) + j) * 8 + l] = A[(T.max(T.min(n // 4, (n + 3) // 4), 0) + i) * 4 + k, (T.max(T.min(m // 8, (m + 7) // 8), 0) + j) * 8 + l]
