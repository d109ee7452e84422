# Divisions by a constant, by a number that may be negative, and of a dividend that grows by 2 stay.
# test opt --passes=ReduceStrength

from pliant.script import ir as I, tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(var_A: T.handle, d: T.int64):
        n = T.int64()
        A = T.match_buffer(var_A, (n,), "int64")
        for i in range(n):
            A[i] = i // 3 + i // d + (i * 2) // n

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func
#     def main(var_A: T.handle, d: T.int64):
#         n = T.int64()
#         A = T.match_buffer(var_A, (n,), "int64")
#         for i in range(n):
#             A[i] = i // 3 + i // d + i * 2 // n
