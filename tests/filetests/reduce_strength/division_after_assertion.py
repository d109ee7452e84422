# A division after an assertion stays: the assertion must fail first if the divisor is 0.
# test opt --passes=ReduceStrength

from pliant.script import ir as I, tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(var_A: T.handle, var_B: T.handle):
        n = T.int64()
        m = T.int64()
        A = T.match_buffer(var_A, (n,), "int64")
        B = T.match_buffer(var_B, (m,), "int64")
        for i in range(n):
            assert 0 < m, "B is empty"
            A[i] = B[i % m]

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func
#     def main(var_A: T.handle, var_B: T.handle):
#         n = T.int64()
#         m = T.int64()
#         A = T.match_buffer(var_A, (n,), "int64")
#         B = T.match_buffer(var_B, (m,), "int64")
#         for i in range(n):
#             assert 0 < m, "B is empty"
#             A[i] = B[i % m]
