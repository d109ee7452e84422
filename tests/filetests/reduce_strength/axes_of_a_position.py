# The indices of three axes that a loop computes from one position become counters.
# test opt --passes=ReduceStrength

from pliant.script import ir as I, tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(var_A: T.handle, var_B: T.handle):
        n = T.int64()
        m = T.int64()
        k = T.int64()
        A = T.match_buffer(var_A, (n * m * k,), "float32")
        B = T.match_buffer(var_B, (n, m, k), "float32")
        for i in range(n * m * k):
            A[i] = B[i // k // m, i // k % m, i % k]

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func
#     def main(var_A: T.handle, var_B: T.handle):
#         n = T.int64()
#         m = T.int64()
#         k = T.int64()
#         A = T.match_buffer(var_A, (n * m * k,), "float32")
#         B = T.match_buffer(var_B, (n, m, k), "float32")
#         next_remainder = T.alloc_buffer((1,), "int64", scope="local")
#         next_quotient = T.alloc_buffer((1,), "int64", scope="local")
#         next_remainder1 = T.alloc_buffer((1,), "int64", scope="local")
#         next_quotient1 = T.alloc_buffer((1,), "int64", scope="local")
#         if 0 < n * m * k:
#             next_quotient1[0] = 0 // k
#             next_remainder1[0] = 0 % k
#             next_quotient[0] = next_quotient1[0] // m
#             next_remainder[0] = next_quotient1[0] % m
#         for i in range(n * m * k):
#             remainder: T.int64 = next_remainder1[0]
#             quotient: T.int64 = next_quotient1[0]
#             remainder1: T.int64 = next_remainder[0]
#             quotient1: T.int64 = next_quotient[0]
#             A[i] = B[quotient1, remainder1, remainder]
#             next_quotient1[0] = quotient + T.Cast("int64", remainder + 1 >= k)
#             next_remainder1[0] = T.Select(remainder + 1 >= k, 0, remainder + 1)
#             next_quotient[0] = quotient1 + T.Cast("int64", remainder1 + T.Cast("int64", remainder + 1 >= k) >= m)
#             next_remainder[0] = T.Select(remainder1 + T.Cast("int64", remainder + 1 >= k) >= m, 0, remainder1 + T.Cast("int64", remainder + 1 >= k))
