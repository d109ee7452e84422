# A division that not all iterations execute stays: its divisor may be 0.
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
            if 0 < m:
                A[i] = B[0] + i // m

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
#             if 0 < m:
#                 A[i] = B[0] + i // m
